"""Whether a device slowed itself down: a lasting fall of the rate, and of the clock with it.

A fall of the rate alone has many causes. A fall of the clock at the same moment has two, heat and
a limit of power, and both are what is meant by throttling.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.history.segments import SHORTEST, cuts, prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    place: int
    share: float


@dataclass(frozen=True, slots=True)
class _Levels:
    """The best cut of a series into two levels.

    Attributes:
        cut: the first place of the second level.
        share: by which it is lower.
        chance: of such a difference where there is none, all places taken together.
        least_seen: the least fall, in the middle, that would have been certain.
    """

    cut: int
    share: float
    chance: float
    least_seen: float

    @classmethod
    def of(cls, values: Sequence[float]) -> _Levels:
        """Cut a series of at least `LEAST_INTERVALS` values above 0."""
        series = prepared(values)
        edges = next(cuts(series))
        start, cut, end = edges
        change = series.mean(cut, end) - series.mean(start, cut)
        noise = series.noise(edges)
        places = end - LEAST_INTERVALS + 1
        certain = noise.quantile(1 - CHANCE / places / 2)
        return cls(
            cut=cut,
            share=1 - math.exp(change),
            chance=noise.chance(change / noise.of_difference(cut, end - cut)) * places,
            least_seen=1 - math.exp(-certain * noise.of_difference(end // 2, end - end // 2)),
        )

    def fall(self) -> _Fall | None:
        """It, if the second level is lower for certain and by enough."""
        real = self.share >= LEAST_FALL and self.chance < CHANCE
        return _Fall(self.cut, self.share) if real else None


def judged(
    t_s: Sequence[float],
    rates: Sequence[float | None],
    clocks_hz: Sequence[float | None],
    celsius: Sequence[float | None],
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
    """
    kept = [place for place, rate in enumerate(rates) if rate is not None and rate > 0]
    if len(kept) < LEAST_INTERVALS:
        why = (
            f"too short to tell: {len(kept)} intervals with a rate, and {LEAST_INTERVALS} are the "
            "fewest in which a fall can be seen"
        )
        return Verdict(None, None, why)
    levels = _Levels.of([rates[place] or 0.0 for place in kept])
    fall = levels.fall()
    if fall is None and levels.least_seen > BLURRED:
        why = (
            "the rate varied so much that no fall below "
            f"{_percent(levels.least_seen)} could be told from it"
        )
        return Verdict(None, None, why)
    if fall is None:
        return Verdict(
            throttled=False, at_s=None, because=f"the rate did not fall{_clock_alone(clocks_hz)}"
        )
    place = kept[fall.place]
    at_s = (t_s[kept[fall.place - 1]] + t_s[place]) / 2
    seen = f"the rate fell by {_percent(fall.share)} after {at_s:.0f} s"
    throttled, why = _cause(fall, place, clocks_hz)
    heat = _heat(place, celsius) if throttled else ""
    return Verdict(throttled=throttled, at_s=at_s, because=f"{seen}, and {why}{heat}")


def _cause(fall: _Fall, place: int, clocks_hz: Sequence[float | None]) -> tuple[bool | None, str]:
    """Whether the clock fell with the rate, and what is to be said of it."""
    before, after = _known(clocks_hz[:place]), _known(clocks_hz[place:])
    if not before or not after:
        return None, "the clock can't be read: the cause is not known"
    if len(set(before + after)) == 1:
        why = "the clock reads the same at all times, as on virtual machines"
        return None, f"{why}: the cause is not known"
    clock = 1 - statistics.median(after) / statistics.median(before)
    if clock >= WITH_IT * fall.share:
        return True, f"the clock by {_percent(clock)}"
    if clock >= SEEN:
        return False, f"the clock fell by {_percent(clock)} only: something else took the time"
    return False, "the clock did not fall: something else took the time"


def _clock_alone(clocks_hz: Sequence[float | None]) -> str:
    """A fall of the clock that the rate did not follow is worth a word."""
    known = _known(clocks_hz)
    if len(known) < LEAST_INTERVALS:
        return ""
    fall = _Levels.of(known).fall()
    return "" if fall is None else f"; the clock alone fell by {_percent(fall.share)}"


def _heat(place: int, celsius: Sequence[float | None]) -> str:
    known = _known(celsius)
    if not known or celsius[place] is None:
        return ""
    return f", at {celsius[place]:.0f} °C"


def _known(values: Sequence[float | None]) -> list[float]:
    return [each for each in values if each is not None and each > 0]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
