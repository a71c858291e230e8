"""What results keep of energy meters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.record import Record


class MeterRecord(Record):
    """A meter of the machine that a run was on."""

    name: str = Field(description="Such as rapl:package.")
    source: Literal["observed", "estimated"]


class MeterEnergy(Record):
    """What one meter saw of one generation, or of sustained work.

    Null where it could not tell, with the reason.
    """

    meter: str
    source: Literal["observed", "estimated"]
    prefill_j: float | None = None
    decode_j: float | None = None
    mean_power_w: float | None = Field(
        default=None, description="Over the decoding; of sustained work, over the whole of it."
    )
    reason: str | None = Field(default=None, description="Why any of them is null.")
