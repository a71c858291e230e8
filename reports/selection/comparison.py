"""Two variants against each other: in one goal, or in all that is weighed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from edgebench.harness.metrics.statistics import MIN_BLOCKS
from edgebench.harness.results.cell import Summary
from edgebench.reports.differences import change_of, compared
from edgebench.reports.selection.goals import QUALITY, is_higher_better
from edgebench.reports.selection.samples import interval
from edgebench.reports.selection.score import weakest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.measured import Source
    from edgebench.reports.selection.goals import Stands

Order = Literal["better", "alike", "worse", "unsure"]

_EXACT: Final = 1e-9

NO_PAIRS: Final = "there is no value above 0 of both on every workload"


def ratio_of(stands: Stands, goal: str, one: str, other: str) -> Summary:
    """How many times one variant's value of a goal is another's.

    Of one run it is of pairs: the median of the ratios within blocks, the geometric mean of those
    over several workloads, perplexities over pairs of windows.

    Returns:
        The ratio with its interval, or the reason why there is none.
    """
    if goal == QUALITY:
        mine, theirs = stands.windows.get(one), stands.windows.get(other)
        if not mine or not theirs:
            return _ratio(None, reason="not both were rated")
        return change_of(compared(tuple(mine), tuple(theirs)))
    found = stands.samples.ratio(stands.workloads, one, other, goal)
    if found is None:
        return _ratio(None, reason=NO_PAIRS)
    point, drawn = found
    if drawn is None:
        return _ratio(point, reason=f"an interval needs {MIN_BLOCKS} blocks")
    low, high = interval(drawn)
    return _ratio(point, low=low, high=high)


def order_of(goal: str, ratio: Summary) -> Order:
    """Whether a variant is better than the one that it is compared with, and how sure that is."""
    if ratio.median is None or ratio.ci_low is None or ratio.ci_high is None:
        return "unsure"
    if ratio.ci_low <= 1 <= ratio.ci_high:
        return "alike"
    return "better" if (ratio.median > 1) == is_higher_better(goal) else "worse"


def score_ratio(
    stands: Stands, weights: Mapping[str, float], one: str, other: str
) -> Summary | None:
    """How many times one variant's score is another's; None where one has none.

    It does not depend on what else is compared: see `edgebench.reports.selection.score.scored`.
    """
    point, drawn, known = 0.0, np.zeros(1), True
    for goal, weight in weights.items():
        mine, theirs = stands.by_goal[goal][one], stands.by_goal[goal][other]
        if not mine.known or not theirs.known:
            return None
        sign = weight if is_higher_better(goal) else -weight
        point += sign * math.log(mine.value / theirs.value)
        if mine.drawn is None or theirs.drawn is None:
            known = False
        else:
            drawn = drawn + sign * (mine.drawn - theirs.drawn)
    if not weights:
        return None
    low, high = interval(np.exp(drawn)) if known else (None, None)
    value = math.exp(point)
    if low is not None and high is not None and high - low < _EXACT * value:
        # Constant values have no interval of any width, but for rounding.
        low, high = value, value
    both = (stands.by_goal[goal][each].summary.source for goal in weights for each in (one, other))
    return _ratio(value, low=low, high=high, source=weakest(both))


def _ratio(
    value: float | None,
    *,
    low: float | None = None,
    high: float | None = None,
    reason: str | None = None,
    source: Source = "derived",
) -> Summary:
    return Summary(
        median=value,
        ci_low=low,
        ci_high=high,
        n=0 if value is None else 1,
        unit="1",
        source=source,
        reason=reason,
    )
