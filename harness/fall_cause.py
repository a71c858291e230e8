"""Whether the clock fell with the rate: certain, certainly not, or not to be told."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.levels import FLOOR, NARROW, Levels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.throttling import Fall

WITH_IT: Final = 0.5
"""Of the rate's fall, how much the clock's has to be at least. What computes slows down as the
clock does, and what waits for memory less: the clock falls by as much or by more. Half of it
leaves room for a clock that is read once a second only."""

SEEN: Final = 0.005
"""Of a clock that fell by less it is said that it did not: rounded, it is nothing."""

NEAR: Final = 5
"""So many intervals before and after the fall are looked at first, then twice as many, and so on:
a decline that took minutes is held against what the clock did in the same minutes."""

LATE: Final = 5
"""So many intervals the clock's readings may lag behind."""

SURE: Final = 3.0
"""Standard deviations that make a comparison of the two certain."""

CAUTION: Final = 1.5
"""Times the deviation of independent readings: those beside each other are mostly alike."""

UNSURE: Final = "whether the clock fell with it can't be told: the cause is not known"


@dataclass(frozen=True, slots=True)
class Cause:
    """Whether it was the clock.

    Attributes:
        throttled: None where that can't be told.
        because: what is to be said of the clock.
        rate: the share that the rate lost in the seconds that `because` speaks of; None where it
            names no share.
    """

    throttled: bool | None
    because: str
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class _Loss:
    """By how much a logarithm fell, and the standard deviation of that."""

    drop: float
    deviation: float


@dataclass(frozen=True, slots=True)
class _Parts:
    """Two parts of a series, beside a fall: begin and end of each, the ends left out."""

    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Compared:
    """What rate and clock lost from one part to the other; whether it was the clock, if certain."""

    answer: bool | None
    clock: float
    rate: float


def cause_of(
    rates: Levels,
    place: int,
    end: int,
    clocks_hz: Sequence[float | None],
    clock_fall: Fall | None,
) -> Cause:
    """Hold what the clock lost around a fall against what the rate lost in the same seconds.

    Args:
        rates: in which the rate fell.
        place: where.
        end: of the lower level.
        clocks_hz: at the same times, None where not read.
        clock_fall: the clock's own fall for good, wherever it is.
    """
    readings = known(clocks_hz)
    if len(readings) < NARROW:
        return Cause(None, "the clock can't be read: the cause is not known")
    if len(set(readings)) == 1:
        why = "the clock reads the same at all times, as on virtual machines"
        return Cause(None, f"{why}: the cause is not known")
    answers: list[bool | None] = []
    for found in _compared(rates, place, end, clocks_hz):
        if found.answer and False not in answers:
            lost = _whole(rates, place, end, clocks_hz) or found
            because = f"the clock by {_percent(_share(lost.clock))}"
            return Cause(throttled=True, because=because, rate=_share(lost.rate))
        # Once more with twice as many: a few readings may differ by chance.
        if found.answer is False and answers[-1:] == [False]:
            return _other(found, clock_fall)
        answers.append(found.answer)
    return Cause(None, UNSURE)


def known(values: Sequence[float | None]) -> list[float]:
    """Those that were read."""
    return [each for each in values if each is not None and each > 0]


def _other(found: _Compared, clock_fall: Fall | None) -> Cause:
    """What to say of a clock that was not the cause."""
    near, rate = max(0.0, _share(found.clock)), None
    enough = max(WITH_IT * _share(found.rate), near + SEEN)
    if clock_fall is not None and clock_fall.share >= enough:
        why = f"the clock fell by {_percent(clock_fall.share)}, but not at that moment"
    elif near >= SEEN:
        why, rate = f"the clock fell by {_percent(near)} only", _share(found.rate)
    else:
        why = "the clock did not fall"
    return Cause(throttled=False, because=f"{why}: something else took the time", rate=rate)


def _whole(
    rates: Levels, place: int, end: int, clocks_hz: Sequence[float | None]
) -> _Compared | None:
    """What both lost over the whole levels, where that shows that they fell together too."""
    before, after = known(clocks_hz[:place]), known(clocks_hz[place:end])
    if not before or not after:
        return None
    clock, rate = float(np.log(before).mean() - np.log(after).mean()), rates.drop(0, place, end)
    return _Compared(answer=True, clock=clock, rate=rate) if clock >= WITH_IT * rate else None


def _compared(
    rates: Levels, place: int, end: int, clocks_hz: Sequence[float | None]
) -> Iterator[_Compared]:
    """By longer and longer parts beside the fall, what both lost and what that says."""
    earliest, latest = rates.places(0, place, end)
    at = np.array([each for each, clock in enumerate(clocks_hz) if clock is not None and clock > 0])
    clocks = Levels.of(known(clocks_hz))
    reach = NEAR
    while True:
        found = []
        for gap in (0, LATE):
            before, after = earliest - gap, latest + gap
            parts = _Parts((max(0, before - reach), before), (after, min(end, after + reach)))
            found.append(_held(rates, clocks, at, parts))
        yes = next((each for each in found if each.answer), None)
        no = all(each.answer is False for each in found)
        yield yes or (found[0] if no else replace(found[0], answer=None))
        if reach >= max(earliest, end - latest):
            return
        reach *= 2


def _held(rates: Levels, clocks: Levels, at: NDArray[np.int_], parts: _Parts) -> _Compared:
    """The clock's loss against the rate's.

    Args:
        rates: of all intervals.
        clocks: of those in which the clock was read.
        at: which these are.
        parts: of all intervals.
    """
    rate = _lost(rates, parts)
    first, second = (np.searchsorted(at, part) for part in (parts.before, parts.after))
    clock = _lost(clocks, _Parts((int(first[0]), int(first[1])), (int(second[0]), int(second[1]))))
    if rate is None or clock is None or rate.drop < SURE * rate.deviation:
        return _Compared(None, 0.0, 0.0)
    more = clock.drop - WITH_IT * rate.drop
    sure = SURE * math.hypot(clock.deviation, WITH_IT * rate.deviation)
    answer = None
    if more > sure and clock.drop > SURE * clock.deviation:
        answer = True
    elif more < -sure:
        answer = False
    return _Compared(answer, clock.drop, rate.drop)


def _lost(levels: Levels, parts: _Parts) -> _Loss | None:
    """From the one part of a series to the other; None where one of them is too short."""
    left, right = levels.y[slice(*parts.before)], levels.y[slice(*parts.after)]
    if len(left) < 2 or len(right) < 2:  # noqa: PLR2004 - one has no spread
        return None
    spread = math.sqrt(float(left.var()) / len(left) + float(right.var()) / len(right))
    return _Loss(float(left.mean() - right.mean()), max(CAUTION * spread, FLOOR))


def _share(drop: float) -> float:
    return 1 - math.exp(-drop)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
