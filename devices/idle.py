"""What a machine draws while nothing of ours runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.devices.counter_log import CounterLog
from edgebench.devices.energy import MIN_CHANGES, TOO_SHORT, energy_between, known_points
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.power import PowerMeter
    from edgebench.devices.window import EnergyTrace

NS = 1e9
STEP_S = 0.05
SPARE_CHANGES = 3
LONGEST_S = 15.0
"""How long to wait for meters that change seldom: those of a second are waited for."""


def idle_watts(
    meters: Sequence[PowerMeter],
    seconds: float,
    *,
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[Reading, ...]:
    """Watts of each meter, asleep but for reading them.

    Args:
        meters: read all the time.
        seconds: how long; longer, up to `LONGEST_S`, where that is enough for a meter that changes
            seldom. One that needs more is not waited for, and says so.
        clock: nanoseconds.
        sleep: waits.
    """
    if not meters:
        return ()
    needs_s = [_needed_s(each) for each in meters]
    waited_s = max((each for each in needs_s if each <= LONGEST_S), default=0.0)
    logs = [CounterLog(each, clock) for each in meters]
    length_s = max(seconds, waited_s)
    begin_ns = clock()
    end_ns = begin_ns + round(length_s * NS)
    while True:
        for each in logs:
            each.read()
        left_s = (end_ns - clock()) / NS
        if left_s <= 0:
            break
        sleep(min(STEP_S, left_s))
    return tuple(
        _watts(log.trace(), begin_ns, None if need_s <= length_s else _too_slow(meter, need_s))
        for log, meter, need_s in zip(logs, meters, needs_s, strict=True)
    )


def _needed_s(meter: PowerMeter) -> float:
    # It counts from one change to another: a part of one is lost at each end, and the next ones
    # may be slower.
    return (MIN_CHANGES + SPARE_CHANGES) * (meter.resolution_s or 0.0)


def _too_slow(meter: PowerMeter, need_s: float) -> str:
    return (
        f"{meter.name} changes every {need_s / (MIN_CHANGES + SPARE_CHANGES):.3g} s, so it takes "
        f"{need_s:.3g} s; no block waits for longer than {LONGEST_S:g} s"
    )


def _watts(trace: EnergyTrace, begin_ns: int, too_slow: str | None) -> Reading:
    """Mean power from the first change of the counter to the last.

    Args:
        trace: may have a point of before.
        begin_ns: from when on nothing of ours ran.
        too_slow: why the time may be too short for the meter.
    """
    points = [each for each in known_points(trace) if each.t_ns >= begin_ns]
    if trace.reason is not None or len(points) <= 1:
        return Reading.missing(trace.reason or too_slow or TOO_SHORT)
    start_ns, end_ns = points[0].t_ns, points[-1].t_ns
    # Without what was before: the work that it shows is none of the idle time's.
    joules = energy_between(replace(trace, points=tuple(points)), start_ns, end_ns)
    if joules.value is None:
        return Reading.missing(too_slow) if too_slow and not trace.gaps else joules
    return Reading(joules.value / ((end_ns - start_ns) / NS), method=trace.meter)
