"""A report names the meter of its energies, and ranks none that are of two meters."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.results.power import MeterRecord
from edgebench.harness.results.run import Run
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.combine import combine
from edgebench.reports.data import build_report_data
from edgebench.reports.export_csv import COLUMNS, render_csv
from edgebench.reports.export_json import render_json
from edgebench.reports.html import render_page
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_text
from edgebench.reports.selection.goals import stands_of
from edgebench.reports.selection.select import select
from edgebench.reports.selection.terminal import selection_text
from edgebench.reports.sentences import plain
from edgebench.reports.table import comparison_rows
from edgebench.reports.terminal import comparison_table

KEY = "energy_per_token_j"
UNITS = {KEY: "J/token"}
NOTHING = Requirements()


def made(number: int, meters: list[MeterRecord], joules: dict[str, float], runner="llama.cpp"):
    """The data of a run with these energies by variant, whose first meter is theirs."""
    values = {
        name: {
            "decode_rate": [30.0 + number + 0.01 * each for each in range(6)],
            KEY: [value + 0.0001 * each for each in range(6)],
        }
        for name, value in joules.items()
    }
    record, trials = handmade(
        values, units=UNITS, id=f"run-{number}", created_at=f"2025-01-{number:02}T10:15:00Z"
    )
    variants = [each.model_copy(update={"runner": runner}) for each in record.variants]
    record = record.model_copy(update={"meters": meters, "variants": variants})
    source = meters[0].source if meters else "observed"
    told = [
        each.model_copy(
            update={
                "metrics": {
                    **each.metrics,
                    KEY: each.metrics[KEY].model_copy(update={"source": source}),
                }
            }
        )
        for each in trials
    ]
    return build_report_data(Run(Path(f"run-{number}"), record, tuple(told)))


def meter(name: str, source: str = "observed") -> MeterRecord:
    return MeterRecord.model_validate({"name": name, "source": source})


PACKAGE, BATTERY = meter("rapl:package"), meter("battery")
ESTIMATE = meter("estimate:tdp", "estimated")


def of_two(one: list[MeterRecord], other: list[MeterRecord]):
    """The second run's variant needs half the energy of the first one's."""
    return combine([made(1, one, {"a": 2.0}), made(2, other, {"b": 1.0})])


def marked(data) -> list[str]:
    """The variants whose energy is marked as the best."""
    (table,) = comparison_rows(data)
    (place,) = (place for place, each in enumerate(table.columns) if each.key == KEY)
    return [row.variant for row in table.rows if row.values[place].best]


def text_of(renderable) -> str:
    console = Console(width=80, no_color=True, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([PACKAGE], [BATTERY]),
        ([ESTIMATE], [PACKAGE]),
        # The older run does not name it, but an estimate it was not.
        ([], [ESTIMATE]),
    ],
)
def test_energies_of_two_meters_are_not_ranked(one, other) -> None:
    """No mark, no goal, no weight; and the reader is told at the top and where it is chosen."""
    data = of_two(one, other)
    assert marked(data) == []
    stands = stands_of(data)
    assert not any(each.known for each in stands.by_goal[KEY].values())
    assert all(each.known for each in stands.by_goal["decode_rate"].values())
    told = select(data, NOTHING).measured
    assert KEY not in told.weights
    said = " ".join(plain(each) for each in told.sentences)
    assert "Left out is energy per token, whose values do not compare: they are of diff" in said
    page = render_text(data)
    assert "**Energies of these runs do not compare.**" in page
    for each in (*one, *other):
        assert each.name in page


@pytest.mark.parametrize(
    ("one", "other"),
    [([PACKAGE], [PACKAGE, BATTERY]), ([ESTIMATE], [ESTIMATE]), ([], [PACKAGE]), ([], [])],
)
def test_energies_of_one_meter_are_ranked(one, other) -> None:
    """The variant that needs half is the best, and the goal counts."""
    data = of_two(one, other)
    (best,) = marked(data)
    assert best.startswith("b")
    assert KEY in select(data, NOTHING).measured.weights
    assert "do not compare.**" not in render_text(data)


def test_a_weight_on_such_energies_says_why_it_is_ignored() -> None:
    """It was measured, so the reason is not that it was not."""
    data = of_two([PACKAGE], [BATTERY])
    asked = Requirements.model_validate({"weights": {KEY: 1}})
    said = " ".join(plain(each) for each in select(data, asked).measured.sentences)
    assert "Nothing of what should be weighed can be compared (energy per token)" in said
    assert "not measured (energy" not in said


@pytest.mark.parametrize(("tag", "head"), [("en", "Energy meter"), ("zh", "功耗计")])
def test_machine_and_method_name_the_meter(tag, head) -> None:
    """In the page and in Markdown; the ones read beside it too, and of an estimate that it is."""
    data = made(1, [PACKAGE, meter("nvidia:0\x1b[2J")], {"a": 2.0})
    with language(tag):
        for text in (render_text(data), render_page(data)):
            body = re.sub(r"<[^>]*>", " ", text)
            assert re.search(rf"{head}\W+rapl:package", body)
            assert "nvidia:0" in body
            assert "\x1b" not in body
    with language("en"):
        assert "Of rapl:package, between two of the runner's own" in render_text(data)
        estimate = render_text(made(1, [ESTIMATE], {"a": 2.0}))
        assert "Energy meter: estimate:tdp (estimated)" in estimate
        assert "**Energy.** Of estimate:tdp (estimated), between" in estimate
        assert "Energy meter" not in render_text(made(1, [], {"a": 2.0}))


def test_exports_name_the_meter() -> None:
    """CSV in each row of an energy, JSON in each run."""
    data = of_two([PACKAGE], [BATTERY])
    rows = list(csv.reader(io.StringIO(render_csv(data))))
    assert {len(each) for each in rows} == {len(COLUMNS)}
    named = [dict(zip(COLUMNS, each, strict=True)) for each in rows[1:]]
    found = {(each["metric"] == KEY, each["meter"]) for each in named}
    assert found == {(True, "rapl:package"), (True, "battery"), (False, "")}
    runs = json.loads(render_json(data))["runs"]
    assert [each["meters"][0]["name"] for each in runs] == ["rapl:package", "battery"]


def test_the_closing_table_has_the_energy() -> None:
    """A fifth column in 80 characters: 2 J/token; of an estimate, with that word."""
    for meters, said in (([PACKAGE], False), ([ESTIMATE], True)):
        text = text_of(comparison_table(made(1, meters, {"a": 2.0, "b": 1.5})))
        assert max(map(len, text.splitlines())) <= 80
        assert "J/token" in text
        assert "2.00" in text
        assert ("estimated" in text) is said
    without = made(1, [PACKAGE], {"a": 2.0})
    trials = tuple(
        each.model_copy(update={"metrics": {"decode_rate": each.metrics["decode_rate"]}})
        for each in without.run.trials
    )
    data = build_report_data(Run(without.run.path, without.record, trials))
    assert "J/token" not in text_of(comparison_table(data))


def test_a_score_of_estimates_says_so_on_the_terminal() -> None:
    """Below the score, in each row that has one."""
    text = text_of(selection_text(select(made(1, [ESTIMATE], {"a": 2.0, "b": 1.0}), NOTHING)))
    table = text[text.index("score") :]
    assert len(re.findall(r"^.*estimated\s*$", table, re.MULTILINE)) >= 2
    measured = select(made(1, [PACKAGE], {"a": 2.0, "b": 1.0}), NOTHING)
    assert "estimated" not in text_of(selection_text(measured))
