"""Whether a board was reached before, and how patiently it is tried again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELAYS_S = (1.0, 3.0, 6.0, 15.0)
"""Between tries: a cable that was pulled is soon back, a board that restarts takes longer."""

GIVEN_UP_S = 60.0
"""After a round of tries that came to nothing, the next ones are single for so long."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds.

    Attributes:
        ping_s: how often each connection shows that the host is alive.
        silence_s: a side that hears nothing for so long takes the link for broken.
        start_s: connecting, sending the worker, and starting Python there.
        delays_s: between the tries to reach a board again.
    """

    ping_s: float = 4.0
    silence_s: float = 20.0
    start_s: float = 180.0
    delays_s: tuple[float, ...] = DELAYS_S


@dataclass(slots=True)
class Contact:
    """What is known of a board's connections.

    Attributes:
        limits: how long things may take.
        sleep: waits.
        monotonic: seconds.
    """

    limits: Limits = field(default_factory=Limits)
    sleep: Callable[[float], object] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    _reached: bool = False
    _gave_up_at: float | None = None

    def tries(self) -> Iterator[bool]:
        """Once for each try, waiting before all but the first; whether it is the last one.

        A board that was never reached gets one: its address is more likely wrong than its cable.
        """
        gave_up = self._gave_up_at
        patient = self._reached and (gave_up is None or self.monotonic() - gave_up > GIVEN_UP_S)
        delays = self.limits.delays_s if patient else ()
        yield not delays
        for position, delay in enumerate(delays, start=1):
            self.sleep(delay)
            yield position == len(delays)

    def reached(self) -> None:
        """A connection stands."""
        self._reached, self._gave_up_at = True, None

    def gave_up(self) -> None:
        """All tries came to nothing."""
        self._gave_up_at = self.monotonic()
