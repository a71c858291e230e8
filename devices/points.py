"""Meters that know of which moment each of their joules is."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from edgebench.devices.window import EnergyPoint

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_POINTS = 4096
"""They are fetched 20 times a second; of the rest, between two windows, one is enough."""


@runtime_checkable
class PointMeter(Protocol):
    """What a meter offers beside `PowerMeter` whose readings come when they come, not when asked.

    To ask such a meter for its counter tells when it was asked: up to a reading too late.
    """

    def points_from(self, t_ns: int) -> Sequence[EnergyPoint]:
        """The counter where it is known: the last such moment up to `t_ns`, and all after it.

        Raises:
            OSError: as `PowerMeter.read_j`. What it gives afterwards is of after the fault.
        """

    def wait_past(self, t_ns: int, limit_s: float) -> None:
        """Until it knows of a moment after `t_ns`, can't any more, or the limit is over."""


class Points:
    """The latest points of a counter."""

    def __init__(self) -> None:
        self._points: deque[EnergyPoint] = deque(maxlen=MOST_POINTS)

    def add(self, t_ns: int, joules: float, silent_s: float = 0.0) -> None:
        """One more; the clock is monotonic."""
        self._points.append(EnergyPoint(t_ns, joules, silent_s))

    def clear(self) -> None:
        """What comes next does not belong to what was."""
        self._points.clear()

    def since(self, t_ns: int) -> list[EnergyPoint]:
        """The last one up to `t_ns`, and all after it."""
        found: list[EnergyPoint] = []
        for each in reversed(self._points):
            found.append(each)
            if each.t_ns <= t_ns:
                break
        return found[::-1]
