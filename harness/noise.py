"""What a run of the same thing as baseline and candidate tells of a machine's noise.

How much one repetition varies, and a pair; whether what follows each other is alike; and how small
a change a gate on this machine could notice, measured in the same blocks or at different times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.decide import decide, repetitions_for
from edgebench.harness.compare.intervals import two_samples
from edgebench.harness.compare.model import FACTS, Question
from edgebench.harness.compare.noticeable import (
    as_shift,
    as_worsening,
    log_chance,
    shift_noticed,
)
from edgebench.harness.gate.policy import CONFIDENCE, DEFAULT_LIMITS
from edgebench.harness.metrics import statistics
from edgebench.harness.metrics.definitions import metric
from edgebench.harness.scenario.quantities import share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.compare.model import Answer, Compared, Comparison, Matched, Samples
    from edgebench.harness.metrics.definitions import Better

REPETITIONS: Final = (10, 20, 40)
"""For which it is told what a gate could notice, beside those that were made."""

LEAST_FLOOR: Final = 0.01
FLOOR_STEP: Final = 0.005
LIMITS: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The steps in which limits are suggested."""

_LEAST_HALF: Final = 3
_LEAST_LAG: Final = 4


@dataclass(frozen=True, slots=True)
class Noticed:
    """The smallest true worsening that is noticed in 95 % of cases, as a share of the baseline.

    Attributes:
        repetitions: on each side.
        interleaved: measured in the same blocks; None where so few can never be certain.
        separate: measured at different times; likewise.
    """

    repetitions: int
    interleaved: float | None
    separate: float | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one metric of one cell.

    Attributes:
        cell: ``VARIANT / WORKLOAD``.
        value: the median of all repetitions of both sides, in `unit`.
        pairs: how many blocks both sides have.
        per_block: repetitions in each of them.
        repetition_cv: standard deviation of one repetition / mean.
        pair_spread: standard deviation of the logarithm of a pair's ratio, robust.
        lag1: correlation of a block's value with the next block's; near 1 the machine's pace
            drifts, near 0 it does not. None of too few, or of values that are all alike.
        halves: by how much the second half of the blocks was worse than the first, as a share of
            it: what two runs that follow each other differ by. None of too few.
        inflation: by how much the interval of separate runs is wider for that.
        ratio: of the sides; 1 but for noise.
        p_worse, p_better: as in `edgebench.harness.compare.model.Answer`.
        noticed: by repetitions.
        needed: repetitions in the same blocks at which the default policy's limit would be
            noticed; None where no number would do.
    """

    cell: str
    metric: str
    unit: str
    value: float
    pairs: int
    per_block: int
    repetition_cv: float | None
    pair_spread: float
    lag1: float | None
    halves: float | None
    inflation: float
    ratio: float
    p_worse: float
    p_better: float
    noticed: tuple[Noticed, ...]
    needed: int | None

    def certain(self, confidence: float) -> bool:
        """Whether a difference would be called certain, in which direction ever."""
        return min(self.p_worse, self.p_better) <= 1 - confidence


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to ask of a gate on this machine.

    Attributes:
        repetitions: of each cell, in the scenario.
        noise_floor: how much runs made at different times may differ by, as a share.
        limits: `worse_by` by metric, as a share.
        hopeless: metrics of which not even the widest limit would be noticed.
    """

    repetitions: int
    noise_floor: float
    limits: Mapping[str, float]
    hopeless: tuple[str, ...]

    def policy(self, confidence: float = CONFIDENCE) -> str:
        """It as the YAML of a policy, which `edgebench gate --policy` reads."""
        lines = [
            "schema_version: 1",
            f"confidence: {_percent(confidence)}",
            f"noise_floor: {_percent(self.noise_floor)}  # of runs that were not interleaved",
            "limits:",
            *(f"  {key}: {{worse_by: {_percent(by)}}}" for key, by in self.limits.items()),
            *(f"  # {key}: too noisy here for a limit" for key in self.hopeless),
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """All that a run of a thing against itself tells.

    Attributes:
        comparison: of the two sides, by the default policy's metrics, at its confidence.
        rows: by cell and metric; those that are sampled.
        alarms: rows in which a difference would have been called certain; by chance one such run
            in fifty has any at 99 %, as there are two directions.
        suggestion: None where nothing was measured often enough.
    """

    comparison: Comparison
    rows: tuple[Noise, ...]
    alarms: tuple[Noise, ...]
    suggestion: Suggestion | None


def noise_of(matched: Matched, *, confidence: float = CONFIDENCE) -> NoiseReport:
    """The noise of two sides that ran the same thing in the same blocks.

    Args:
        matched: both sides.
        confidence: of the gate that is thought of, over all that it asks.
    """
    comparison = compare(
        matched, confidence=confidence, wanted=lambda _, key: key in DEFAULT_LIMITS
    )
    asked = [row for row in comparison.rows if _is_sampled(row)]
    level = (1 - confidence) / _families(comparison)
    # As if they had been measured at different times: how much a run drifts, each tells by itself.
    apart = decide([_apart(row) for row in asked], confidence=1 - level, noise_floor=LEAST_FLOOR)
    rows = tuple(
        _noise(row, other, len(asked), level) for row, other in zip(asked, apart, strict=True)
    )
    return NoiseReport(
        comparison=comparison,
        rows=rows,
        alarms=tuple(row for row in rows if row.certain(confidence)),
        suggestion=_suggestion(rows, len(asked), level) if rows else None,
    )


def noticed(
    spread: float, repetitions: int, better: Better, *, questions: int, level: float
) -> float | None:
    """What is noticed in the same blocks in 95 % of cases, as a share of the baseline.

    Args:
        spread: of a pair's log ratio.
        repetitions: pairs.
        better: which direction is better.
        questions: that are asked together, taken as if independent.
        level: the accepted chance that any of them alarms where nothing differs.
    """
    if repetitions * math.log(2) < -math.log(level):
        return None  # not even a difference in every pair would be certain
    limit = float(stats.t.isf(level / questions, repetitions - 1))
    shift = shift_noticed(limit, repetitions - 1, spread / math.sqrt(repetitions))
    return None if shift is None else as_worsening(shift, better)


def noticed_apart(
    spread: float,
    repetitions: int,
    better: Better,
    *,
    floor: float,
    inflation: float,
    questions: int,
    level: float,
) -> float | None:
    """The same of two runs made at different times.

    Args:
        spread: of one block's log value.
        repetitions: blocks on each side.
        better: which direction is better.
        floor: by how much such runs may differ without being different, as a share.
        inflation: of the standard error.
        questions: that are asked together.
        level: as in `noticed`.
    """
    if log_chance(repetitions, repetitions) > math.log(level):
        return None
    freedom = 2 * repetitions - 2
    limit = float(stats.t.isf(level / questions, freedom))
    shift = shift_noticed(limit, freedom, spread * math.sqrt(2 / repetitions) * inflation)
    return None if shift is None else as_worsening(shift + as_shift(floor, better), better)


def _families(comparison: Comparison) -> int:
    """Quality is decided by itself, and takes its part of the chance of a false alarm."""
    rated = any(row.pair.candidate.workload.kind == "quality" for row in comparison.rows)
    return 2 if rated else 1


def _is_sampled(row: Compared) -> bool:
    """Whether its values vary from repetition to repetition, and were measured often enough."""
    answer = row.answer
    return (
        row.metric not in FACTS
        and row.pair.candidate.workload.kind != "quality"
        and answer.paired
        and answer.p_worse is not None
        and answer.spread is not None
    )


def _apart(row: Compared) -> Question:
    """The same values as if no block had both sides."""
    baseline, candidate = (each.by_block() for each in _samples(row))
    moved = {(f"after {session}", block): value for (session, block), value in candidate.items()}
    return Question(baseline, moved, row.better)


def _noise(row: Compared, apart: Answer, questions: int, level: float) -> Noise:
    answer = row.answer
    assert answer.spread is not None
    assert answer.ratio is not None
    assert answer.p_worse is not None
    assert answer.p_better is not None
    sides = _samples(row)
    values = [value for side in sides for value in side.values]
    middle = statistics.median(values)
    logs = [np.log(list(side.by_block().values())) for side in sides]
    # People ask for repetitions, the statistics for blocks of them.
    each = _per_block(row)
    counts = sorted({*REPETITIONS, answer.n * each})
    blocks = repetitions_for(
        answer, _default_limit(row.metric), questions=questions, confidence=1 - level
    )
    return Noise(
        cell=row.pair.name,
        metric=row.metric,
        unit=row.unit,
        value=middle,
        pairs=answer.n,
        per_block=each,
        # Of shares, so that no square leaves the range of numbers.
        repetition_cv=statistics.coefficient_of_variation([value / middle for value in values]),
        pair_spread=answer.spread,
        lag1=_lag1(logs),
        halves=_halves(logs, row.better),
        ratio=answer.ratio,
        p_worse=answer.p_worse,
        p_better=answer.p_better,
        inflation=apart.inflation,
        noticed=tuple(
            Noticed(
                count,
                noticed(answer.spread, count // each, row.better, questions=questions, level=level),
                _separate(apart, count // each, row.better, questions=questions, level=level),
            )
            for count in counts
        ),
        needed=None if blocks is None else blocks * each,
    )


def _samples(row: Compared) -> tuple[Samples, Samples]:
    pair = row.pair
    return pair.baseline.metrics[row.metric], pair.candidate.metrics[row.metric]


def _per_block(row: Compared) -> int:
    samples = _samples(row)[1]
    return max(1, round(len(samples.values) / max(len(set(samples.blocks)), 1)))


def _separate(
    apart: Answer, blocks: int, better: Better, *, questions: int, level: float
) -> float | None:
    """What separate runs of so many blocks would notice, by the answer for those that were made."""

    def of(count: int) -> float | None:
        if apart.spread is None:
            return None
        return noticed_apart(
            apart.spread,
            count,
            better,
            floor=LEAST_FLOOR,
            inflation=apart.inflation,
            questions=questions,
            level=level,
        )

    told, known = of(blocks), of(apart.n)
    if told is None or known is None or apart.noticeable is None:
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


def _halves(sides: Sequence[NDArray[np.float64]], better: Better) -> float | None:
    """How much worse the second half was than the first, both sides together."""
    first = np.concatenate([side[: len(side) // 2] for side in sides])
    second = np.concatenate([side[(len(side) + 1) // 2 :] for side in sides])
    if len(first) < 2 * _LEAST_HALF:
        return None
    shift = two_samples(first, second).centre
    return as_worsening(-shift if better == "higher" else shift, better)


def _default_limit(key: str) -> float:
    return share(DEFAULT_LIMITS[key]) or LIMITS[0]


def _suggestion(rows: Sequence[Noise], questions: int, level: float) -> Suggestion:
    """Repetitions that notice the default limits where that can be afforded, and limits that fit.

    Args:
        rows: all that a gate would ask about.
        questions: that are asked together.
        level: as in `noticed`.
    """
    least, most = REPETITIONS[0], REPETITIONS[-1]
    needed = [most if row.needed is None else row.needed for row in rows]
    repetitions = min(max(least, *needed), most)
    limits: dict[str, float] = {}
    hopeless: list[str] = []
    for key in dict.fromkeys(row.metric for row in rows):
        found = [
            noticed(
                row.pair_spread,
                repetitions // row.per_block,
                metric(key).better or "lower",
                questions=questions,
                level=level,
            )
            for row in rows
            if row.metric == key
        ]
        known = [each for each in found if each is not None]
        limit = next((each for each in LIMITS if each >= max(known, default=math.inf)), None)
        if limit is None:
            hopeless.append(key)
        else:
            limits[key] = limit
    drifted = max((abs(row.halves) for row in rows if row.halves is not None), default=0.0)
    floor = max(LEAST_FLOOR, math.ceil(drifted / FLOOR_STEP - 1e-9) * FLOOR_STEP)
    return Suggestion(repetitions, floor, limits, tuple(hopeless))


def _percent(value: float) -> str:
    return f"{round(100 * value, 6):.10g}%"
