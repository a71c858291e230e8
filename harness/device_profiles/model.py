"""A device's profile as people write it.

History of the format (``schema_version``), which is independent of all others:

1. the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from edgebench.harness.device_profiles.figures import (
    Bits,
    BytesPerSecond,
    Fact,
    Figure,
    Hertz,
    MemoryBandwidth,
    Names,
    OpsPerCycle,
    OpsPerSecond,
    Ram,
    Watts,
)
from edgebench.harness.scenario.values import Label, Slug, Some, Text, format_version, refusal
from edgebench.harness.scenario.written import STRICT

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA_VERSION: Final = 1

Kind = Literal["phone", "board", "laptop", "desktop", "server", "vm"]


def _version(value: object) -> object:
    return format_version(value, SCHEMA_VERSION)


FormatVersion = Annotated[Literal[1], BeforeValidator(_version)]


class Cores(BaseModel):
    """The cores of one kind."""

    model_config = STRICT

    name: Label = Field(description="Their name, such as Cortex-A76.")
    count: int = Field(ge=1, le=4096, description="How many of them.")
    source: Text = Field(description="Where name and number are from.")
    max_hz: Hertz = Field(description="Their highest clock.")
    fp32_flop_per_cycle: OpsPerCycle = Field(
        description="What the vector units of one of them compute in a cycle in float32."
    )
    int8_op_per_cycle: OpsPerCycle = Field(description="The same of 8-bit integer dot products.")


class Memory(BaseModel):
    """The main memory."""

    model_config = STRICT

    kind: Fact = Field(description="Such as LPDDR5-6400.")
    width_bits: Bits = Field(description="All channels together.")
    bandwidth_bytes_per_s: MemoryBandwidth = Field(description="The peak that it is made for.")


class PowerLimits(BaseModel):
    """What it draws, of the device where it is a board or phone, else of the processor."""

    model_config = STRICT

    peak_w: Watts = Field(description="The most that it draws for a short while.")
    sustained_w: Watts = Field(description="What it may draw for as long as it likes.")
    tdp_w: Watts = Field(description="The thermal design power that its maker names.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        peak = self.peak_w.value
        if peak is None:
            return self
        sustained, tdp = self.sustained_w.value, self.tdp_w.value
        if sustained is not None and sustained > peak:
            message = (
                f"the sustained power, {sustained:g} W, is above the peak power, {peak:g} W; what "
                "may be drawn for long may be drawn for a while"
            )
            raise refusal(message)
        # A limit that somebody set on a machine may well be below its maker's figure.
        if tdp is not None and tdp > peak and self.peak_w.basis != "measured":
            message = f"the TDP, {tdp:g} W, is above the peak power, {peak:g} W"
            raise refusal(message)
        return self


class Storage(BaseModel):
    """What models are loaded from."""

    model_config = STRICT

    kind: Fact = Field(description="Such as microSD, UFS 4.0, NVMe.")
    read_bytes_per_s: BytesPerSecond = Field(description="Read one after the other.")


class Accelerator(BaseModel):
    """A GPU, an NPU and the like."""

    model_config = STRICT

    kind: Literal["gpu", "npu", "dla", "other"] = Field(description="gpu, npu, dla or other.")
    name: Fact = Field(description="What its maker calls it.")
    fp32_flops: OpsPerSecond = Field(description="In float32.")
    int8_ops: OpsPerSecond = Field(description="In 8-bit integers, dense.")


class Compute(BaseModel):
    """What all cores together compute; derived from `Cores`."""

    model_config = STRICT

    fp32_flops: OpsPerSecond
    int8_ops: OpsPerSecond


def _total(cores: Sequence[Cores], field: str) -> float | None:
    """What all of them compute a second; None where that is not known."""
    total = 0.0
    for each in cores:
        figure: OpsPerCycle = getattr(each, field)
        if each.max_hz.value is None or figure.value is None:
            return None
        total += each.count * each.max_hz.value * figure.value
    return total


class DeviceProfile(BaseModel):
    """What is known of a device, each figure with its source."""

    model_config = STRICT

    schema_version: FormatVersion = Field(description="Version of this format: 1.")
    key: Slug = Field(description="What people write to name it.")
    name: Label = Field(description="What it is called.")
    kind: Kind = Field(description="phone, board, laptop, desktop, server or vm.")
    soc: Fact = Field(description="Its system on a chip, or processor.")
    cores: Some[Cores] = Field(description="Its cores by kind, the fastest first.")
    instruction_sets: Names = Field(
        description="Those that matter to quantised models, such as dotprod, i8mm, avx_vnni, as "
        "Linux names them."
    )
    ram_bytes: Ram = Field(description="Main memory.")
    memory: Memory = Field(description="How the main memory is built.")
    power: PowerLimits = Field(description="What it draws.")
    storage: Storage = Field(description="What models are loaded from.")
    accelerators: list[Accelerator] = Field(default=[], description="GPUs, NPUs and the like.")
    notes: list[Text] = Field(default=[], description="What else a reader must know.")

    @field_validator("cores", mode="after")
    @classmethod
    def _compute_what_a_device_can(cls, cores: tuple[Cores, ...]) -> tuple[Cores, ...]:
        for field in ("fp32_flop_per_cycle", "int8_op_per_cycle"):
            total = _total(cores, field)
            if total is not None and not OpsPerSecond.least <= total <= OpsPerSecond.most:
                message = (
                    f"all together compute {total:g} operations a second by their {field}, which "
                    "no device does: cores x clock x operations a cycle"
                )
                raise refusal(message)
        return cores

    @property
    def compute(self) -> Compute:
        """Peaks of all cores together: sum of cores x clock x operations a cycle."""
        return Compute(
            fp32_flops=self._peak("fp32_flop_per_cycle"), int8_ops=self._peak("int8_op_per_cycle")
        )

    def _peak(self, field: str) -> OpsPerSecond:
        total, parts = 0.0, []
        for cores in self.cores:
            figure = getattr(cores, field)
            assert isinstance(figure, Figure)
            for known, what in ((cores.max_hz, "clock"), (figure, "operations a cycle")):
                if known.value is None:
                    reason = f"{cores.name}: {what} not known ({known.reason})"
                    return OpsPerSecond(reason=reason)
            clock, each = cores.max_hz.value or 0.0, figure.value or 0.0
            total += cores.count * clock * each
            parts.append(f"{cores.count} x {clock / 1e9:g} GHz x {each:g}")
        return OpsPerSecond(
            value=total,
            source=f"Derived, cores x highest clock x operations a cycle: {' + '.join(parts)}",
            basis="derived",
        )
