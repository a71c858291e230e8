"""What a run of the same thing as baseline and candidate tells, as a whole.

How much one repetition varies; whether the machine's pace drifts; and how small a change a gate on
this machine could notice, measured in the same blocks or at different times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.decide import decide
from edgebench.harness.compare.model import FACTS
from edgebench.harness.gate.family import Family
from edgebench.harness.gate.policy import CONFIDENCE, DEFAULT_LIMITS
from edgebench.harness.noise.drift import drifts_of
from edgebench.harness.noise.figures import Asked, as_if_apart, noise_of_row
from edgebench.harness.noise.model import NoiseReport
from edgebench.harness.noise.suggestion import floor_for, suggestion_of
from edgebench.harness.scenario.quantities import share

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Compared, Comparison, Matched


def noise_of(matched: Matched, *, confidence: float = CONFIDENCE) -> NoiseReport:
    """The noise of two sides that ran the same thing in the same blocks.

    Args:
        matched: both sides.
        confidence: of the gate that is thought of, over all that it asks.
    """
    comparison = compare(
        matched,
        confidence=confidence,
        wanted=lambda _, key: key in DEFAULT_LIMITS,
        one_sided=True,  # as a gate asks
    )
    sampled = [row for row in comparison.rows if _is_sampled(row)]
    drifts = drifts_of(sampled)
    floor = floor_for(drifts)
    # Quality is decided by itself, and takes its part of the chance of a false alarm.
    rated = Family.of(comparison.rows, floor).rated
    asked = Asked(len(sampled), (1 - confidence) / (2 if rated else 1), floor)
    # As if they had been measured at different times: how much a run drifts, each tells by itself.
    apart = decide(
        [as_if_apart(row) for row in sampled], confidence=1 - asked.level, noise_floor=floor
    )
    rows = tuple(noise_of_row(row, other, asked) for row, other in zip(sampled, apart, strict=True))
    return NoiseReport(
        comparison=comparison,
        rows=rows,
        alarms=tuple(row for row in rows if row.certain(confidence)),
        drifts=drifts,
        suggestion=suggestion_of(rows, floor, _of_facts(comparison, sampled)) if rows else None,
    )


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


def _of_facts(comparison: Comparison, sampled: list[Compared]) -> dict[str, float]:
    """The default limits of what repetitions don't vary: a model's size, its quality."""
    varied = {row.metric for row in sampled}
    keys = dict.fromkeys(
        row.metric
        for row in comparison.rows
        if row.metric not in varied
        and row.worsening is not None
        and (row.metric in FACTS or row.pair.candidate.workload.kind == "quality")
    )
    return {key: share(DEFAULT_LIMITS[key]) or 0.0 for key in keys}
