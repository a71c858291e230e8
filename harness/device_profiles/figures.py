"""What a profile is made of: a figure with its source, or without a value and with the reason."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self

from pydantic import BaseModel, Field, WithJsonSchema, field_validator, model_validator

from edgebench.harness.scenario.problems import shown
from edgebench.harness.scenario.quantities import size_in_bytes
from edgebench.harness.scenario.values import Label, Text, refusal
from edgebench.harness.scenario.written import STRICT

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

Basis = Literal["maker", "third_party", "measured", "derived", "assumed", "unchecked"]
"""Who says it: the maker, somebody else, the machine itself; or it follows from other figures, or
nobody says it and something has to be assumed; or it is common knowledge, and whoever wrote it down
had no document at hand."""

KIB: Final = 1024
GIB: Final = KIB**3

_EXPONENTS: Final = {"m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")

_NUMBER_SCHEMA: Final[list[JsonSchemaValue]] = [{"type": "number"}, {"type": "string"}]
_WRITTEN_SCHEMA: Final[JsonSchemaValue] = {"anyOf": [*_NUMBER_SCHEMA, {"type": "null"}]}


class Sourced(BaseModel, ABC):
    """Something that is known from somewhere, or that is not known for a reason."""

    model_config = STRICT

    source: Text | None = Field(
        default=None, description="Where it is from, in one sentence that names the document."
    )
    basis: Basis = Field(
        default="maker",
        description="Who says it: maker, third_party, measured (by the machine itself), derived "
        "(from other figures), assumed, or unchecked (from general knowledge, without a document).",
    )
    reason: Text | None = Field(default=None, description="Why there is no value.")

    @abstractmethod
    def has_value(self) -> bool:
        """Whether it is known."""

    @model_validator(mode="after")
    def _is_accounted_for(self) -> Self:
        message = None
        if self.has_value():
            if self.source is None:
                message = "its source is missing: name the document that says it"
            elif self.reason is not None:
                message = "it has a value, so there is no reason for having none"
        elif self.reason is None:
            message = "it has neither a value with its source nor a reason for having none"
        elif self.source is not None:
            message = "it has no value, so there is nothing for a source to say"
        if message is not None:
            raise refusal(message)
        return self


class Fact(Sourced):
    """A name, or another text."""

    value: Label | None = Field(default=None, description="What it is; null where unknown.")

    def has_value(self) -> bool:
        """Whether it is known."""
        return self.value is not None


class Names(Sourced):
    """Several names."""

    value: list[Label] | None = Field(default=None, description="A list; null where unknown.")

    def has_value(self) -> bool:
        """Whether they are known."""
        return self.value is not None


class Figure(Sourced):
    """A number in the unit that its field is named after."""

    unit: ClassVar[str] = ""
    units: ClassVar[tuple[str, ...]] = ()
    """How it may be written, with a prefix such as G before it."""
    least: ClassVar[float] = 0
    most: ClassVar[float] = math.inf
    """No device has less or more: whoever writes that has mistaken the unit."""
    example: ClassVar[str] = "1"

    value: Annotated[float | None, WithJsonSchema(_WRITTEN_SCHEMA)] = Field(
        default=None,
        description="The figure, with its unit or in the one that the key is named after; null "
        "where unknown.",
    )

    def has_value(self) -> bool:
        """Whether it is known."""
        return self.value is not None

    @field_validator("value", mode="before")
    @classmethod
    def _read(cls, value: object) -> float | None:
        if value is None:
            return None
        found: float | None = None
        if isinstance(value, str):
            found = cls.parse(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = float(value)
        if found is None or not math.isfinite(found):
            message = f"must be a figure such as {cls.example}, got {shown(value)}"
            raise refusal(message)
        if found < 0:
            message = f"must not be negative, got {value}"
            raise refusal(message)
        if not cls.least <= found <= cls.most:
            message = (
                f"no device has {found:g} {cls.unit}; is the unit missing? Write it as "
                f"{cls.example}, got {value}"
            )
            raise refusal(message)
        return found

    @classmethod
    def parse(cls, text: str) -> float | None:
        """A number with its unit; None where it is none of this kind."""
        text = text.strip()
        for unit in cls.units:
            if not text.endswith(unit):
                continue
            number = text.removesuffix(unit).rstrip()
            exponent = _EXPONENTS.get(number[-1:], 0)
            if exponent:
                number = number[:-1].rstrip()
            # Of the decimal number, so that 17.1 GB/s is the nearest number to it.
            if _NUMBER.fullmatch(number):
                return float(f"{number}e{exponent}")
        return None


class Bytes(Figure):
    """A size."""

    unit, example = "bytes", "8GiB"
    least, most = 16 * KIB**2, float(KIB**5)

    @classmethod
    def parse(cls, text: str) -> float | None:
        """``8GiB`` or ``8GB``."""
        return None if text.strip().isdigit() else size_in_bytes(text.strip())


class BytesPerSecond(Figure):
    """A bandwidth."""

    unit, units, example = "bytes/s", ("B/s",), "34.1GB/s"
    least, most = 1e6, 1e14


class MemoryBandwidth(BytesPerSecond):
    """Of the main memory."""

    least = 1e8


class Watts(Figure):
    """A power."""

    unit, units, example = "W", ("W",), "12W"
    least, most = 0.01, 1e4


class Hertz(Figure):
    """A clock."""

    unit, units, example = "Hz", ("Hz",), "2.4GHz"
    least, most = 1e6, 2e10


class OpsPerSecond(Figure):
    """How much is computed in a second; a multiplication and an addition are two."""

    unit, units, example = "operations/s", ("OP/s", "FLOP/s", "OPS", "FLOPS"), "20TOPS"
    least, most = 1e8, 1e16


class OpsPerCycle(Figure):
    """How much one core computes in a cycle; a multiplication and an addition are two."""

    unit, example = "operations a cycle", "16"
    least, most = 0.5, 8192


class Bits(Figure):
    """The width of a bus."""

    unit, units, example = "bits", ("bits", "bit"), "64"
    least, most = 8, 16384


class Ram(Bytes):
    """Main memory; several sizes where the device is sold with several."""

    choices: list[Annotated[float, WithJsonSchema({"anyOf": _NUMBER_SCHEMA})]] = Field(
        default=[],
        description="The sizes that are sold, where there are several; `value` is the one that is "
        "assumed where none is named.",
    )

    @field_validator("choices", mode="before")
    @classmethod
    def _read_choices(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [cls._read(item) for item in value]

    @model_validator(mode="after")
    def _is_a_choice(self) -> Self:
        if self.choices and self.value not in self.choices:
            message = "its value must be one of its choices"
            raise refusal(message)
        return self
