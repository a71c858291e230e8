"""What a machine draws while nothing of ours runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.power import PowerMeter

NS = 1e9


def idle_watts(
    meters: Sequence[PowerMeter],
    seconds: float,
    *,
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[Reading, ...]:
    """Watts of each meter over so many seconds, asleep.

    Args:
        meters: read at both ends.
        seconds: how long.
        clock: nanoseconds.
        sleep: waits.
    """
    if not meters:
        return ()
    before = [_read(each, clock) for each in meters]
    sleep(seconds)
    after = [_read(each, clock) for each in meters]
    found = []
    for meter, start, end in zip(meters, before, after, strict=True):
        if isinstance(start, str) or isinstance(end, str):
            why = start if isinstance(start, str) else end
            found.append(Reading.missing(f"{meter.name} can't be read: {why}"))
            continue
        took = (end[0] - start[0]) / NS
        found.append(Reading((end[1] - start[1]) / took, method=meter.name))
    return tuple(found)


def _read(meter: PowerMeter, clock: Callable[[], int]) -> tuple[int, float] | str:
    try:
        joules = meter.read_j()
    except OSError as error:
        return str(error)
    return clock(), joules
