"""What a gate comes to, with answers made by hand; and how often a cell failed, kept by files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gate_sample
import pytest
from sample_run import handmade

from edgebench.harness.compare.baselines import read_baseline, save_baseline
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.gate.changes import change_check
from edgebench.harness.gate.family import Family
from edgebench.harness.gate.headline import headline
from edgebench.harness.gate.limits import Asked
from edgebench.harness.gate.outcome import remedy_of, result_of
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.run import Run

if TYPE_CHECKING:
    from pathlib import Path

ONE = Family(paired=0, unpaired=1, rated=False, noise_floor=0.01)


def test_enough_repetitions_that_drift_are_not_called_few() -> None:
    """A hundred of them could have noticed nothing for another reason, which more do not mend."""
    row = gate_sample.row(
        candidate=99.0, verdict="cant_tell", n=100, paired=False, noticeable=None, p_worse=0.5
    )
    checks = [gate_sample.check(row, "undecided")]
    assert result_of(checks, ONE) == "undecided"
    assert "few" not in headline(checks, ONE)
    remedy = remedy_of(checks, ONE)
    assert remedy.startswith("The repetitions are enough, but they vary or drift too much")
    assert "--against" in remedy
    assert "--repetitions" not in remedy


def test_a_change_that_only_a_doubling_shows_is_no_number() -> None:
    """A worsening of more than 100 % is not named as if anybody cared, and is never ``inf``."""
    blunt = gate_sample.row(candidate=99.0, verdict="cant_tell", noticeable=18.0)
    sharp = gate_sample.row(candidate=99.0, verdict="cant_tell", noticeable=0.02)
    alone = headline([gate_sample.check(blunt, "undecided")], ONE)
    assert alone.endswith("too noisy to tell a change of less than 100 %")
    check = change_check(
        blunt, blunt.pair.name, "decode_rate", Asked(0.02, 0.99, None, None, "fail"), ONE
    )
    assert check.message.endswith("too noisy to tell a change of less than 100 %")
    both = headline([gate_sample.check(each, "undecided") for each in (sharp, blunt)], ONE)
    assert "2 % would have been noticed at best, and none in Decode rate of" in both
    assert "inf" not in alone + both


@pytest.mark.parametrize(
    ("confidence", "families", "paired", "unpaired"),
    [(0.95, 1, 5, 3), (0.99, 1, 7, 5), (0.999, 1, 10, 7), (0.99, 2, 8, 5)],
)
def test_the_least_repetitions_are_counted_ways(
    confidence: float, families: int, paired: int, unpaired: int
) -> None:
    """By hand: 2^5 = 32 > 20, 6 over 3 = 20; 2^7 = 128, 10 over 5 = 252; 2^10 = 1024, and so on."""
    family = Family(paired=1, unpaired=families - 1, rated=False, noise_floor=0.01)
    of_pairs, apart = gate_sample.row(), gate_sample.row(paired=False)
    assert family.least(of_pairs, confidence) == paired
    assert family.least(apart, confidence) == unpaired


def test_how_often_a_cell_failed_is_known_of_a_run_and_of_a_baseline(tmp_path: Path) -> None:
    """Two of eight measured repetitions failed: both sides of a gate must know it."""
    record, trials = handmade({"v": {"decode_rate": [100.0 + n for n in range(8)]}})
    measured = [trial for trial in trials if trial.phase == "measured"]
    crash = Failure(kind="crash", message="The runner's process ended.")
    failed = {id(each) for each in measured[:2]}
    changed = [
        trial.model_copy(update={"status": "failed", "metrics": {}, "failure": crash})
        if id(trial) in failed
        else trial
        for trial in trials
    ]
    side = side_of_run(Run(tmp_path, record, tuple(changed)))
    (cell,) = side.cells.values()
    assert (cell.status, cell.n, cell.n_failed) == ("partial", 6, 2)
    save_baseline(side, tmp_path / "b.json")
    (again,) = read_baseline(tmp_path / "b.json").cells.values()
    assert (again.n, again.n_failed) == (6, 2)
