"""A meter proves itself before it is trusted: its counter must move while the machine works.

Sensors exist that initialise and then say nothing, or the same for ever; a result computed from
one of those would be an energy of zero.
"""

from __future__ import annotations

from dataclasses import dataclass


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
