"""What one meter said over a window: its counter, and where that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.devices.energy import read_afresh, read_once
from edgebench.devices.window import EnergyPoint, EnergyTrace, Gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.power import PowerMeter


class CounterLog:
    """Reads a meter, also after it failed: what lies before and after is known all the same.

    Args:
        meter: answers within microseconds.
        clock: nanoseconds.
    """

    def __init__(self, meter: PowerMeter, clock: Callable[[], int]) -> None:
        self._meter = meter
        self._clock = clock
        self._points: list[EnergyPoint] = []
        self._gaps: list[Gap] = []
        self._why: str | None = None  # while it can't be read
        self._since_ns = 0
        self._resolution_s: float | None = None
        self._is_first = True

    def read(self) -> None:
        """Take the counter now, or the reason why there is none."""
        read, self._is_first = (read_afresh if self._is_first else read_once), False
        try:
            joules = read(self._meter)
        except OSError as error:
            if self._why is None:
                self._why = error.strerror or str(error)
                self._since_ns = self._points[-1].t_ns if self._points else self._clock()
            return
        point = EnergyPoint(self._clock(), joules)
        if self._why is not None:
            reason = f"{self._meter.name} could not be read for a while: {self._why}"
            self._gaps.append(Gap(self._since_ns, point.t_ns, reason))
            self._why = None
        self._points.append(point)

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
        )
