"""From the readings of a cumulative counter to the energy between two moments."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.window import EnergyTrace

T = TypeVar("T")

NS = 1e9
MIN_READINGS = 3
"""Readings of the counter inside of a window, edges apart, before its energy is believed."""
MIN_CHANGES = 10
"""How many times the counter can change in the shortest window."""
MOST_UNCERTAIN = 0.1
"""Share of a window's energy that may lie on the wrong side of its two edges."""
STILL_S = 0.5
"""A counter that measures does not stand still for so long, or for `MIN_CHANGES` changes."""
BACK = 3
"""Over how many spans before an edge a change is looked for: means of the time before come late."""
LATE = 1.5
"""Of the time between two changes, how old the last one may be at the end of what was read."""

TOO_SHORT = "the window is too short for the energy counter"


def read_afresh(read: Callable[[], T]) -> T:
    """What a meter says at the begin of a window: a fault that is told once is one of before."""
    try:
        return read()
    except OSError:
        return read()


def energy_between(trace: EnergyTrace, start_ns: int, end_ns: int) -> Reading:
    """Joules between two moments, by linear interpolation between the points next to each.

    Args:
        trace: the readings, and how often the counter changes.
        start_ns: of the same clock.
        end_ns: the same.

    Returns:
        No value where the counter can't tell: it was read too seldom, changes too seldom for so
        short a time, or for how much the power changed at an edge; it stood still, went back, or
        was lost.
    """
    why_not = _lost(trace, start_ns, end_ns)
    if why_not is not None:
        return Reading.missing(why_not)
    points = _between_gaps(trace, start_ns, end_ns)
    pace_s = _pace_s(trace, points, start_ns, end_ns)
    why_not = _unreadable(trace, points, pace_s, start_ns, end_ns)
    if why_not is not None:
        return Reading.missing(why_not)
    known = _known(trace, points)
    if len(known) < MIN_READINGS:
        return Reading.missing(TOO_SHORT)
    late_s = [0.0 if trace.own_points else _late_s(points, each, pace_s) for each in known]
    # It is of some moment since the reading before: the middle is wrong by half of that at most.
    known = [
        EnergyPoint(each.t_ns - round(late / 2 * NS), each.joules)
        for each, late in zip(known, late_s, strict=True)
    ]
    joules = _at(known, end_ns) - _at(known, start_ns)
    edges = [_edge(trace, known, late_s, pace_s, each) for each in (start_ns, end_ns)]
    why_not = _uncertain(trace.meter, edges, joules)
    if why_not is not None:
        return Reading.missing(why_not)
    return Reading(joules, method=trace.meter)


def known_points(trace: EnergyTrace) -> Sequence[EnergyPoint]:
    """The points where the counter is known: all, or those where it has just changed.

    A counter that changes seldom is a stair: its readings are right where it has just changed,
    and say nothing new until it changes again, so only the first reading of each step counts.
    """
    return _known(trace, trace.points)


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


def _pace_s(trace: EnergyTrace, points: Sequence[EnergyPoint], start_ns: int, end_ns: int) -> float:
    """Seconds between changes of the counter, as they were in this window and at its edges.

    Of a meter that gives its own points these tell it: what it did before or later is no matter.
    """
    told_s = trace.resolution_s or 0.0
    if not trace.own_points:
        return told_s
    near = [
        (one, two) for one, two in pairwise(points) if two.t_ns > start_ns and one.t_ns < end_ns
    ]
    if any(two.silent_s for _, two in near):
        told_s = 0.0  # what a meter tells of itself is of lately, wherever that is
    gaps_s = (max(two.silent_s, (two.t_ns - one.t_ns) / NS) for one, two in near)
    return max(told_s, *gaps_s) if near else told_s


def _unreadable(
    trace: EnergyTrace,
    points: Sequence[EnergyPoint],
    pace_s: float,
    start_ns: int,
    end_ns: int,
) -> str | None:
    """Why these readings don't tell the energy in between; None where they may."""
    meter = trace.meter
    inside = sum(start_ns < each.t_ns < end_ns for each in points)
    if inside < MIN_READINGS:
        return TOO_SHORT
    if start_ns < points[0].t_ns or end_ns > points[-1].t_ns:
        return f"{meter} said nothing at one end of the window"
    needed_s = MIN_CHANGES * pace_s
    if (end_ns - start_ns) / NS < needed_s:
        return _too_short(trace, pace_s, needed_s)
    if any(later.joules < earlier.joules for earlier, later in pairwise(points)):
        return f"{meter} went back, so it does not count energy"
    if trace.source == "observed" and _stands_still(points, start_ns, end_ns, needed_s):
        return f"{meter} stood still in the window, so it measured nothing"
    return None


def _too_short(trace: EnergyTrace, pace_s: float, needed_s: float) -> str:
    if trace.own_points:
        return (
            f"the window is too short for {trace.meter}, whose readings in it are up to "
            f"{pace_s:.3g} s apart: it takes {needed_s:.3g} s"
        )
    return (
        f"the window is too short for {trace.meter}, which changes every {pace_s:.3g} s: it "
        f"takes {needed_s:.3g} s"
    )


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


