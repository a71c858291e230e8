"""Levels of a rate that was read second after second, and what its noise is worth.

Runs of weeks are another matter (`edgebench.harness.history.segments`): there are few of them, and
hardly any resembles the one before. Seconds do, so noise is told here from how much the series
bends: from second differences, in which no level and no slope counts, and a step in few places
only. A first-order autoregression is taken for granted, with as much likeness of neighbours as the
second differences at several distances leave possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.history import student

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_LEVEL: Final = 3
"""Values of a level, at least: a boost is over after seconds. Fewer are clipped as outliers."""

WIDE: Final = 11
"""Values whose median one is held against, where there are as many on both sides: fewer than six
that are far off are a hiccup, which is no level."""
NARROW: Final = 5
"""The same near the ends, where a boost is, and in short series."""

CLIP: Final = 3.0
"""How many standard deviations off that median a value may be; the rest is cut off."""

FLOOR: Final = 5e-4
"""Share by which the values of any series are taken to vary, at least."""

COARSEST: Final = 60
"""A long series is also looked at in so many means: noise of minutes is not seen in seconds."""
STEP: Final = 10
"""How many times coarser each further look is, at most."""

LAGS: Final = (2, 3, 4, 5)
"""Distances whose second differences, against those of neighbours, tell how alike those are."""
CAUTION: Final = 4.5
"""By so much over the root of the count that comparison may be too low."""
CLOSEST: Final = 0.99

JUMP: Final = 4.5
"""Standard deviations that make a difference of neighbours a jump, which is no noise."""
JUMP_WINDOWS: Final = (1, 2, 3)
MOST_JUMPS: Final = 12
LEAST_STEPS: Final = 0.35
"""Of the differences, the share that no jump is near, for certain: the noise is told from them."""

CYCLE_WINDOWS: Final = (3, 10)
"""Of so many values running means are taken where a series may go up and down: first of few, since
parts may be short, then of more, since noise may hide them."""
LONGER: Final = 1.5
"""By so much longer than the first low part, the second and last one is a fall for good."""

CHANCE: Final = 0.01
"""How often a series that only varies may be called a fallen one, all places taken together."""

_TO_SIGMA: Final = 1.4826
_OF_LEAST: Final = 1 / 0.4538
"""The same from the absolute value below which 35 % are."""
_GRID: Final = np.linspace(0.0, CLOSEST, 199)


def _bend(alike: Array) -> Array:
    """Variance of second differences where neighbours are so much alike, over that of a value."""
    bend: Array = 2 * (1 - alike) * (3 - alike)
    return bend


@dataclass(frozen=True, slots=True)
class Grain:
    """The noise of means of so many values.

    Attributes:
        together: how many values each is the mean of.
        variance: of one of them.
        alike: the correlation of neighbours, an upper end.
    """

    together: int
    variance: float
    alike: float

    @classmethod
    def of(cls, y: Array, together: int) -> Grain:
        """That of a series in means of `together` values."""
        whole = len(y) // together * together
        means = without_jumps(y[:whole].reshape(-1, together).mean(axis=1))
        near = _second_differences(means, 1)
        lags = [lag for lag in LAGS if 4 * lag < len(means)]
        alike = CLOSEST
        if near > FLOOR**2 and lags:
            far = sum(_second_differences(means, lag) for lag in lags) / len(lags)
            ratio = far / near * (1 + CAUTION / math.sqrt(len(means)))
            expected = sum(_bend(_GRID**lag) for lag in lags) / len(lags) / _bend(_GRID)
            alike = float(np.interp(ratio, expected, _GRID))
        elif near <= FLOOR**2:
            # What does not vary at all but for a step or two is not alike, it is exact.
            near, alike = FLOOR**2 * 6, 0.0
        variance = near / float(_bend(np.array(alike)))
        return cls(together, variance, alike)

    def of_difference(self, left: Array | int, right: Array | int) -> Array:
        """The variance of the difference of the means of so many neighbouring values."""
        one = np.maximum(np.asarray(left) / self.together, 1.0)
        two = np.maximum(np.asarray(right) / self.together, 1.0)
        r = self.alike
        both = r * (1 - r**one) * (1 - r**two) / (1 - r) ** 2 / (one * two)
        found: Array = self.variance * (_of_mean(one, r) + _of_mean(two, r) - 2 * both)
        return np.maximum(found, 0.0)


def without_jumps(values: Array) -> Array:
    """The series with its abrupt jumps, which no noise of this kind makes, taken back."""
    left = values.copy()
    for _jump in range(MOST_JUMPS):
        sums = np.concatenate([[0.0], np.cumsum(left)])
        found: list[tuple[float, float, int]] = []
        for window in JUMP_WINDOWS:
            at = np.arange(window, len(left) - window + 1)
            if len(at) < LEAST_LEVEL:
                continue
            steps = (sums[at + window] - 2 * sums[at] + sums[at - window]) / window
            usual = max(_OF_LEAST * float(np.quantile(np.abs(steps), LEAST_STEPS)), FLOOR)
            place = int(np.argmax(np.abs(steps)))
            found.append((abs(float(steps[place])) / usual, float(steps[place]), int(at[place])))
        if not found or max(found)[0] < JUMP:
            break
        _size, step, cut = max(found)
        left[cut:] -= step
    return left


def _of_mean(count: Array, r: float) -> Array:
    """The variance of a mean of so many, over that of one."""
    found: Array = ((1 + r) / (1 - r) - 2 * r * (1 - r**count) / (count * (1 - r) ** 2)) / count
    return found


def _second_differences(values: Array, lag: int) -> float:
    """Their mean square, outliers clipped."""
    bends = values[2 * lag :] - 2 * values[lag:-lag] + values[: -2 * lag]
    reach = CLIP * max(_TO_SIGMA * float(np.median(np.abs(bends))), FLOOR)
    clipped = np.clip(bends, -reach, reach)
    return float(clipped @ clipped) / len(clipped)


@dataclass(frozen=True)
class Levels:
    """Logarithms of a series in which falls are looked for.

    Attributes:
        y: with outliers clipped.
    """

    y: Array

    @classmethod
    def of(cls, values: Sequence[float]) -> Levels:
        """Of values above 0, at least `NARROW` of them."""
        return cls(clipped(np.log(np.asarray(values, dtype=np.float64))))

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.y)

    @cached_property
    def sums(self) -> Array:
        """Of the values before each place, and of all."""
        return np.concatenate([[0.0], np.cumsum(self.y)])

    @cached_property
    def grains(self) -> tuple[Grain, ...]:
        """The noise of the values, and of longer and longer means of them."""
        return tuple(Grain.of(self.y, each) for each in _togethers(len(self.y)))

    def mean(self, start: int, end: int) -> float:
        """Of the values from `start` to `end`, the end left out."""
        return float((self.sums[end] - self.sums[start]) / (end - start))

    def deviation(self, left: Array | int, right: Array | int) -> Array:
        """The standard deviation of the difference of neighbouring means, by the worst grain."""
        variances = [
            np.where(np.minimum(left, right) >= 2 * each.together, found, 0.0)
            if each.together > 1
            else found
            for each in self.grains
            for found in (each.of_difference(left, right),)
        ]
        deviation: Array = np.sqrt(np.maximum.reduce(variances))
        return np.maximum(deviation, FLOOR)

    def limit(self, places: float) -> float:
        """How many standard deviations are certain, so many places looked at."""
        freedom = max(5, len(self) // 2)
        return student.quantile(1 - CHANCE / max(places, 1.0) / 2, freedom)

    def drop(self, start: int, cut: int, end: int) -> float:
        """How much lower the second level is, in logarithms; below 0 where it is higher."""
        return self.mean(start, cut) - self.mean(cut, end)

    def is_certain(
        self, start: int, cut: int, end: int, places: float, *, rise: bool = False
    ) -> bool:
        """Whether the values from `cut` on are lower, by all of both sides or by those near it.

        Args:
            start: of the first level.
            cut: of the second.
            end: of both.
            places: so many cuts were looked at to find this one.
            rise: whether they are higher instead.
        """
        windows = list(_windows(max(cut - start, end - cut)))
        limit = self.limit(places)
        for window in windows:
            low, high = max(start, cut - window), min(end, cut + window)
            if min(cut - low, high - cut) < LEAST_LEVEL:
                continue
            fall = self.drop(low, cut, high) * (-1 if rise else 1)
            if fall > limit * float(self.deviation(cut - low, high - cut)):
                return True
        return False

    def best_cut(self, start: int, end: int, last: int = LEAST_LEVEL) -> int | None:
        """Where two levels fit best, the second one lower and of at least `last` values."""
        at = np.arange(start + LEAST_LEVEL, end - last + 1)
        if not len(at):
            return None
        left = (self.sums[at] - self.sums[start]) / (at - start)
        right = (self.sums[end] - self.sums[at]) / (end - at)
        gain = np.where(right < left, (right - left) ** 2 * (at - start) * (end - at), 0.0)
        return int(at[np.argmax(gain)]) if gain.any() else None

    def places(self, start: int, cut: int, end: int) -> tuple[int, int]:
        """Between which places the first one after a step is, with about 95 % certainty.

        Those cuts whose squares are no more than the 95th percentile of chi squared above the best.
        """
        cuts = np.arange(start + 1, end)
        left = (self.sums[cuts] - self.sums[start]) / (cuts - start)
        right = (self.sums[end] - self.sums[cuts]) / (end - cuts)
        saved = (right - left) ** 2 * (cuts - start) * (end - cuts) / (end - start)
        one = self.grains[0]
        inflation = min((1 + one.alike) / (1 - one.alike), 10.0)
        near = saved >= saved[cut - start - 1] - 3.84 * one.variance * inflation
        earliest = latest = cut
        while earliest - 1 > start and near[earliest - 1 - start - 1]:
            earliest -= 1
        while latest + 1 < end and near[latest + 1 - start - 1]:
            latest += 1
        return earliest, latest

    def lowest(self, least: int, blocks: int = 120) -> tuple[int, int] | None:
        """The stretch of at least `least` values that is lowest against all before and after it.

        None where nothing is lower than both. Of a long series the edges are those of blocks.
        """
        size = max(1, -(-len(self) // blocks))
        edges = np.append(np.arange(0, len(self), size), len(self))
        sums, best, found = self.sums[edges], 0.0, None
        end = len(self)
        for place in range(1, len(edges) - 2):
            low = int(edges[place])
            highs = np.arange(place + 1, len(edges) - 1)
            stop = edges[highs]
            inside = (sums[highs] - sums[place]) / (stop - low)
            before = sums[place] / low
            after = (sums[-1] - sums[highs]) / (end - stop)
            fits = (stop - low >= least) & (low >= LEAST_LEVEL) & (end - stop >= LEAST_LEVEL)
            gap = np.minimum(before, after) - inside
            outside = (sums[place] + sums[-1] - sums[highs]) / (low + end - stop)
            weight = (outside - inside) ** 2 * (stop - low) * (low + end - stop)
            gain = np.where(fits & (gap > 0), weight, 0.0)
            if gain.max(initial=0.0) > best:
                at = int(np.argmax(gain))
                best, found = float(gain[at]), (low, int(stop[at]))
        return found

    def deepest(self, window: int) -> tuple[float, int]:
        """By how much running means fell at most, and the middle of the lower one.

        A mean of so many values is held against all those of as many before it, in logarithms.
        """
        means = (self.sums[window:] - self.sums[:-window]) / window
        drops = np.maximum.accumulate(means) - means
        lowest = int(np.argmax(drops))
        return float(drops[lowest]), lowest + window // 2

    def again_and_again(self, least: float) -> list[tuple[int, int, int]]:
        """The falls of a series that goes up and down: begin before, begin and end of the low part.

        Empty where there are fewer than two falls with a rise between them, or where the second and
        last low part lasts far longer than the first: that is a fall for good.

        Args:
            least: how far each has to fall, in logarithms.
        """
        for window in CYCLE_WINDOWS:
            cuts = self._turns(window, least)
            parts = list(zip(cuts[::2], cuts[1::2], cuts[2::2], strict=False))
            deep = all(
                min(cut - start, end - cut) >= LEAST_LEVEL and self.drop(start, cut, end) >= least
                for start, cut, end in parts
            )
            lows = [end - cut for _start, cut, end in parts]
            if deep and (len(lows) > 2 or (len(lows) > 1 and lows[1] <= LONGER * lows[0])):  # noqa: PLR2004
                return parts
        return []

    def _turns(self, window: int, least: float) -> list[int]:
        """Where a part begins, high ones and low ones in turn, a high one first; and the end.

        Noise must not take it up and down: a part begins where three quarters of the way are done.
        """
        if len(self) < 2 * window:
            return []
        smooth = (self.sums[window:] - self.sums[:-window]) / window
        high, low = (float(each) for each in np.quantile(smooth, [0.9, 0.1]))
        if high - low < least:
            return []
        upper, lower = high - (high - low) / 4, low + (high - low) / 4
        begins_low = is_low = bool(smooth[0] < (high + low) / 2)
        cuts = [0]
        for place, value in enumerate(smooth.tolist()):
            if value > upper if is_low else value < lower:
                cuts.append(self._turn(cuts[-1], place + window, rise=is_low))
                is_low = not is_low
        return [*cuts[begins_low:], len(self)]

    def _turn(self, start: int, end: int, *, rise: bool) -> int:
        """Where two levels of this part fit best, the second one higher or lower."""
        at = np.arange(start + 1, end)
        left = (self.sums[at] - self.sums[start]) / (at - start)
        right = (self.sums[end] - self.sums[at]) / (end - at)
        gap = np.maximum(right - left if rise else left - right, 0.0)
        return int(at[np.argmax(gap**2 * (at - start) * (end - at))])


def clipped(y: Array) -> Array:
    """Without what is far off the values around it for a short time."""
    wide = WIDE if len(y) >= 4 * WIDE else NARROW
    middle = np.empty_like(y)
    half, few = wide // 2, NARROW // 2
    middle[half:-half] = np.median(np.lib.stride_tricks.sliding_window_view(y, wide), axis=1)
    for place in range(half):
        # Near the ends there are fewer neighbours, and a boost may be short.
        near = slice(max(0, place - few), place + few + 1)
        middle[place] = np.median(y[near])
        middle[-1 - place] = np.median(y[::-1][near])
    off = y - middle
    reach = CLIP * max(_TO_SIGMA * float(np.median(np.abs(off))), FLOOR)
    return np.asarray(middle + np.clip(off, -reach, reach), dtype=np.float64)


def _togethers(count: int) -> Iterator[int]:
    together = 1
    yield together
    coarsest = count // COARSEST
    while together < coarsest:
        together = min(together * STEP, coarsest)
        yield together


def _windows(longest: int) -> Iterator[int]:
    window = LEAST_LEVEL
    while window < longest:
        yield window
        window *= 2
    yield longest
