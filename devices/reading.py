"""A number that was read, or the reason why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one quantity; its unit is named where it is asked for.

    Attributes:
        value: a finite number, or None where it could not be read.
        reason: why there is no value; None where there is one.
        method: what it was read from, such as ``VmHWM``.
    """

    value: float | None
    reason: str | None = None
    method: str = ""

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            msg = "a reading without a value needs a reason"
            raise ValueError(msg)
        if self.value is not None and not math.isfinite(self.value):
            msg = f"a reading must be finite, got {self.value}"
            raise ValueError(msg)

    @classmethod
    def missing(cls, reason: str, *, method: str = "") -> Reading:
        """No value, and why."""
        return cls(None, reason, method)