def _known(trace: EnergyTrace, points: Sequence[EnergyPoint]) -> Sequence[EnergyPoint]:
    if trace.own_points or not points:
        return points
    age_ns = LATE * (trace.resolution_s or 0.0) * NS
    kept = [points[0]]
    for each in points[1:]:
        if each.joules != kept[-1].joules or each.t_ns - kept[-1].t_ns > age_ns:
            kept.append(each)
    # Of the first reading of a stair it is not known how old it was.
    return points if len(kept) == len(points) else kept[1:]


@dataclass(frozen=True, slots=True)
class _Edge:
    """How much energy may lie on the wrong side of one edge of a window.

    Attributes:
        joules: at most, where the power changed once between the points next to it, and these
            are as late as they can be.
        change_w: by how much the power changed around it.
        seconds: how long the meter left open when.
        beyond_s: how much of the window is before the meter's first change, or after its last.
    """

    joules: float
    change_w: float
    seconds: float
    beyond_s: float


def _uncertain(meter: str, edges: Sequence[_Edge], joules: float) -> str | None:
    """Why the energy is not known well enough: what may belong to before or after the window."""
    wrong_j = sum(each.joules for each in edges)
    if wrong_j <= MOST_UNCERTAIN * joules:
        return None
    worst = max(edges, key=lambda each: each.joules)
    if worst.beyond_s > 0:
        return (
            f"{meter} did not change for {worst.beyond_s:.3g} s at an edge of the window, so "
            f"{wrong_j:.3g} of {joules:.3g} J may be of before or after: it takes a faster meter "
            "or more tokens"
        )
    return (
        f"power changed by {worst.change_w:.3g} W within the {worst.seconds:.3g} s that "
        f"{meter} leaves open at an edge of the window, so {wrong_j:.3g} of {joules:.3g} J "
        "may be of before or after: it takes a faster meter or more tokens"
    )


def _edge(
    trace: EnergyTrace,
    known: Sequence[EnergyPoint],
    late_s: Sequence[float],
    pace_s: float,
    t_ns: int,
) -> _Edge:
    at = _after(known, t_ns)
    one, two = known[at - 1], known[at]
    gap_ns = max(1, two.t_ns - one.t_ns)
    span_ns = max(gap_ns, round(pace_s * NS))
    # A meter that is late shows the change up to two spans after it, and at the edge may still
    # show one of before.
    before = range(BACK if trace.own_points else 1, 0, -1)
    places = [one.t_ns - each * span_ns for each in before]
    places += [one.t_ns, two.t_ns, two.t_ns + span_ns, two.t_ns + 2 * span_ns]
    first_ns, last_ns = known[0].t_ns, known[-1].t_ns
    within = [min(max(each, first_ns), last_ns) for each in places]
    watts = [
        (_at(known, end) - _at(known, start)) / ((end - start) / NS)
        for start, end in pairwise(within)
        if end > start
    ]
    change_w = max(watts) - min(watts)
    if trace.own_points:
        # Readings of power: whether of a moment or of the time before is not known.
        open_s = span_ns / NS
    else:
        # A counter's energy between two points is right; only where in between it lies is open.
        open_s = max(0, (t_ns - one.t_ns) * (two.t_ns - t_ns)) / gap_ns / NS
        if one.t_ns == first_ns or two.t_ns == last_ns:
            # Of the power on one side only the share between the two is seen.
            open_s = gap_ns / NS
        open_s += max(late_s[at - 1], late_s[at]) / 2
    # Beyond what is known, the power may be anything: nothing at all, or twice as much.
    beyond_s = max(0, first_ns - t_ns, t_ns - last_ns) / NS
    return _Edge(change_w * open_s + max(watts) * beyond_s, change_w, span_ns / NS, beyond_s)


def _late_s(points: Sequence[EnergyPoint], known: EnergyPoint, pace_s: float) -> float:
    """How long a counter may have stood at a point already: since it was read before, at most."""
    at = bisect_left(points, known.t_ns, key=lambda each: each.t_ns)
    return min(pace_s, (known.t_ns - points[at - 1].t_ns) / NS) if at > 0 else pace_s


def _after(known: Sequence[EnergyPoint], t_ns: int) -> int:
    """The place of the first point that is not before a moment, and never the first of all."""
    at = bisect_left(known, t_ns, key=lambda each: each.t_ns)
    return min(max(at, 1), len(known) - 1)


def _at(known: Sequence[EnergyPoint], t_ns: int) -> float:
    """The counter at a moment, on the straight line through the two points next to it.

    Before the first step of a stair and after its last one it goes on as between the two there.
    """
    at = _after(known, t_ns)
    one, two = known[at - 1], known[at]
    share = (t_ns - one.t_ns) / max(1, two.t_ns - one.t_ns)
    return one.joules + share * (two.joules - one.joules)
