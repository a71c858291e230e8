"""One limit on one change, with answers made by hand."""

from __future__ import annotations

from dataclasses import replace

import gate_sample
import pytest

from edgebench.harness.gate.changes import change_check
from edgebench.harness.gate.family import Family
from edgebench.harness.gate.limits import Asked

ONE = Family(paired=1, unpaired=0, rated=False, noise_floor=0.01)
LIMIT = Asked(0.02, 0.99, None, None, "fail")


@pytest.mark.parametrize(
    ("candidate", "spread", "noticeable", "p", "status"),
    [
        (98.0, 0.001, 0.005, 0.001, "fail"),  # on the limit, and certain
        (98.0, 0.001, 0.005, 0.0101, "undecided"),  # on the limit, and just not certain
        (98.3, 0.004, 0.019, 0.001, "pass"),  # reaches beyond it, but 2 % would have been noticed
        (98.3, 0.004, 0.021, 0.001, "undecided"),  # reaches beyond it, and 2 % might be missed
        (98.3, 0.002, 0.021, 0.5, "pass"),  # 2 % might be missed, but is excluded
        (98.3, None, None, 0.5, "undecided"),  # nothing is known
        (110.0, 0.13, 0.3, 1.0, "undecided"),  # better, but it may be worse by 3 %
    ],
)
def test_effect_and_certainty_decide_together(
    candidate: float, spread: float | None, noticeable: float | None, p: float, status: str
) -> None:
    """A rate of 100 with a limit of 2 %: broken, kept or undecided."""
    row = gate_sample.row(
        candidate=candidate, spread=spread, noticeable=noticeable, p_worse=p,
        no_interval=None if spread else "too few",
    )  # fmt: skip
    check = change_check(row, row.pair.name, "decode_rate", LIMIT, ONE)
    assert check.status == status
    assert check.value == pytest.approx(1 - candidate / 100)


def test_repetitions_are_more_than_there_are_and_counted_as_people_ask_for_them() -> None:
    """What would settle a limit is of the whole family, and never less than was measured."""
    row = gate_sample.row(candidate=98.5, spread=0.03, noticeable=0.05, p_worse=0.2, n=20)
    assert ONE.repetitions(row, 0.02, 0.99) is None  # the spread of a block is not known
    known = gate_sample.row(candidate=98.5, spread=None, noticeable=0.05, p_worse=0.2, n=20)
    known = replace(known, answer=replace(known.answer, spread=0.05))
    alone = ONE.repetitions(known, 0.02, 0.99)
    among = Family(40, 0, rated=False, noise_floor=0.01).repetitions(known, 0.02, 0.99)
    assert alone is not None
    assert among is not None
    assert 20 < alone < among
    assert ONE.repetitions(known, 0.5, 0.99) is None
