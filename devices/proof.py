"""A meter proves itself before it is trusted: its counter must move while the machine works.

Sensors exist that initialise and then say nothing, or the same for ever; a result computed from
one of those would be an energy of zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a meter is not used.

    Attributes:
        finding: which, and why.
        remedy: the command that makes it usable, or None where there is none.
    """

    finding: str
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.finding}; to change that: {self.remedy}" if self.remedy else self.finding


PROOF_NS = 200_000_000  # counters of energy move every millisecond or so, power gauges every 0.1 s


def counter_moves(read: Callable[[], float], clock: Callable[[], int]) -> bool:
    """Whether a counter changes while this thread keeps a CPU busy.

    Args:
        read: reads the counter.
        clock: nanoseconds.

    Returns:
        True as soon as two readings differ, False when `PROOF_NS` pass without.
    """
    first = read()
    deadline = clock() + PROOF_NS
    while clock() < deadline:
        # Reading is the work that keeps the CPU busy.
        if read() != first:
            return True
    return False
