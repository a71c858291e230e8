"""A value, or why there is none."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from edgebench.harness.results.record import Record

Scalar = bool | int | float | str | None
Source = Literal["observed", "engine", "derived", "estimated"]


class Measured(Record):
    """One value of one trial, or why there is none."""

    value: float | None = Field(description="A finite number, or null where it was not measured.")
    unit: str = Field(description="Unit, such as s, token/s, byte, J; 1 for a ratio or count.")
    source: Source = Field(description="Who said so: our clock, the framework, or a computation.")
    reason: str | None = Field(default=None, description="Why the value is null.")

    @model_validator(mode="after")
    def _null_has_a_reason(self) -> Self:
        if self.value is None and not self.reason:
            msg = "a null value needs a reason"
            raise ValueError(msg)
        if self.value is not None and not math.isfinite(self.value):
            msg = "a value must be finite"
            raise ValueError(msg)
        return self

    @classmethod
    def missing(cls, unit: str, reason: str, source: Source = "observed") -> Measured:
        """A null with its reason."""
        return cls(value=None, unit=unit, source=source, reason=reason)


class Failure(Record):
    """Why a trial or a cell has no result."""

    kind: str = Field(
        description="crash, timeout, protocol, invalid_result, unavailable, model; connection or "
        "board, where it was that of another machine, or that machine itself; or what the "
        "runner named: unsupported, invalid, out_of_memory, framework, internal."
    )
    message: str
    signal: str | None = None
    exit_code: int | None = None
    log: str | None = Field(default=None, description="The log, relative to the run's folder.")
    log_tail: str = ""
