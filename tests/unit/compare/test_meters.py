"""Energies of different meters are not compared, wherever the two come from."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from side_sample import run

from edgebench.harness.compare.baseline_format import checksum
from edgebench.harness.compare.baselines import read_baseline, save_baseline
from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.matching import match
from edgebench.harness.compare.merging import merged
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.results.meters import METERED
from edgebench.harness.results.power import MeterEnergy, MeterRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.compare.model import Side

KEY = "energy_per_token_j"
UNITS = {KEY: "J/token"}
STEADY = (2.0, 2.01, 1.99, 2.0, 2.005, 1.995)


def metered(name: str, meter: str | None, scale: float = 1.0) -> Run:
    """A run of one variant whose energies are of a meter; None as older runs have it."""
    values: list[float | None] = [scale * each for each in STEADY]
    made = run(name, {"v": {KEY: values, "decode_rate": [10.0] * 6}}, units=UNITS)
    meters = [MeterRecord(name=meter, source="observed")] if meter else []
    return Run(made.path, made.record.model_copy(update={"meters": meters}), made.trials)


def side(name: str, meter: str | None, scale: float = 1.0) -> Side:
    return side_of_run(metered(name, meter, scale))


def row_of(baseline: Side, candidate: Side):
    found = compare(match(baseline, candidate), wanted=lambda _name, key: key == KEY)
    (row,) = found.rows
    return row, found.notes


def test_energies_of_two_meters_are_not_compared() -> None:
    """A battery's joules against the package's: both are named, and there is no ratio."""
    row, notes = row_of(side("a", "rapl:package"), side("b", "battery"))
    assert (row.verdict, row.answer.ratio) == ("not_compared", None)
    assert row.why == "the baseline's meter is rapl:package, the candidate's battery"
    assert not any("meter" in each for each in notes)


def test_energies_of_one_meter_are() -> None:
    """Twice the joules of the same meter are 100 % worse."""
    row, notes = row_of(side("a", "rapl:package"), side("b", "rapl:package", 2.0))
    assert row.verdict == "worse"
    assert row.answer.ratio == pytest.approx(2)
    assert not any("meter" in each for each in notes)


def test_a_rate_has_no_meter() -> None:
    """What no meter tells is compared whatever the meters are."""
    found = compare(
        match(side("a", "rapl:package"), side("b", "battery")),
        wanted=lambda _name, key: key == "decode_rate",
    )
    assert [each.verdict for each in found.rows] == ["same"]


@pytest.mark.parametrize(
    ("baseline", "candidate", "whose"),
    [
        (None, "battery", "the baseline's"),
        ("battery", None, "the candidate's"),
        (None, None, "the baseline's and the candidate's"),
    ],
)
def test_an_unnamed_meter_is_compared_with_a_note(baseline, candidate, whose) -> None:
    """An older result does not say what it was measured by, and the reader is told."""
    row, notes = row_of(side("a", baseline), side("b", candidate, 2.0))
    assert row.verdict == "worse"
    assert any(each.startswith(f"Nothing says which meter {whose} energies") for each in notes)


def test_runs_of_two_meters_are_not_put_together() -> None:
    """Of one side with a run of each, there is no median."""
    both = merged([side("a", "rapl:package"), side("b", "battery")], "both")
    (cell,) = both.cells.values()
    assert cell.metrics[KEY].values == ()
    assert cell.metrics[KEY].reason == "its runs are of different meters, rapl:package and battery"
    assert len(cell.metrics["decode_rate"].values) == 12


def test_a_saved_baseline_knows_its_meter(tmp_path: Path) -> None:
    """So a candidate of another one is not held against it."""
    path = tmp_path / "base.json"
    save_baseline(side("a", "rapl:package"), path)
    saved = read_baseline(path)
    (cell,) = saved.cells.values()
    assert cell.metrics[KEY].meter == "rapl:package"
    assert cell.metrics["decode_rate"].meter is None
    assert row_of(saved, side("b", "battery"))[0].verdict == "not_compared"
    assert row_of(saved, side("b", "rapl:package"))[0].verdict != "not_compared"


def test_a_baseline_of_an_older_edgebench_can_be_read(tmp_path: Path) -> None:
    """Without a meter it is what it was: compared, and the note says what is not known."""
    path = tmp_path / "base.json"
    save_baseline(side("a", "rapl:package"), path)
    text = re.sub(r', "meter": "rapl:package"', "", path.read_text())
    raw = json.loads(text)
    assert "meter" not in text
    assert [checksum(each) for each in raw["cells"]] == [each["checksum"] for each in raw["cells"]]
    path.write_text(text)
    row, notes = row_of(read_baseline(path), side("b", "battery", 2.0))
    assert row.verdict == "worse"
    assert any("the baseline's energies" in each for each in notes)


def test_a_run_that_was_resumed_with_another_meter_counts_one_of_them() -> None:
    """Joules of the meter before are null with that reason, in the cell and in a comparison."""
    made = metered("a", "battery")
    power = [[MeterEnergy(meter=name, source="observed")] for name in ("rapl:package", "battery")]
    trials = tuple(
        each.model_copy(update={"power": power[each.block >= 4]}) for each in made.trials
    )
    (cell,) = summarize(made.record, trials)
    assert cell.metrics[KEY].n == 2
    assert cell.metrics["decode_rate"].n == 6
    (of_side,) = side_of_run(Run(made.path, made.record, trials)).cells.values()
    assert len(of_side.metrics[KEY].values) == 2

    (cell,) = summarize(made.record, [each for each in trials if each.block < 4])
    assert cell.metrics[KEY].reason == (
        "it is of rapl:package, read before the run was resumed, and the run's meter is battery"
    )


def test_every_metric_of_energy_has_a_meter() -> None:
    """What is told in joules or watts is told by a meter."""
    from edgebench.harness.metrics.definitions import METRICS

    told = {key for key, each in METRICS.items() if re.search(r"\b[JW]\b", each.unit)}
    assert told == METERED
