"""What a board's agent sends, parsed and checked once, at the edge."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from edgebench.devices.bandwidth import Bandwidth
from edgebench.devices.check import Check
from edgebench.devices.machine import Machine
from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Gap, Level, Sample, Window
from edgebench.harness.board import MeterFacts
from edgebench.harness.errors import RunnerProtocolError

T = TypeVar("T")

_WINDOW: TypeAdapter[Window] = TypeAdapter(Window)
_WINDOW.rebuild(
    force=True,
    _types_namespace={
        each.__name__: each for each in (EnergyPoint, EnergyTrace, Gap, Level, Reading, Sample)
    },
)
_MACHINE = TypeAdapter(Machine)
_READING = TypeAdapter(Reading)
_READINGS = TypeAdapter(tuple[Reading, ...])
_METERS = TypeAdapter(tuple[MeterFacts, ...])
_TEXTS = TypeAdapter(tuple[str, ...])
_BANDWIDTH = TypeAdapter(Bandwidth)
_CHECKS = TypeAdapter(tuple[Check, ...])


def window(sent: object) -> Window:
    """What a monitor saw there; its times are of the clock there."""
    return _parse(_WINDOW, sent, "window")


def machine(sent: object) -> Machine:
    """Which machine it is."""
    return _parse(_MACHINE, sent, "description of itself")


def reading(sent: object) -> Reading:
    """One number, or why there is none."""
    return _parse(_READING, sent, "reading")


def readings(sent: object) -> tuple[Reading, ...]:
    """Several of them."""
    return _parse(_READINGS, sent, "readings")


def meter_facts(sent: object) -> tuple[MeterFacts, ...]:
    """Its meters."""
    return _parse(_METERS, sent, "meters")


def texts(sent: object) -> tuple[str, ...]:
    """Sentences."""
    return _parse(_TEXTS, sent, "refusals")


def bandwidth(sent: object) -> Bandwidth:
    """How fast its memory is."""
    return _parse(_BANDWIDTH, sent, "bandwidth")


def checks(sent: object) -> tuple[Check, ...]:
    """What will spoil a measurement there."""
    return _parse(_CHECKS, sent, "checks")


def _parse(adapter: TypeAdapter[T], sent: object, what: str) -> T:
    try:
        # By way of JSON, whose strict mode takes a list for a tuple and nothing else.
        return adapter.validate_json(json.dumps(sent), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        msg = f"the board's {what} is malformed: {place}: {first['msg']}"
        raise RunnerProtocolError(msg) from None
