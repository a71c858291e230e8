"""Counting trials: what a cell has, and when it is given up."""

from __future__ import annotations

import pytest

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.trial import Trial
from edgebench.harness.tally import Tally


def trial(
    workload: str | None,
    *,
    ok: bool = True,
    block: int = 0,
    phase: str = "measured",
    kind: str = "",
) -> Trial:
    return Trial.model_validate(
        {
            "kind": kind or ("generate" if workload else "load"),
            "variant": "v",
            "workload": workload,
            "block": block,
            "repetition": 0,
            "phase": phase,
            "status": "ok" if ok else "failed",
            "started_at": "",
            "duration_s": 1.0,
            "failure": None if ok else Failure(kind="crash", message="it died"),
        }
    )


@pytest.fixture
def tally() -> Tally:
    return Tally(["a", "b"])


def test_two_failures_in_a_row_give_a_cell_up(tally: Tally) -> None:
    """One failure is tried again, a second one is not; the other workload goes on."""
    tally.add(trial("a", ok=False))
    assert not tally.is_lost("v", "a")
    tally.add(trial("a", ok=False, phase="warmup"))
    assert tally.is_lost("v", "a")
    assert not tally.is_lost("v", "b")


def test_a_success_between_failures_is_a_new_start(tally: Tally) -> None:
    """A cell that works now and then is not given up."""
    for ok in (False, True, False):
        tally.add(trial("a", ok=ok))
    assert not tally.is_lost("v", "a")


def test_a_load_that_fails_twice_gives_all_workloads_up(tally: Tally) -> None:
    """Without a model no workload can be run; other variants are not touched."""
    for block in (0, 1):
        tally.add(trial(None, ok=False, block=block))
    assert tally.is_lost("v", "a")
    assert tally.is_lost("v", "b")
    assert not tally.is_lost("w", "a")


def test_only_measured_successes_count_as_repetitions(tally: Tally) -> None:
    """Loads, warm-ups and failures are no repetitions."""
    good = trial("a", block=3)
    for other in (trial(None), trial("a", phase="warmup"), trial("a", ok=False), good):
        tally.add(other)
    assert tally.measured("v", "a") == [good]
    assert tally.measured("v", "b") == []


def test_blocks_go_on_behind_the_last_one(tally: Tally) -> None:
    """The next block is behind the last of any of the variants; the first is 0."""
    assert tally.next_block(["v", "w"]) == 0
    tally.add(trial("a", block=4))
    assert tally.next_block(["v", "w"]) == 5


@pytest.mark.parametrize(("kind", "lost"), [("load", "a"), ("task_load", "summary")])
def test_a_failed_load_fails_its_own_kind_of_work(kind: str, lost: str) -> None:
    """Tasks are loaded in processes of their own: one that fails says nothing about tokens."""
    tally = Tally(["a"], ["summary"])
    for _ in range(2):
        tally.add(trial(None, ok=False, kind=kind))
    assert [name for name in ("a", "summary") if tally.is_lost("v", name)] == [lost]
