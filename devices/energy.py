"""From the readings of a cumulative counter to the energy between two moments."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.devices.power import PowerMeter
    from edgebench.devices.window import EnergyPoint, EnergyTrace

NS = 1e9
MIN_READINGS = 3
"""Readings of the counter inside of a window, edges apart, before its energy is believed."""
MIN_CHANGES = 10
"""How many times the counter can change in the shortest window: one change is then a tenth."""
STILL_S = 0.5
"""A counter that measures does not stand still for so long, or for `MIN_CHANGES` changes."""
LATE = 1.5
"""Of the time between two changes, how old the last one may be at the end of what was read."""

TOO_SHORT = "the window is too short for the energy counter"


def read_once(meter: PowerMeter) -> float:
    """Joules now. Raises `OSError` where they can't be read."""
    return meter.read_j()


def read_afresh(meter: PowerMeter) -> float:
    """The same at the begin of a window: a fault that is told once is a fault of before."""
    try:
        return meter.read_j()
    except OSError:
        return meter.read_j()


def energy_between(trace: EnergyTrace, start_ns: int, end_ns: int) -> Reading:
    """Joules between two moments, by linear interpolation.

    A counter that changes seldom is a stair: its readings are right where it has just changed,
    and say nothing new until it changes again, so only the first reading of each step counts.
    Before the first step and after the last one it goes on as between the two next to it.

    Args:
        trace: the readings, and how often the counter changes.
        start_ns: of the same clock.
        end_ns: the same.

    Returns:
        No value where the counter can't tell: it was read too seldom, changes too seldom for so
        short a time, stood still, went back, or was lost.
    """
    why_not = _lost(trace, start_ns, end_ns)
    if why_not is not None:
        return Reading.missing(why_not)
    points = _between_gaps(trace, start_ns, end_ns)
    why_not = _unreadable(trace, points, start_ns, end_ns)
    if why_not is not None:
        return Reading.missing(why_not)
    known = _steps(points, LATE * (trace.resolution_s or 0.0) * NS)
    if len(known) < MIN_READINGS:
        return Reading.missing(TOO_SHORT)
    return Reading(_at(known, end_ns) - _at(known, start_ns), method=trace.meter)


def _lost(trace: EnergyTrace, start_ns: int, end_ns: int) -> str | None:
    """Why the meter could not be read there; None where it could."""
    if trace.reason is not None and (not trace.points or end_ns > trace.points[-1].t_ns):
        return trace.reason
    touched = (each for each in trace.gaps if start_ns < each.end_ns and end_ns > each.start_ns)
    return next((each.reason for each in touched), None)


def _between_gaps(trace: EnergyTrace, start_ns: int, end_ns: int) -> Sequence[EnergyPoint]:
    """The points around it that no gap parts from it."""
    after = max((each.end_ns for each in trace.gaps if each.end_ns <= start_ns), default=None)
    before = min((each.start_ns for each in trace.gaps if each.start_ns >= end_ns), default=None)
    return [
        each
        for each in trace.points
        if (after is None or each.t_ns >= after) and (before is None or each.t_ns <= before)
    ]


def _unreadable(
    trace: EnergyTrace, points: Sequence[EnergyPoint], start_ns: int, end_ns: int
) -> str | None:
    """Why these readings don't tell the energy in between; None where they may."""
    meter = trace.meter
    resolution_s = trace.resolution_s or 0.0
    inside = sum(start_ns < each.t_ns < end_ns for each in points)
    if inside < MIN_READINGS or start_ns < points[0].t_ns or end_ns > points[-1].t_ns:
        return TOO_SHORT
    needed_s = MIN_CHANGES * resolution_s
    if (end_ns - start_ns) / NS < needed_s:
        return (
            f"the window is too short for {meter}, which changes every {resolution_s:.3g} s: it "
            f"takes {needed_s:.3g} s"
        )
    if any(later.joules < earlier.joules for earlier, later in pairwise(points)):
        return f"{meter} went back, so it does not count energy"
    if trace.source == "observed" and _stands_still(points, start_ns, end_ns, needed_s):
        return f"{meter} stood still in the window, so it measured nothing"
    return None


def _stands_still(
    points: Sequence[EnergyPoint], start_ns: int, end_ns: int, limit_s: float
) -> bool:
    """Whether it is the same over the whole window, or for much longer than it should be."""
    inside = [each for each in points if start_ns <= each.t_ns <= end_ns]
    longest_ns, since = 0, inside[0]
    for each in inside:
        if each.joules != since.joules:
            since = each
        longest_ns = max(longest_ns, each.t_ns - since.t_ns)
    whole = inside[0].joules == inside[-1].joules
    # Where it is not known how often it changes, only the whole window tells.
    return whole or (limit_s > 0 and longest_ns > max(limit_s, STILL_S) * NS)


def _steps(points: Sequence[EnergyPoint], age_ns: float) -> Sequence[EnergyPoint]:
    """The readings that are not just old ones again; all of them where each is a new one."""
    kept = [points[0]]
    for each in points[1:]:
        if each.joules != kept[-1].joules or each.t_ns - kept[-1].t_ns > age_ns:
            kept.append(each)
    # Of the first reading of a stair it is not known how old it was.
    return points if len(kept) == len(points) else kept[1:]


def _at(known: Sequence[EnergyPoint], t_ns: int) -> float:
    """The counter at a moment, on the straight line through the two readings next to it."""
    after = next((at for at in range(1, len(known)) if known[at].t_ns >= t_ns), len(known) - 1)
    one, two = known[after - 1], known[after]
    share = (t_ns - one.t_ns) / max(1, two.t_ns - one.t_ns)
    return one.joules + share * (two.joules - one.joules)
