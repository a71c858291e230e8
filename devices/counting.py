"""Adds up the steps of a counter of energy, and none that no machine could have drawn."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NS = 1e9
MOST_WATTS = 2_000.0
"""No processor, graphics card or board draws more."""
LATE_S = 0.05
"""By how much a counter may lag, at least: one that was late has all at once."""


class Counting:
    """A counter's sum since it was first read.

    A counter that begins anew (its driver was loaded again, the machine slept) looks like one
    that went once around, or that jumped. What tells them apart is the power that it would take.

    Args:
        what: the counter, as a sentence names it.
        now: what it shows now.
        per_joule: its units in a joule.
        clock: nanoseconds.
        turns_at: where it starts again at 0; None where it never does.
        resolution_s: how often it changes.
    """

    def __init__(
        self,
        what: str,
        now: int,
        per_joule: int,
        clock: Callable[[], int],
        *,
        turns_at: int | None = None,
        resolution_s: float = 0.0,
    ) -> None:
        self.total = 0
        self._what = what
        self._last = now
        self._per_joule = per_joule
        self._clock = clock
        self._turns_at = turns_at
        self._late_s = max(LATE_S, resolution_s)
        self._last_ns = clock()

    def take(self, now: int) -> None:
        """Add what it went on by; `total` is in the counter's own units.

        Raises:
            OSError: it went back, or on by more than can be. It is counted on from here.
        """
        now_ns = self._clock()
        step, passed_s = now - self._last, (now_ns - self._last_ns) / NS
        self._last, self._last_ns = now, now_ns
        if step < 0 and self._turns_at is not None:
            step += self._turns_at
        most = MOST_WATTS * (passed_s + self._late_s) * self._per_joule
        if not 0 <= step <= most:
            raise OSError(errno.EIO, f"{self._what} began anew")
        self.total += step
