"""What a board's agent sends, parsed and checked once, at the edge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from edgebench.devices.bandwidth import Bandwidth
from edgebench.devices.check import Check
from edgebench.devices.machine import Machine
from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Gap, Level, Sample, Window
from edgebench.harness.board import MeterFacts
from edgebench.harness.errors import RunnerProtocolError
from edgebench.harness.ssh.words import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
Bytes: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]

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
_TEXT = TypeAdapter(str)
_FLAG = TypeAdapter(bool)
_STATUS: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(gt=-(1 << 31), lt=1 << 31)])
_PID: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(gt=0, lt=1 << 31)])
_COUNTS: TypeAdapter[tuple[int, ...]] = TypeAdapter(tuple[Bytes, ...])
_FACTS: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


@dataclass(frozen=True, slots=True)
class CopyProblem:
    """Why a board does not take a model.

    Attributes:
        kind: what it is.
        message: the board's own words.
        needed: bytes, where space is what is missing.
        free: bytes.
    """

    kind: str
    message: str
    needed: Bytes | None = None
    free: Bytes | None = None


_COPY_PROBLEM = TypeAdapter(CopyProblem)


def message(body: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """A message's method, empty where it is an answer, and its facts.

    Raises:
        RunnerProtocolError: the facts are no object; as all functions here do. The board's name
            is added by `diagnosis.naming`.
    """
    method = body.get("method")
    facts = body.get("params")
    return (
        "" if method is None else _parse(_TEXT, method, "message"),
        {} if facts is None else _parse(_FACTS, facts, f"message {method}"),
    )


def problem(facts: Mapping[str, object]) -> tuple[str, str]:
    """What the first program finds wrong: its kind, and the words to it."""
    return (
        _parse(_TEXT, facts.get("kind"), "problem"),
        _parse(_TEXT, facts.get("text", ""), "problem"),
    )


def pid(answer: Mapping[str, object]) -> int:
    """The id of a process there."""
    return _parse(_PID, answer.get("pid"), "answer to board.start")


def ended(facts: Mapping[str, object]) -> int:
    """How a runner ended: its status, or less than zero for a signal."""
    return _parse(_STATUS, facts.get("code"), "message board.ended")


def reason(answer: Mapping[str, object]) -> str:
    """Why something was not done; empty where it was."""
    return _parse(_TEXT, answer.get("reason"), "answer")


def model_path(facts: Mapping[str, object]) -> str:
    """Where a model is there."""
    return _parse(_TEXT, facts.get("path"), "path of a model")


def offsets(facts: Mapping[str, object], sizes: Sequence[int]) -> tuple[int, ...]:
    """How many bytes of each file are there, for files of these sizes."""
    found = _parse(_COUNTS, facts.get("offsets"), "list of what arrived")
    if len(found) != len(sizes) or any(
        there > size for there, size in zip(found, sizes, strict=True)
    ):
        msg = "the board's list of what arrived is not of the files that it was told of"
        raise RunnerProtocolError(msg)
    return found


def damaged(facts: Mapping[str, object]) -> bool:
    """Whether a model that was there before is to be sent because it was damaged since."""
    return _parse(_FLAG, facts.get("damaged", False), "message model.send")


def copy_problem(facts: Mapping[str, object]) -> CopyProblem:
    """Why a board does not take a model."""
    known = {"kind": "", "message": "", **facts}
    return _parse(_COPY_PROBLEM, known, "message model.problem")


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
        # By way of JSON, whose strict mode takes a list for a tuple and nothing else. 1e999 is a
        # number of JSON and an infinity here.
        return adapter.validate_json(json.dumps(sent, allow_nan=False), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in (".".join(map(str, first["loc"])),) if part)
        why = f"{place}{first['msg']}"
    except (ValueError, RecursionError) as error:
        why = str(error)
    msg = f"the board's {one_line(what)} is malformed: {one_line(why)}"
    raise RunnerProtocolError(msg)
