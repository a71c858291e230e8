"""From what a program prints of power, piece by piece, to gauges."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from edgebench.devices.gauge import GAP_INTERVALS, GaugeMeter

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.pieces import Pieces

Key = TypeVar("Key")


class ToolReader(ABC, Generic[Key]):
    """The gauges that a program feeds; a subclass understands what it prints.

    Args:
        clock: nanoseconds.
        pieces: cuts the output.
        interval_s: how often the program tells, in seconds.
        averages: as in `GaugeMeter`.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        pieces: Pieces,
        interval_s: float,
        *,
        averages: bool = False,
    ) -> None:
        self._clock = clock
        self._pieces = pieces
        self._interval_s = interval_s
        self._averages = averages
        self._changed = threading.Condition()  # guards all below
        self._gauges: dict[Key, GaugeMeter] = {}
        self._ended: str | None = None

    @property
    def ended(self) -> str | None:
        """Why the program is over; None while it runs."""
        with self._changed:
            return self._ended

    def take(self, piece: bytes) -> None:
        """Take some of the output."""
        with self._changed:
            for each in self._pieces.feed(piece):
                self._understand(each)
            self._changed.notify_all()

    def end(self, reason: str) -> None:
        """The program ended."""
        with self._changed:
            self._ended = reason
            for gauge in self._gauges.values():
                gauge.fail(reason, measures=False)
            self._changed.notify_all()

    @abstractmethod
    def _understand(self, piece: bytes) -> None:
        """Take one whole piece."""

    def _add(self, key: Key, name: str, t_ns: int, watts: float) -> None:
        """A reading of one gauge, which begins with its first."""
        if key not in self._gauges:
            self._gauges[key] = GaugeMeter(
                name,
                self._clock,
                longest_gap_s=GAP_INTERVALS * self._interval_s,
                resolution_s=self._interval_s,
                averages=self._averages,
            )
        self._gauges[key].add(t_ns, watts)
