"""Whether a device slowed itself down: a fall of the rate, and of the clock with it.

A fall of the rate alone has many causes. A fall of the clock at the same moment has two, heat and
a limit of power, and both are what is meant by throttling. Falls are found in `levels`, the cause
is told in `fall_cause`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.fall_cause import Cause, cause_of, known
from edgebench.harness.levels import LEAST_LEVEL, Levels

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_FALL: Final = 0.05
"""Share of the rate whose loss is worth a verdict."""

BLURRED: Final = 0.2
"""A fall by this share has to be one that could be seen, or nothing can be said of a stretch."""

LEAST_INTERVALS: Final = 10

LAST_S: Final = 10.0
LAST_SHARE: Final = 1 / 6
"""So long a lower rate has to last, or that share of a shorter stretch. What is shorter is at the
very end no fall for good, and elsewhere a hiccup."""

UNSEEN: Final = 0.07
"""Where a tenth of a stretch is lower than an earlier one by so much, a fall by a tenth may be in
it: nobody says then that the rate did not fall. With noise of 3 %, such a fall hardly ever shows as
less, and a steady minute hardly ever as more."""

HEAT: Final = 5
"""Intervals after a fall in which a temperature is looked for: it is read once a second."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the rate.

    Attributes:
        throttled: None where it can't be decided.
        at_s: when the rate fell, for good or for a while; None where it did not.
        because: what was seen, or why it can't be decided, a sentence without a full stop.
    """

    throttled: bool | None
    at_s: float | None
    because: str


@dataclass(frozen=True, slots=True)
class Fall:
    """A certain fall.

    Attributes:
        place: the first value of the lower level.
        end: the first value that is no longer of it; the series' end where it lasts.
        share: of the level before that was lost.
    """

    place: int
    end: int
    share: float


def judged(
    t_s: Sequence[float],
    rates: Sequence[float | None],
    clocks_hz: Sequence[float | None],
    celsius: Sequence[float | None],
    *,
    kept_share: float | None = None,
) -> Verdict:
    """Look for a fall of the rate, for good or for a while, and whether the clock fell with it.

    Args:
        t_s: the middle of each interval.
        rates: decode rates, None where nothing was decoded.
        clocks_hz: as long as `t_s`, None where not read.
        celsius: likewise.
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
    whole = Levels.of([rates[place] or 0.0 for place in kept])
    last = _last(t_s, len(kept))
    late = _late(whole, last)
    levels = Levels(whole.y[: late.place]) if late is not None else whole
    fall = lasting(levels, last) or _passing(levels, last)
    times = [t_s[each] for each in kept]
    if fall is None:
        return _steady(levels, clocks_hz, times, last, kept_share, late)
    # Where nothing was decoded, nothing is said of the clock either.
    clocks = [clocks_hz[each] for each in kept]
    again = levels.again_and_again(-math.log(1 - max(fall.share / 2, LEAST_FALL)))
    falls = [Fall(low, high, _share(levels.drop(start, low, high))) for start, low, high in again]
    fall = falls[0] if falls else fall
    found = _cause(levels, falls or [fall], clocks, last)
    at_s = _edge(times, fall.place)
    readings = known(celsius[kept[fall.place] : kept[fall.place] + HEAT])
    heat = f", at {readings[0]:.0f} °C" if found.throttled and readings else ""
    why = f"{found.because}{heat}"
    # Two shares beside each other are of the same seconds.
    if found.rate is not None and _percent(found.rate) != _percent(fall.share):
        why = f"close to that moment by {_percent(found.rate)}, and {why}"
    seen = f"the rate fell by {_percent(fall.share)} after {at_s:.0f} s, and {why}"
    if falls:
        seen = (
            f"the rate fell and came back again and again, {len(falls)} times, first after "
            f"{at_s:.0f} s by {_percent(fall.share)}, and {why}"
        )
    elif fall.end < len(levels):
        back = _edge(times, fall.end)
        seen = (
            f"the rate fell by {_percent(fall.share)} from {at_s:.0f} s to {back:.0f} s and came "
            f"back, and {why}"
        )
    return Verdict(found.throttled, at_s, seen)


def _cause(
    levels: Levels, falls: Sequence[Fall], clocks_hz: Sequence[float | None], last: int
) -> Cause:
    """That of the first fall; where it can't be told, of the next one for which it can."""
    clock_fall = _clock_fall(clocks_hz, last)
    found = [cause_of(levels, each.place, each.end, clocks_hz, clock_fall) for each in falls]
    return next((each for each in found if each.throttled is not None), found[0])


