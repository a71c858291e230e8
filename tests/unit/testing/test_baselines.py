"""Where a test's baseline is, and what becomes of an old one when cells are saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from side_sample import side

from edgebench.harness.compare.baselines import read_baseline
from edgebench.harness.errors import UsageError
from edgebench.testing.baselines import NoBaselineError, baseline_side, place, save_cells

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.compare.model import Side


def rates(name: str, **values: float) -> Side:
    """A run, by variant three decode rates that are all this."""
    return side(name, {each: {"decode_rate": [rate] * 3} for each, rate in values.items()})


def saved_rates(path: Path) -> dict[str, float]:
    cells = read_baseline(path).cells
    return {variant: cell.metrics["decode_rate"].values[0] for (variant, _), cell in cells.items()}


def test_a_path_is_relative_to_the_first_folder_that_has_it(tmp_path: Path) -> None:
    """The test's own folder, then the root; a new one is made below the root."""
    own, root = tmp_path / "tests", tmp_path
    (own / "baselines").mkdir(parents=True)
    (root / "others").mkdir()
    assert place("baselines", [own, root]) == own / "baselines"
    assert place("others", [own, root]) == root / "others"
    assert place("new", [own, root]) == root / "new"


def test_cells_that_were_not_measured_now_stay(tmp_path: Path) -> None:
    """a is replaced, b stays, c is new; both runs are named, for both have samples in it."""
    save_cells(tmp_path, "s", rates("a1", a=10, b=20), [("a", "w"), ("b", "w")])
    path = save_cells(tmp_path, "s", rates("b1", a=11, c=30, d=40), [("a", "w"), ("c", "w")])
    assert saved_rates(path) == {"a": 11, "b": 20, "c": 30}
    assert [run.id for run in read_baseline(path).runs] == ["a1", "b1"]


def test_a_run_without_samples_is_forgotten(tmp_path: Path) -> None:
    """All of its cells were replaced."""
    save_cells(tmp_path, "s", rates("a1", a=10), [("a", "w")])
    path = save_cells(tmp_path, "s", rates("b1", a=11), [("a", "w")])
    assert [run.id for run in read_baseline(path).runs] == ["b1"]


def test_of_other_weights_nothing_stays(tmp_path: Path) -> None:
    """Cells of two models would be compared as if they were of one."""
    first = replace(rates("a1", a=10, b=20), hashes={"the source": "1" * 64})
    other = replace(rates("b1", a=11), hashes={"the source": "2" * 64})
    save_cells(tmp_path, "s", first, [("a", "w"), ("b", "w")])
    assert saved_rates(save_cells(tmp_path, "s", other, [("a", "w")])) == {"a": 11}


def test_what_was_saved_is_found_for_its_machine_alone(tmp_path: Path) -> None:
    """By folder and by file; another machine, another scenario and another folder have none."""
    made = rates("a1", a=10)
    fingerprint = made.machine.fingerprint
    path = save_cells(tmp_path / "all", "s", made, [("a", "w")])
    for where in (tmp_path / "all", tmp_path / "all" / "s", path):
        assert list(baseline_side(where, "s", fingerprint).cells) == [("a", "w")]
    for where, scenario, machine in (
        (tmp_path / "all", "s", "0" * 16),
        (tmp_path / "all", "t", fingerprint),
        (tmp_path / "none", "s", fingerprint),
    ):
        with pytest.raises(NoBaselineError):
            baseline_side(where, scenario, machine)


def test_no_baseline_is_saved_in_a_runs_folder(tmp_path: Path) -> None:
    """It would be taken for a part of the run."""
    (tmp_path / "run.json").touch()
    with pytest.raises(UsageError, match="is a run's folder"):
        save_cells(tmp_path, "s", rates("a1", a=10), [("a", "w")])
