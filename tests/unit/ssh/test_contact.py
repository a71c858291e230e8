"""How patiently a board is tried again."""

from __future__ import annotations

from edgebench.harness.ssh.contact import Contact, Limits


def contact(delays: tuple[float, ...] = (1.0, 3.0)) -> tuple[Contact, list[float], list[float]]:
    """One whose clock stands where its only element says, and that tells how it slept."""
    slept: list[float] = []
    now = [0.0]
    return Contact(Limits(delays_s=delays), slept.append, lambda: now[0]), slept, now


def test_a_board_that_was_never_reached_is_tried_once() -> None:
    """Its address is more likely wrong than its cable."""
    made, slept, _ = contact()
    assert list(made.tries()) == [True]
    assert slept == []


def test_a_board_that_was_reached_is_tried_again_with_pauses() -> None:
    """Each longer than the one before; only the last try is the last."""
    made, slept, _ = contact()
    made.reached()
    assert list(made.tries()) == [False, False, True]
    assert slept == [1.0, 3.0]


def test_a_board_that_was_given_up_is_not_waited_for_again_and_again() -> None:
    """The next tries are single; after a minute, or when it was reached, they are patient again."""
    made, slept, now = contact()
    made.reached()
    made.gave_up()
    assert list(made.tries()) == [True]
    assert slept == []
    now[0] = 61.0
    assert len(list(made.tries())) == 3
    made.gave_up()
    made.reached()
    assert len(list(made.tries())) == 3


def test_the_pauses_outlast_a_pulled_cable() -> None:
    """All of them together are half a minute at the most, for a run has other cells."""
    assert 20 <= sum(Limits().delays_s) <= 30
