"""What one meter said over a window: its counter, and where that could not be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from edgebench.devices.energy import LATE, NS, read_afresh
from edgebench.devices.points import PointMeter
from edgebench.devices.window import EnergyPoint, EnergyTrace, Gap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.power import PowerMeter

SETTLE_S = 2.0
"""How long the end of a window waits for a meter's next reading, at most."""
STEP_S = 0.01
"""How often a counter is read meanwhile."""


class CounterLog:
    """Reads a meter, also after it failed: what lies before and after is known all the same.

    A meter that knows of which moments its joules are gives those; any other is a counter that is
    right now.

    Args:
        meter: answers within microseconds.
        clock: nanoseconds.
    """

    def __init__(self, meter: PowerMeter, clock: Callable[[], int]) -> None:
        self._meter = meter
        self._own = meter if isinstance(meter, PointMeter) else None
        self._clock = clock
        self._points: list[EnergyPoint] = []
        self._gaps: list[Gap] = []
        self._why: str | None = None  # while it can't be read
        self._since_ns = 0
        self._resolution_s: float | None = None
        self._is_first = True

    def read(self) -> None:
        """Take the counter now, or the reason why there is none."""
        is_first, self._is_first = self._is_first, False
        try:
            points = read_afresh(self._new_points) if is_first else self._new_points()
        except OSError as error:
            if self._why is None:
                self._why = error.strerror or str(error)
                self._since_ns = self._points[-1].t_ns if self._points else self._clock()
            return
        if self._why is not None and points:
            reason = f"{self._meter.name} could not be read for a while: {self._why}"
            self._gaps.append(Gap(self._since_ns, points[0].t_ns, reason))
            self._why = None
        self._points.extend(points)

    def settle(self, end_ns: int) -> None:
        """Let the meter come to the end of the window: its next reading may be of after that.

        The time is counted from the end of the window on, so that meters wait together.
        """
        if self._why is not None:
            return
        limit_s = min(LATE * (self._meter.resolution_s or 0.0), SETTLE_S)
        left_s = max(0.0, limit_s - (self._clock() - end_ns) / NS)
        if self._own is not None:
            self._own.wait_past(end_ns, left_s)
            self.read()
        else:
            self._read_on(end_ns, left_s)

    def _read_on(self, end_ns: int, left_s: float) -> None:
        """Read a counter until it has changed: its last change may be long before the end."""
        shown = [each.joules for each in self._points if each.t_ns <= end_ns][-1:]
        for _ in range(int(left_s / STEP_S)):
            time.sleep(STEP_S)
            self.read()
            if self._why is not None or [self._points[-1].joules] != shown:
                return

    def note_resolution(self) -> None:
        """See how often it changes: the coarsest that was seen holds for all."""
        now_s = self._meter.resolution_s
        if now_s is not None:
            self._resolution_s = max(now_s, self._resolution_s or 0.0)

    def trace(self) -> EnergyTrace:
        """All of it."""
        self.note_resolution()
        name = self._meter.name
        return EnergyTrace(
            name,
            self._meter.source,
            tuple(self._points),
            None if self._why is None else f"{name} can't be read any more: {self._why}",
            self._resolution_s,
            tuple(self._gaps),
            self._own is not None,
        )

    def _new_points(self) -> Sequence[EnergyPoint]:
        if self._own is None:
            joules = self._meter.read_j()
            return [EnergyPoint(self._clock(), joules)]
        # The first time, the last one before the window too: what lies between is known.
        known_ns = self._points[-1].t_ns if self._points else None
        points = self._own.points_from(self._clock() if known_ns is None else known_ns)
        return [each for each in points if known_ns is None or each.t_ns > known_ns]
