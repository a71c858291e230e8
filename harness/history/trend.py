"""A steady climb or fall over runs: whether there is one, and how much it adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.harness.history.segments import Prepared

    Array = NDArray[np.float64]

SHORTEST_DRIFT = 10
"""Runs of a drift, at least."""

CAUTION = 1.0
"""As of a step, and less: that all runs go one way is harder to make by chance."""

_Z = 1.959964
"""Of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through a stretch.

    Attributes:
        first, last: its values at both ends.
        total, low, high: by how much it changes over the whole stretch, with the 95 % interval.
        chance: the p of Mann and Kendall's test.
    """

    first: float
    last: float
    total: float
    low: float
    high: float
    chance: float


def line(series: Prepared, start: int, end: int) -> Line | None:
    """Mann and Kendall's test, and Theil and Sen's line, of the runs from `start` to `end`.

    The test's variance is widened for runs that resemble their neighbours; so is the interval of
    the slope (Sen 1968).

    Returns:
        None of too few runs.
    """
    y = series.y[start:end]
    count = len(y)
    if count < SHORTEST_DRIFT:
        return None
    rows, columns = np.triu_indices(count, 1)
    rises = y[columns] - y[rows]
    # Differences below what is believed of any noise are ties.
    score = float(np.sum(np.sign(rises) * (np.abs(rises) > series.floor * 1e-6)))
    noise = series.noise_of(residuals(y), 2, CAUTION)
    _values, ties = np.unique(y, return_counts=True)
    variance = count * (count - 1) * (2 * count + 5)
    variance -= int(np.sum(ties * (ties - 1) * (2 * ties + 5)))
    spread = math.sqrt(max(variance, 1) / 18 * noise.inflation)
    chance = math.erfc(max(abs(score) - 1, 0.0) / spread / math.sqrt(2))
    slopes = np.sort(rises / (columns - rows))
    half = _Z * spread
    last = len(slopes) - 1
    low = slopes[max(0, math.floor((len(slopes) - half) / 2))]
    high = slopes[min(last, math.ceil((len(slopes) + half) / 2))]
    slope = float(np.median(slopes))
    first, final = ends(y, slope)
    reach = count - 1
    return Line(first, final, slope * reach, float(low) * reach, float(high) * reach, chance)


def ends(y: Array, slope: float | None = None) -> tuple[float, float]:
    """The values at both ends of Theil and Sen's line."""
    if slope is None:
        slope = _slope(y)
    along = np.arange(len(y))
    first = float(np.median(y - slope * along))
    return first, first + slope * (len(y) - 1)


def residuals(y: Array) -> Array:
    """What is left of a stretch without its line of least squares."""
    along = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(along @ y) / float(along @ along)
    return np.asarray(y - y.mean() - slope * along)


def gain(series: Prepared, edges: Sequence[int], one: float) -> float:
    """By how much a line explains a stretch better than its levels do, by Schwarz's criterion.

    Args:
        series: all of it.
        edges: of the levels; two of one level.
        one: the standard deviation of a run.
    """
    start, end = edges[0], edges[-1]
    levels = sum(
        float(np.sum((series.y[left:right] - series.mean(left, right)) ** 2))
        for left, right in pairwise(edges)
    )
    rest = residuals(series.y[start:end])
    # Each level has its height, each cut its place; the line has height and slope.
    parameters = 2 * (len(edges) - 1) - 1
    return (levels - float(rest @ rest)) / one**2 + (parameters - 2) * math.log(end - start)


def _slope(y: Array) -> float:
    rows, columns = np.triu_indices(len(y), 1)
    return float(np.median((y[columns] - y[rows]) / (columns - rows)))
