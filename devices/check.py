"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it.

    Attributes:
        name: what was looked at.
        status: ``good``; ``note``, worth knowing; ``problem``, spoils a measurement.
        finding: one sentence.
        remedy: a command or one sentence; None where there is nothing to do.
    """

    name: str
    status: Literal["good", "note", "problem"]
    finding: str
    remedy: str | None = None

    def __post_init__(self) -> None:
        if self.status == "good" and self.remedy is not None:
            msg = f"{self.name} is good and needs no remedy"
            raise ValueError(msg)
