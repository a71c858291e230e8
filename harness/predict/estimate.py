"""What a prediction says: a range, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

PREDICTED = "predicted"
"""What stands beside every one of these numbers."""


def tokens_in_words(count: int) -> str:
    """``1 token``, ``512 tokens``."""
    return f"{count} token{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that was not measured.

    Attributes:
        low, high: of the range, finite; both None where nothing can be said. The same where it is
            one number, such as a bound.
        unit: such as ``token/s``.
        reason: why there is none.
        source: always `PREDICTED`.
    """

    low: float | None
    high: float | None
    unit: str
    reason: str = ""
    source: str = field(default=PREDICTED, init=False)

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None) or (self.low is None) != bool(self.reason):
            msg = "an estimate has both ends of its range, or a reason for having none"
            raise ValueError(msg)
        ends = [each for each in (self.low, self.high) if each is not None]
        if not all(map(math.isfinite, ends)):
            msg = "an estimate must be finite"
            raise ValueError(msg)

    @classmethod
    def missing(cls, unit: str, reason: str) -> Estimate:
        """None, and why."""
        return cls(None, None, unit, reason)

    @classmethod
    def of(cls, unit: str, *ends: float) -> Estimate:
        """A range in order; of one number, that number."""
        return cls(min(ends), max(ends), unit)

    def times(self, *factors: float, unit: str | None = None) -> Estimate:
        """The range times one number, or times a range of numbers above 0."""
        if self.low is None or self.high is None:
            return Estimate(None, None, unit or self.unit, self.reason)
        return Estimate(self.low * min(factors), self.high * max(factors), unit or self.unit)

    def over(self, number: float, unit: str) -> Estimate:
        """A number divided by the range, which is above 0."""
        if self.low is None or self.high is None:
            return Estimate.missing(unit, self.reason)
        return Estimate.of(unit, number / self.high, number / self.low)
