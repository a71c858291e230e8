"""Power of a stretch of work: of the whole, of its last part, and over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from edgebench.devices import energy
from edgebench.devices.reading import Reading
from edgebench.harness.metrics.system import NO_METER
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.power import MeterEnergy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.devices.window import EnergyTrace, Window

NS: Final = 1e9
LEAST_VALUES: Final = 5
"""A fifth of the stretch is the longest that is taken together: fewer values are no course."""
AROUND_S: Final = 5.0
"""Readings so long before and after an interval are looked at too, and three changes at least."""
NOT_APART: Final = "sustained work is not told apart into prefill and decoding"


@dataclass(frozen=True, slots=True)
class PowerOverTime:
    """Mean power of each interval of a stretch.

    Attributes:
        watts: None where the meter could not tell.
        longest_s: over how long a value is the mean, at most; None without values.
        reason: why values are None; None where none is.
    """

    watts: list[float | None]
    longest_s: float | None = None
    reason: str | None = None


def power_metrics(
    window: Window, zero_ns: int, lasted_s: float, edge_s: float
) -> dict[str, Measured]:
    """Mean power of the whole stretch, and of its last part.

    Args:
        window: with the meters' readings; the first meter's count.
        zero_ns: when the stretch began, by their clock.
        lasted_s: how long it was.
        edge_s: how long its last part is.
    """
    parts = {"mean_power_w": (0.0, lasted_s), "sustained_power_w": (lasted_s - edge_s, lasted_s)}
    if not window.energy:
        why = window.energy_reason or NO_METER
        return {key: Measured.missing("W", why) for key in parts}
    trace = window.energy[0]
    found = {key: _watts(trace, zero_ns, *part) for key, part in parts.items()}
    return {
        key: Measured(value=each.value, unit="W", source=trace.source, reason=each.reason)
        for key, each in found.items()
    }


def stretch_energies(window: Window, zero_ns: int, lasted_s: float) -> list[MeterEnergy]:
    """What each meter saw of the whole stretch, in the meters' order."""
    found = []
    for trace in window.energy:
        watts = _watts(trace, zero_ns, 0.0, lasted_s)
        reason = NOT_APART if watts.reason is None else watts.reason
        found.append(
            MeterEnergy(
                meter=trace.meter, source=trace.source, mean_power_w=watts.value, reason=reason
            )
        )
    return found


def power_over_time(window: Window, zero_ns: int, edges_s: Sequence[float]) -> PowerOverTime:
    """The first meter's power within each interval.

    A meter that is too slow for one interval may be fast enough for several: so many neighbours are
    taken together, and each gets the mean over all of them.

    Args:
        window: with the meters' readings.
        zero_ns: when the stretch began, by their clock.
        edges_s: of the intervals, in seconds from then.
    """
    count = len(edges_s) - 1
    if not window.energy:
        return PowerOverTime([None] * count, reason=window.energy_reason or NO_METER)
    trace = window.energy[0]
    parts: list[_Part] = []
    while (start := parts[-1].end if parts else 0) < count:
        most = max(2, count // LEAST_VALUES)
        tried = range(start + 1, min(start + most, count) + 1)
        told = _first_told(trace, zero_ns, edges_s, start, tried)
        if told.reading.value is None and parts and tried[-1] == count:
            # What is left at the end is too short by itself.
            both = _first_told(trace, zero_ns, edges_s, parts[-1].start, (count,))
            if both.reading.value is not None:
                parts[-1] = both
                continue
        parts.append(told)
    known = [each for each in parts if each.reading.value is not None]
    return PowerOverTime(
        [each.reading.value for each in parts for _place in range(each.start, each.end)],
        max((edges_s[each.end] - edges_s[each.start] for each in known), default=None),
        next((each.reading.reason for each in parts if each.reading.value is None), None),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Neighbouring intervals, the last one left out, and their mean power."""

    start: int
    end: int
    reading: Reading


def _first_told(
    trace: EnergyTrace, zero_ns: int, edges_s: Sequence[float], start: int, ends: Sequence[int]
) -> _Part:
    """The fewest intervals from one on whose power can be told; where none can, one without."""
    found = Reading.missing(energy.TOO_SHORT)
    for end in ends:
        found = _watts(trace, zero_ns, edges_s[start], edges_s[end])
        if found.value is not None:
            return _Part(start, end, found)
    # The reason of the longest says most.
    return _Part(start, start + 1, found)


def _watts(trace: EnergyTrace, zero_ns: int, low_s: float, high_s: float) -> Reading:
    """Mean power between two moments; no value where the meter can't tell."""
    if not trace.points:
        return Reading.missing(trace.reason or energy.TOO_SHORT)
    start, end = zero_ns + round(low_s * NS), zero_ns + round(high_s * NS)
    around = round(max(AROUND_S, 3 * (trace.resolution_s or 0.0)) * NS)
    # An hour has 72 000 readings: only those nearby are looked at.
    first = bisect_left(trace.points, start - around, key=lambda each: each.t_ns)
    last = bisect_right(trace.points, end + around, key=lambda each: each.t_ns)
    near = trace.points[first:last]
    if not near:
        return Reading.missing(energy.TOO_SHORT)
    found = energy.energy_between(replace(trace, points=near), start, end)
    if found.value is None or high_s <= low_s:
        return found
    return Reading(found.value / (high_s - low_s))
