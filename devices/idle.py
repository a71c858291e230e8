"""What a machine draws while nothing of ours runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from edgebench.devices.energy import MIN_CHANGES, energy_between, read_afresh, read_once
from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.power import PowerMeter

NS = 1e9
STEP_S = 0.05
LONGEST_S = 10.0
"""How long to wait for meters that change seldom."""


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
        seconds: how long; longer, up to `LONGEST_S`, where a meter changes so seldom that it needs
            it.
        clock: nanoseconds.
        sleep: waits.
    """
    if not meters:
        return ()
    slowest_s = max(each.resolution_s or 0.0 for each in meters)
    # One change more than is needed: of the first one it is not known when it was.
    needed_s = min(LONGEST_S, (MIN_CHANGES + 2) * slowest_s)
    points: list[list[EnergyPoint]] = [[] for _ in meters]
    reasons: list[str | None] = [None for _ in meters]
    read = read_afresh
    end_ns = clock() + round(max(seconds, needed_s) * NS)
    while True:
        for at, meter in enumerate(meters):
            if reasons[at] is not None:
                continue
            try:
                joules = read(meter)
            except OSError as error:
                reasons[at] = f"{meter.name} can't be read: {error.strerror or error}"
                continue
            points[at].append(EnergyPoint(clock(), joules))
        read = read_once
        left_s = (end_ns - clock()) / NS
        if left_s <= 0:
            break
        sleep(min(STEP_S, left_s))
    return tuple(
        _watts(EnergyTrace(meter.name, meter.source, tuple(seen), reason, meter.resolution_s))
        for meter, seen, reason in zip(meters, points, reasons, strict=True)
    )


def _watts(trace: EnergyTrace) -> Reading:
    points = trace.points
    if trace.reason is not None:
        return Reading.missing(trace.reason)
    start_ns, end_ns = points[0].t_ns, points[-1].t_ns
    joules = energy_between(trace, start_ns, end_ns)
    if joules.value is None:
        return joules
    return Reading(joules.value / ((end_ns - start_ns) / NS), method=trace.meter)
