"""What results keep of sustained work: a generation after the other, for minutes."""

from __future__ import annotations

from pydantic import BaseModel, Field

from edgebench.harness.results.record import BY_MACHINES


class SustainedRecord(BaseModel):
    """One stretch of work; every list has the length of ``t_s``, null where not read."""

    model_config = BY_MACHINES

    asked_s: float = Field(description="How long it was asked to last.")
    lasted_s: float
    generations: int = Field(description="How many generations there were, one after the other.")
    tokens: int
    t_s: list[float] = Field(description="The middle of each interval, in seconds from the start.")
    decode_rate: list[float | None] = Field(description="Tokens/s of the decoding within each.")
    clock_hz: list[float | None] = []
    temperature_celsius: list[float | None] = []
    power_w: list[float | None] = Field(default=[], description="Of the first meter.")
    throttled: bool | None = Field(
        default=None, description="Whether rate and clock fell together; null where not decidable."
    )
    throttled_at_s: float | None = None
    throttled_because: str = Field(default="", description="What was seen, or why not decidable.")
