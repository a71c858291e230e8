"""The noise of one metric of one cell, and what could be noticed in spite of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.compare.decide import repetitions_for
from edgebench.harness.compare.model import Question
from edgebench.harness.compare.noticeable import as_shift, as_worsening, shift_in_blocks
from edgebench.harness.gate.policy import DEFAULT_LIMITS
from edgebench.harness.metrics import statistics
from edgebench.harness.noise.model import Noise, Noticed
from edgebench.harness.scenario.quantities import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.harness.compare.model import Answer, Compared, Samples
    from edgebench.harness.metrics.definitions import Better

REPETITIONS: Final = (10, 20, 40)
"""For which it is told what a gate could notice, beside those that were made."""

_LEAST_LAG: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """All that is asked together.

    Attributes:
        questions: how many; taken as if independent.
        level: the accepted chance that any of them alarms where nothing differs.
        floor: by how much runs made at different times may differ without being different.
    """

    questions: int
    level: float
    floor: float


def noticed(spread: float, blocks: int, better: Better, asked: Asked) -> float | None:
    """What is noticed in the same blocks in 95 % of cases, as a share of the baseline.

    Args:
        spread: of a pair's log ratio.
        blocks: on each side.
        better: which direction is better.
        asked: all that is asked together.
    """
    shift = shift_in_blocks(
        blocks,
        spread=spread,
        paired=True,
        inflation=1.0,
        level=asked.level,
        questions=asked.questions,
    )
    return None if shift is None else as_worsening(shift, better)


def noticed_apart(
    spread: float, blocks: int, better: Better, asked: Asked, *, inflation: float
) -> float | None:
    """The same of two runs made at different times.

    Args:
        spread: of one block's log value.
        blocks: on each side.
        better: which direction is better.
        asked: all that is asked together.
        inflation: of the standard error.
    """
    shift = shift_in_blocks(
        blocks,
        spread=spread,
        paired=False,
        inflation=inflation,
        level=asked.level,
        questions=asked.questions,
    )
    return None if shift is None else as_worsening(shift + as_shift(asked.floor, better), better)


def as_if_apart(row: Compared) -> Question:
    """The same values as if no block had both sides."""
    baseline, candidate = (each.by_block() for each in _samples(row))
    moved = {(f"after {session}", block): value for (session, block), value in candidate.items()}
    return Question(baseline, moved, row.better)


def noise_of_row(row: Compared, apart: Answer, asked: Asked) -> Noise:
    """All figures of one metric of one cell.

    Args:
        row: as compared by its pairs, with a spread and both p values.
        apart: the answer to `as_if_apart`, at the same floor.
        asked: all that is asked together.
    """
    answer = row.answer
    assert answer.spread is not None
    assert answer.ratio is not None
    assert answer.p_worse is not None
    assert answer.p_better is not None
    sides = _samples(row)
    values = [value for side in sides for value in side.values]
    middle = statistics.median(values)
    # People ask for repetitions, the statistics for blocks of them.
    each = row.pair.per_block
    blocks = repetitions_for(
        answer,
        share(DEFAULT_LIMITS[row.metric]) or asked.floor,
        questions=asked.questions,
        confidence=1 - asked.level,
    )
    return Noise(
        cell=row.pair.name,
        metric=row.metric,
        unit=row.unit,
        better=row.better,
        value=middle,
        pairs=answer.n,
        per_block=each,
        # Of shares, so that no square leaves the range of numbers.
        repetition_cv=statistics.coefficient_of_variation([value / middle for value in values]),
        pair_spread=answer.spread,
        block_spread=apart.spread,
        lag1=_lag1([np.log(list(side.by_block().values())) for side in sides]),
        inflation=apart.inflation,
        ratio=answer.ratio,
        p_worse=answer.p_worse,
        p_better=answer.p_better,
        noticed=tuple(
            Noticed(
                count,
                noticed(answer.spread, count // each, row.better, asked),
                _separate(apart, count // each, row.better, asked),
            )
            for count in sorted({*REPETITIONS, answer.n * each})
        ),
        needed=None if blocks is None else blocks * each,
    )


def _samples(row: Compared) -> tuple[Samples, Samples]:
    pair = row.pair
    return pair.baseline.metrics[row.metric], pair.candidate.metrics[row.metric]


def _separate(apart: Answer, blocks: int, better: Better, asked: Asked) -> float | None:
    """What separate runs of so many blocks would notice, by the answer for those that were made."""

    def of(count: int) -> float | None:
        if apart.spread is None:
            return None
        return noticed_apart(apart.spread, count, better, asked, inflation=apart.inflation)

    told, known = of(blocks), of(apart.n)
    if told is None or known is None or apart.noticeable is None or not math.isfinite(known):
        return told
    # A trend that both sides show is in the answer, and in no formula for another number.
    return told * max(1.0, apart.noticeable / known)


def _lag1(sides: Sequence[NDArray[np.float64]]) -> float | None:
    """The correlation of neighbours, over both sides, each around its own mean."""
    if min(map(len, sides)) < _LEAST_LAG:
        return None
    centred = [side - side.mean() for side in sides]
    total = sum(float(side @ side) for side in centred)
    # What differs in the last digits only is rounding.
    if total <= sum(map(len, sides)) * 1e-24:
        return None
    return sum(float(side[1:] @ side[:-1]) for side in centred) / total
