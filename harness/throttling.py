"""Whether a device slowed itself down: a lasting fall of the rate, and of the clock with it.

A fall of the rate alone has many causes. A fall of the clock at the same moment has two, heat and
a limit of power, and both are what is meant by throttling.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.history.segments import SHORTEST, Noise, Prepared, prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LEAST_FALL: Final = 0.05
"""Share of the rate whose loss is worth a verdict."""

CHANCE: Final = 0.01
"""How often a rate that only varies may be called a fallen one, all places of a fall together."""

WITH_IT: Final = 0.5
"""Of the rate's fall, how much the clock's has to be at least. What computes slows down as the
clock does, and what waits for memory less: the clock falls by as much or by more. Half of it
leaves room for a clock that is read once a second only."""

SEEN: Final = 0.005
"""Of a clock that fell by less it is said that it did not: rounded, it is nothing."""

BLURRED: Final = 0.2
"""A fall by this share has to be one that could be seen, or nothing can be said of a stretch."""

LEAST_INTERVALS: Final = 2 * SHORTEST

LEAST_LEVEL: Final = 3
"""Intervals of a level, at least: a boost is over after seconds. Fewer are clipped as outliers."""

NEAR: Final = 5
"""So many intervals before and after the fall are looked at for what the clock did."""

MOST_OF_IT: Final = 0.8
"""Of the fall, what has to lie between those; where it took longer, more of them are taken."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the rate.

    Attributes:
        throttled: None where it can't be decided.
        at_s: when the rate fell; None where it did not.
        because: what was seen, or why it can't be decided, a sentence without a full stop.
    """

    throttled: bool | None
    at_s: float | None
    because: str


@dataclass(frozen=True, slots=True)
class _Fall:
    """A certain fall.

    Attributes:
        place: the first one of the lower level.
        earliest, latest: between which the first one is with about 95 % certainty.
        share: of the level before that was lost.
    """

    place: int
    earliest: int
    latest: int
    share: float


@dataclass(frozen=True, slots=True)
class _Levels:
    """The best cut of a series into two levels.

    Attributes:
        cut: the first place of the second level.
        earliest, latest: between which that is.
        share: by which it is lower.
        chance: of such a difference where there is none, all places taken together.
        least_seen: the least fall, in the middle, that would have been certain.
    """

    cut: int
    earliest: int
    latest: int
    share: float
    chance: float
    least_seen: float

    @classmethod
    def of(cls, values: Sequence[float], together: int) -> _Levels:
        """Cut a series of at least `LEAST_INTERVALS` values above 0.

        Args:
            values: the series.
            together: over how many neighbours the noise is told.
        """
        series = prepared(values)
        end = len(series.y)
        cut = _best_cut(series)
        change = series.mean(cut, end) - series.mean(0, cut)
        noise = _noise(series, cut, together)
        earliest, latest = series.places(0, cut, end, noise)
        places = end - 2 * LEAST_LEVEL + 1
        certain = noise.quantile(1 - CHANCE / places / 2)
        return cls(
            cut=cut,
            earliest=earliest,
            latest=latest,
            share=1 - math.exp(change),
            chance=noise.chance(change / noise.of_difference(cut, end - cut)) * places,
            least_seen=1 - math.exp(-certain * noise.of_difference(end // 2, end - end // 2)),
        )

    def fall(self) -> _Fall | None:
        """It, if the second level is lower for certain and by enough."""
        real = self.share >= LEAST_FALL and self.chance < CHANCE
        return _Fall(self.cut, self.earliest, self.latest, self.share) if real else None


def _best_cut(series: Prepared) -> int:
    """Where two levels leave the least squares."""
    end = len(series.y)
    at = np.arange(LEAST_LEVEL, end - LEAST_LEVEL + 1)
    left, right = series.sums[at] / at, (series.sums[end] - series.sums[at]) / (end - at)
    return int(at[np.argmax((right - left) ** 2 * at * (end - at))])


def _noise(series: Prepared, cut: int, together: int) -> Noise:
    """The noise around the two levels.

    Seconds that follow each other resemble each other for longer than a correlation of neighbours
    tells. So what a mean varies by is told from means of `together` of them, which in turn may
    resemble each other.
    """
    rest = series.y.copy()
    rest[:cut] -= series.mean(0, cut)
    rest[cut:] -= series.mean(cut, len(rest))
    fine = series.noise_of(rest, 2)
    if together == 1 or len(rest) < LEAST_INTERVALS * together:
        return fine
    coarse = prepared(np.exp(_taken_together(series.y, together)).tolist())
    rough = coarse.noise_of(_taken_together(rest, together), 2)
    inflation = rough.inflation * together * (rough.one / fine.one) ** 2
    return Noise(fine.one, inflation, rough.freedom)


def _taken_together(values: NDArray[np.float64], together: int) -> NDArray[np.float64]:
    """Means of so many neighbours; what is left at the end is left out."""
    whole = len(values) // together * together
    means: NDArray[np.float64] = values[:whole].reshape(-1, together).mean(axis=1)
    return means


def judged(
    t_s: Sequence[float],
    rates: Sequence[float | None],
    clocks_hz: Sequence[float | None],
    celsius: Sequence[float | None],
    *,
    together: int = 1,
    kept_share: float | None = None,
) -> Verdict:
    """Look for one lasting fall of the rate, and whether the clock fell with it.

    The place is where two levels fit the logarithms of the rates best (least squares, outliers
    clipped). Their difference is held against the noise that is left, with the likeness of
    successive intervals taken into account, and multiplied by the number of places looked at
    (Bonferroni), as `edgebench history` does with runs.

    Args:
        t_s: the middle of each interval.
        rates: decode rates, None where nothing was decoded.
        clocks_hz: as long as `t_s`, None where not read.
        celsius: likewise.
        together: over how many neighbouring intervals the noise is told, for short intervals.
        kept_share: the sustained rate divided by the burst rate, where known: below 1 by as much as
            a fall, nobody says that the rate did not fall.
    """
    kept = [place for place, rate in enumerate(rates) if rate is not None and rate > 0]
    if len(kept) < LEAST_INTERVALS:
        why = (
            f"too short to tell: {len(kept)} intervals with a rate, and {LEAST_INTERVALS} are the "
            "fewest in which a fall can be seen"
        )
        return Verdict(None, None, why)
    levels = _Levels.of([rates[place] or 0.0 for place in kept], together)
    fall = levels.fall()
    if fall is None and levels.least_seen > BLURRED:
        why = (
            "the rate varied so much that no fall below "
            f"{_percent(levels.least_seen)} could be told from it"
        )
        return Verdict(None, None, why)
    if fall is None and kept_share is not None and kept_share <= 1 - LEAST_FALL:
        why = (
            f"the rate was {_percent(1 - kept_share)} lower at the end than at the beginning, and "
            "varied so much that this may be chance"
        )
        return Verdict(None, None, why)
    if fall is None:
        alone = _clock_alone(clocks_hz, together)
        return Verdict(throttled=False, at_s=None, because=f"the rate did not fall{alone}")
    place = kept[fall.place]
    at_s = (t_s[kept[fall.place - 1]] + t_s[place]) / 2
    seen = f"the rate fell by {_percent(fall.share)} after {at_s:.0f} s"
    # Where nothing was decoded, nothing is said of the clock either.
    throttled, why = _cause(
        fall,
        [rates[each] or 0.0 for each in kept],
        [clocks_hz[each] for each in kept],
        together,
    )
    heat = _heat(place, celsius) if throttled else ""
    return Verdict(throttled=throttled, at_s=at_s, because=f"{seen}, and {why}{heat}")


def _cause(
    fall: _Fall, rates: Sequence[float], clocks_hz: Sequence[float | None], together: int
) -> tuple[bool | None, str]:
    """Whether the clock fell with the rate, and what is to be said of it."""
    known = _known(clocks_hz)
    near = _near(fall, rates, clocks_hz)
    if near is None:
        return None, "the clock can't be read: the cause is not known"
    if len(set(known)) == 1:
        why = "the clock reads the same at all times, as on virtual machines"
        return None, f"{why}: the cause is not known"
    enough = WITH_IT * fall.share
    if near >= enough:
        return True, f"the clock by {_percent(near)}"
    other = _Levels.of(known, together).fall() if len(known) >= LEAST_INTERVALS else None
    if other is not None and other.share >= max(enough, near + SEEN):
        why = f"the clock fell by {_percent(other.share)}, but not at that moment"
        return False, f"{why}: something else took the time"
    if near >= SEEN:
        return False, f"the clock fell by {_percent(near)} only: something else took the time"
    return False, "the clock did not fall: something else took the time"


def _near(fall: _Fall, rates: Sequence[float], clocks_hz: Sequence[float | None]) -> float | None:
    """The share that the clock lost from shortly before the fall to shortly after it.

    Shortly is `NEAR` intervals, or so many that most of the fall lies between: a decline that took
    minutes is held against what the clock did in the same minutes. None without such readings.
    """
    reach, end = NEAR, len(rates)
    while True:
        before = slice(max(0, fall.earliest - reach), fall.earliest)
        after = slice(fall.latest, fall.latest + reach)
        clock = _lost(_known(clocks_hz[before]), _known(clocks_hz[after]))
        enough = (_lost(rates[before], rates[after]) or 0.0) >= MOST_OF_IT * fall.share
        if (enough and clock is not None) or reach >= end:
            return clock
        reach *= 2


def _lost(before: Sequence[float], after: Sequence[float]) -> float | None:
    if not before or not after:
        return None
    return 1 - statistics.median(after) / statistics.median(before)


def _clock_alone(clocks_hz: Sequence[float | None], together: int) -> str:
    """A fall of the clock that the rate did not follow is worth a word."""
    known = _known(clocks_hz)
    if len(known) < LEAST_INTERVALS:
        return ""
    fall = _Levels.of(known, together).fall()
    return "" if fall is None else f"; the clock alone fell by {_percent(fall.share)}"


def _heat(place: int, celsius: Sequence[float | None]) -> str:
    """The temperature at the fall; read about once a second, so not in each interval."""
    known = _known(celsius[place : place + NEAR])
    return f", at {known[0]:.0f} °C" if known else ""


def _known(values: Sequence[float | None]) -> list[float]:
    return [each for each in values if each is not None and each > 0]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
