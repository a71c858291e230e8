"""What results keep of sustained work: a generation after the other, for minutes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.record import Record


class GenerationSpan(Record):
    """One generation of a stretch, in seconds from the stretch's start."""

    started_s: float = Field(description="When its prompt was handed over.")
    first_token_s: float
    last_token_s: float
    tokens: int


class SustainedRecord(Record):
    """One stretch of work; every list has the length of ``t_s``, null where not read."""

    asked_s: float = Field(description="How long it was asked to last.")
    lasted_s: float
    interval_s: float = Field(default=0.0, description="How long each interval of the lists is.")
    edge_s: float = Field(
        default=0.0,
        description="How long the first and the last part are that the burst and the sustained "
        "rate are of.",
    )
    generations: int = Field(description="How many generations there were, one after the other.")
    tokens: int
    t_s: list[float] = Field(description="The middle of each interval, in seconds from the start.")
    decode_rate: list[float | None] = Field(description="Tokens/s of the decoding within each.")
    clock_hz: list[float | None] = Field(default=[])
    temperature_celsius: list[float | None] = Field(default=[])
    power_w: list[float | None] = Field(default=[], description="Of the first meter.")
    power_source: Literal["observed", "estimated"] | None = Field(
        default=None, description="What that meter's readings are; null without a meter."
    )
    power_over_s: float | None = Field(
        default=None,
        description="Over how long a value of power_w is the mean, at most: longer than an "
        "interval where the meter is too slow for one.",
    )
    power_reason: str | None = Field(
        default=None, description="Why values of power_w are null; null where none is."
    )
    spans: list[GenerationSpan] = Field(default=[], description="Each generation, in order.")
    throttled: bool | None = Field(
        default=None, description="Whether rate and clock fell together; null where not decidable."
    )
    throttled_at_s: float | None = None
    throttled_because: str = Field(default="", description="What was seen, or why not decidable.")
