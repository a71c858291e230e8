"""What results keep of the device that a run was on, beside what the machine says of itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edgebench.harness.results.record import Record


class DeviceRecord(Record):
    """How it was reached, and the profile that the scenario named."""

    reach: Literal["local", "ssh", "adb"]
    address: str | None = Field(default=None, description="As the scenario names it.")
    profile: str | None = Field(default=None, description="The profile's key, such as jetson-agx.")
    profile_name: str | None = Field(default=None, description="The device's name in the profile.")
    tdp_w: float | None = Field(default=None, description="Of the profile.")
    sustained_w: float | None = Field(default=None, description="Sustained power, of the profile.")


Speed = Annotated[float, Field(ge=1e3, le=1e16)]
"""Bytes/s of a memory: what is beyond was never measured, and nothing can be divided by it."""


class BandwidthRecord(Record):
    """How fast the machine's memory was read, measured."""

    bytes_per_s: Speed = Field(description="The median of the repetitions of the fastest reader.")
    ci_low: Speed | None = Field(default=None, description="95 % bootstrap interval.")
    ci_high: Speed | None = None
    samples: list[Speed] = Field(min_length=1, description="Bytes/s of each repetition.")
    threads: int = Field(ge=1)
    array_bytes: int = Field(
        ge=1, description="How much was read in a repetition, many times a cache."
    )
    reader: str = Field(description="What read it, such as memchr.")
    measured_at: str = Field(description="UTC, ISO 8601.")
    fingerprint: str = Field(description="Of the machine.")
    cache_bytes: int | None = Field(
        default=None, ge=1, description="Its last-level caches together; null where not told."
    )
    disturbed: bool = Field(
        default=False,
        description="Whether other processes took the CPUs meanwhile, so that it may be more.",
    )
    at_most_bytes_per_s: Speed | None = Field(
        default=None,
        description="Of a disturbed reading, what it could have been with all CPUs; else null.",
    )
