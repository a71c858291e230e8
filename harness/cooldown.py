"""Waiting between blocks until the device is as cool as it was before the first one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.reading import Reading

POLL_S: Final = 1.0
"""How often the temperature is read meanwhile."""


@dataclass(frozen=True, slots=True)
class Waited:
    """How a block came to its start.

    Attributes:
        seconds: how long it waited.
        celsius: the temperature at its start; None where it can't be read.
        reference: the temperature before the first block; None where it could not be read.
        reached: whether it became cool enough; None where that can't be told.
        why: why `celsius` is None.
    """

    seconds: float
    celsius: float | None
    reference: float | None
    reached: bool | None
    why: str = ""


class Cooldown:
    """Waits until the temperature is that before the first block again, or a limit of time.

    Args:
        within_celsius: cool enough at so many degrees above it.
        at_most_s: the limit.
        temperature: reads it, in degrees Celsius.
        pause_s: how long to wait where there is no temperature to go by.
        now: seconds of a clock that never goes back.
        sleep: waits.
    """

    def __init__(
        self,
        within_celsius: float,
        at_most_s: float,
        temperature: Callable[[], Reading],
        *,
        pause_s: float = 0.0,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._within = within_celsius
        self._at_most_s = at_most_s
        self._temperature = temperature
        self._pause_s = pause_s
        self._now = now
        self._sleep = sleep
        self._first = temperature()

    @property
    def why_blind(self) -> str:
        """Why there is no temperature to go by; empty where there is one."""
        return "" if self._first.value is not None else self._first.reason or "it can't be read"

    def wait(self, left_s: float, *, first: bool) -> Waited:
        """Wait, as long as there is need.

        Args:
            left_s: of the time budget, beyond which nothing waits.
            first: whether nothing ran yet, so that there is nothing to wait for.
        """
        begun = self._now()
        if self._first.value is None:
            if not first and self._pause_s:
                self._sleep(min(self._pause_s, max(0.0, left_s)))
            return Waited(self._now() - begun, None, None, None, self.why_blind)
        cool = self._first.value + self._within
        limit = begun + min(self._at_most_s, max(0.0, left_s))
        found = self._temperature()
        while found.value is not None and found.value > cool and self._now() < limit:
            self._sleep(min(POLL_S, max(0.0, limit - self._now())))
            found = self._temperature()
        return Waited(
            seconds=self._now() - begun,
            celsius=found.value,
            reference=self._first.value,
            reached=None if found.value is None else found.value <= cool,
            why=found.reason or "",
        )