def _edge(times: Sequence[float], place: int) -> float:
    """The time between an interval and the one before it."""
    return (times[place - 1] + times[place]) / 2


def lasting(levels: Levels, last: int) -> Fall | None:
    """The fall for good, if there is one for certain.

    Args:
        levels: of the rate, or of the clock.
        last: how many values the lower level has at least.
    """
    end = len(levels)
    cut = levels.best_cut(0, end, last)
    if cut is None:
        return None
    drop = levels.drop(0, cut, end)
    tail = min(max(last, end // 10), end - cut)
    # What came back by half did not fall for good.
    left = levels.mean(0, cut) - levels.mean(end - tail, end)
    if _share(drop) < LEAST_FALL or left < max(drop / 2, -math.log(1 - LEAST_FALL)):
        return None
    return Fall(cut, end, _share(drop)) if levels.is_certain(0, cut, end, end) else None


def _passing(levels: Levels, least: int) -> Fall | None:
    """The worst fall that came back, if there is one for certain."""
    found = levels.lowest(least)
    if found is None:
        return None
    low, high = found
    end = len(levels)
    drop, back = levels.drop(0, low, high), -levels.drop(low, high, end)
    pairs = end * end / 2
    if _share(min(drop, back)) < LEAST_FALL:
        return None
    certain = levels.is_certain(0, low, high, pairs) and levels.is_certain(
        low, high, end, pairs, rise=True
    )
    return Fall(low, high, _share(drop)) if certain else None


def _late(levels: Levels, last: int) -> Fall | None:
    """A fall in the last seconds, of which nobody knows whether it is for good."""
    end = len(levels)
    start = max(0, end - 3 * last)
    cut = levels.best_cut(start, end)
    if cut is None or end - cut >= last or cut < LEAST_INTERVALS:
        return None
    share = _share(levels.drop(start, cut, end))
    certain = share >= LEAST_FALL and levels.is_certain(start, cut, end, end - start)
    return Fall(cut, end, share) if certain else None


def _steady(
    levels: Levels,
    clocks_hz: Sequence[float | None],
    times: Sequence[float],
    last: int,
    kept_share: float | None,
    late: Fall | None,
) -> Verdict:
    """What is to be said where no fall is certain, but for one in the last seconds."""
    if late is not None:
        seen = f"the rate fell by {_percent(late.share)} at the very end"
        return Verdict(None, None, f"{seen}: whether for good can't be told")
    half = len(levels) // 2
    least = levels.limit(len(levels)) * float(levels.deviation(half, len(levels) - half))
    if _share(least) > BLURRED:
        why = (
            "the rate varied so much that no fall below "
            f"{_percent(_share(least))} could be told from it"
        )
        return Verdict(None, None, why)
    if kept_share is not None and kept_share <= 1 - LEAST_FALL:
        why = (
            f"the rate was {_percent(1 - kept_share)} lower at the end than at the beginning, and "
            "varied so much that this may be chance"
        )
        return Verdict(None, None, why)
    drop, low = levels.deepest(max(LEAST_LEVEL, len(levels) // 10))
    if _share(drop) >= UNSEEN:
        why = (
            f"around {times[low]:.0f} s, for a tenth of the stretch, the rate was "
            f"{_percent(_share(drop))} lower than before, and whether it fell or only varied can't "
            "be told"
        )
        return Verdict(None, None, why)
    # A fall of the clock that the rate did not follow is worth a word.
    clock = _clock_fall(clocks_hz, last)
    alone = "" if clock is None else f"; the clock alone fell by {_percent(clock.share)}"
    return Verdict(throttled=False, at_s=None, because=f"the rate did not fall{alone}")


def _clock_fall(clocks_hz: Sequence[float | None], last: int) -> Fall | None:
    readings = known(clocks_hz)
    if len(readings) < LEAST_INTERVALS:
        return None
    return lasting(Levels.of(readings), last)


def _last(t_s: Sequence[float], count: int) -> int:
    """How many intervals a lower rate lasts at least."""
    step = (t_s[-1] - t_s[0]) / max(1, len(t_s) - 1)
    wanted = math.ceil(LAST_S / step) if step > 0 else LEAST_LEVEL
    return max(LEAST_LEVEL, min(wanted, int(count * LAST_SHARE)))


def _share(drop: float) -> float:
    return 1 - math.exp(-drop)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
