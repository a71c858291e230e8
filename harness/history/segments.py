"""A series of runs made ready, its noise, and its best cuts into levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history import student

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHORTEST = 5
"""Runs of a level, at least: fewer are a few outliers."""

WINDOW = 5
"""Runs whose median an outlier is held against. Three of them in a row make a level."""

CLIP = 3.0
"""How many standard deviations off its neighbours' median a run may be; the rest is cut off."""

RESOLUTION = 5e-4
"""Share by which the runs of any series are taken to vary, at least: where all are equal, as
memory may be, a difference in the last digit is no change."""

CAUTION = 2.0
"""Standard errors by which successive runs are taken to resemble each other more than they seem to.
A machine that is slow for some runs makes levels by itself; too little of it makes false alarms."""

MOST_CUTS = 30
_TO_SIGMA = 1.4826
"""From the median absolute deviation to the standard deviation of a normal distribution."""

_CLOSEST = 0.8
"""Correlation of successive runs, at most: beyond, the noise itself is a drift."""

_GRID = np.linspace(0.0, 0.95, 96)
_RATIOS = (1 + _GRID) * (3 - _GRID**2) / (3 - _GRID)


@dataclass(frozen=True, slots=True)
class Noise:
    """How runs vary where nothing changes.

    Attributes:
        one: the standard deviation of one run.
        inflation: how many times the variance of a mean is larger than that of as many independent
            runs, because successive runs resemble each other.
        freedom: degrees of freedom.
    """

    one: float
    inflation: float
    freedom: int

    def slack(self, variance: float) -> float:
        """The standard deviation of what has this variance where that of one run is 1."""
        return self.one * math.sqrt(self.inflation * variance)

    def of_difference(self, left: int, right: int) -> float:
        """The standard deviation of the difference of two means of so many runs."""
        return self.slack(1 / left + 1 / right)

    def chance(self, t: float) -> float:
        """The two-sided p of a difference of so many standard deviations."""
        return student.two_sided(t, self.freedom)

    def quantile(self, share: float) -> float:
        """Of Student's distribution with these degrees of freedom."""
        return student.quantile(share, self.freedom)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A series to look for changes in.

    Attributes:
        y: logarithms, or the values themselves where one is not above 0; outliers clipped.
        logarithmic: which of the two.
        floor: the least noise that is believed.
        sums: of `y` before each place, and over all.
        follows: the correlation of successive runs, as their differences tell it.
    """

    y: Array
    logarithmic: bool
    floor: float
    sums: Array
    follows: float

    def mean(self, start: int, end: int) -> float:
        """Of the runs from `start` to `end`, the end left out."""
        return float((self.sums[end] - self.sums[start]) / (end - start))

    def squares(self, start: int, end: int) -> float:
        """The sum of squares around that mean."""
        rest = self.y[start:end] - self.mean(start, end)
        return float(rest @ rest)

    def value(self, level: float) -> float:
        """A level as a value of the metric."""
        return math.exp(level) if self.logarithmic else level

    def noise(self, edges: Sequence[int]) -> Noise:
        """The noise around the levels between such edges."""
        rest = self.y.copy()
        for start, end in pairwise(edges):
            rest[start:end] -= self.mean(start, end)
        return self.noise_of(rest, len(edges) - 1)

    def noise_of(self, rest: Array, taken: int, caution: float = CAUTION) -> Noise:
        """The noise of what is left after so many parameters were fitted.

        Args:
            rest: the residuals.
            taken: how many parameters.
            caution: standard errors of the correlation of successive runs that are added to it.
        """
        freedom = max(1, len(rest) - taken)
        squares = float(rest @ rest)
        one = max(math.sqrt(squares / freedom), self.floor)
        follows = float(rest[1:] @ rest[:-1]) / squares if squares > 0 else 0.0
        # What no level fits, such as a slope, looks like correlation, except in differences.
        follows = min(follows, self.follows)
        # What was fitted hides correlation; and of an estimate this vague an upper end is taken.
        follows += (taken + 3 * max(follows, 0.0)) / len(rest) + caution / math.sqrt(len(rest))
        follows = min(max(follows, 0.0), _CLOSEST)
        return Noise(one, (1 + follows) / (1 - follows), freedom)

    def places(self, start: int, at: int, end: int, noise: Noise) -> tuple[int, int]:
        """Between which runs the first one after a step is, with about 95 % certainty.

        Those cuts whose squares are no more than the 95th percentile of chi squared above the best.
        """
        cuts = np.arange(start + 1, end)
        left = (self.sums[cuts] - self.sums[start]) / (cuts - start)
        right = (self.sums[end] - self.sums[cuts]) / (end - cuts)
        saved = (right - left) ** 2 * (cuts - start) * (end - cuts) / (end - start)
        near = saved >= saved[at - start - 1] - 3.84 * noise.one**2 * noise.inflation
        earliest = latest = at
        while earliest - 1 > start and near[earliest - 1 - start - 1]:
            earliest -= 1
        while latest + 1 < end and near[latest + 1 - start - 1]:
            latest += 1
        return earliest, latest


def prepared(values: Sequence[float]) -> Prepared:
    """A series, at least `WINDOW` finite values, made ready."""
    raw = np.asarray(values, dtype=np.float64)
    logarithmic = bool(raw.min() > 0)
    y = np.log(raw) if logarithmic else raw
    floor = RESOLUTION if logarithmic else max(RESOLUTION * float(np.abs(raw).max()), 1e-12)
    y = _clipped(y, floor)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    return Prepared(y, logarithmic, floor, sums, _follows(y))


def cuts(series: Prepared) -> Iterator[list[int]]:
    """The best ways to cut a series into two levels, into three, and so on.

    They are the ones with the least squares of all, by dynamic programming (optimal partitioning).

    Yields:
        The edges of the levels, the series' two ends among them.
    """
    costs = _costs(series.y - np.median(series.y))
    count = len(series.y)
    fits = costs[:, 0].copy()
    through = np.empty_like(costs)
    backs: list[NDArray[np.intp]] = []
    for _number in range(min(MOST_CUTS, count // SHORTEST - 1)):
        np.add(costs, fits, out=through)
        back = through.argmin(axis=1)
        fits = through[np.arange(count + 1), back]
        backs.append(back)
        edges = [count]
        for each in reversed(backs):
            edges.append(int(each[edges[-1]]))
        yield [0, *reversed(edges)]


def _costs(y: Array) -> Array:
    """What tells sums of squares around the mean of a stretch [end, start) apart.

    That is minus the square of its sum over its length: the sum of the squares themselves is the
    same however a series is cut. Infinite of stretches that are too short.
    """
    sums = np.concatenate([[0.0], np.cumsum(y)])
    shares, short = _lengths(len(y))
    costs: Array = sums[:, None] - sums[None, :]
    costs *= costs
    costs *= shares
    np.copyto(costs, np.inf, where=short)
    return costs


@lru_cache(maxsize=4)
def _lengths(count: int) -> tuple[Array, NDArray[np.bool_]]:
    """Minus 1 / length of every stretch [end, start) of so many runs, and which are too short."""
    places = np.arange(count + 1)
    lengths = places[:, None] - places[None, :]
    return -1 / np.maximum(lengths, 1), lengths < SHORTEST


def _clipped(y: Array, floor: float) -> Array:
    half = WINDOW // 2
    middle = np.empty_like(y)
    middle[half:-half] = np.median(np.lib.stride_tricks.sliding_window_view(y, WINDOW), axis=1)
    for place in range(half):  # At both ends there are fewer neighbours.
        middle[place] = np.median(y[: place + half + 1])
        middle[-1 - place] = np.median(y[-1 - place - half :])
    off = y - middle
    reach = CLIP * max(_TO_SIGMA * float(np.median(np.abs(off))), floor)
    return np.asarray(middle + np.clip(off, -reach, reach), dtype=np.float64)


def _follows(y: Array) -> float:
    """The correlation of successive runs, by differences of differences.

    No level and no slope is in them, and steps are in few. Of a first-order autoregression with
    the correlation r, their variance over two runs is (1 + r) (3 - r^2) / (3 - r) times that over
    one.
    """
    near = float(np.median(np.abs(y[2:] - 2 * y[1:-1] + y[:-2])))
    far = float(np.median(np.abs(y[4:] - 2 * y[2:-2] + y[:-4])))
    if near == 0:
        return _CLOSEST
    return float(np.interp((far / near) ** 2, _RATIOS, _GRID))
