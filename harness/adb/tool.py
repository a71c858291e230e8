"""A framework's own benchmark tool: what it is asked, and what it tells."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.errors import InvalidResultError, RunnerProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.measured import Scalar

MOST: Final = 10**18
"""No figure of a benchmark is more, in whatever unit."""
AGREEMENT: Final = 0.01
LONGEST_OPTION: Final = 300

Phase = Literal["prefill", "decode", "both"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One workload for one variant.

    Attributes:
        model: the path of the file or folder on the device.
        options: the variant's, without those that shaped the model.
        context_tokens: room for so many tokens.
        usage: what the tool prints of its options; empty where that was not asked.
        model_bytes: of the file or folder; None where that is not known.
    """

    model: str
    prompt_tokens: int
    depth_tokens: int
    generate_tokens: int
    options: Mapping[str, Scalar]
    context_tokens: int
    usage: str = ""
    model_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One start of the tool.

    Attributes:
        arguments: what it is started with.
        phase: what it measures.
        repetitions: how often it does.
    """

    arguments: tuple[str, ...]
    phase: Phase
    repetitions: int


@dataclass(frozen=True, slots=True)
class Line:
    """What a tool printed, and when it arrived, in nanoseconds of this machine's clock."""

    text: str
    t_ns: int = field(default_factory=time.perf_counter_ns)


@dataclass(frozen=True, slots=True)
class Sample:
    """One phase of one repetition, as the tool tells it.

    Attributes:
        rate: tokens/s.
        seconds: how long it took; None where only the rate is told.
        ended_ns: when it was over, by this machine's clock; None where that can't be told.
    """

    tokens: int
    rate: float
    seconds: float | None = None
    ended_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What one start of a tool told.

    Attributes:
        prefill, decode: by repetition; empty for a phase that was not asked for.
        ttft_s: time to first token, where the tool tells one.
        load_s: how long loading took, where it tells that.
        engine_version: of the framework, where it tells it.
        options: what it says that it used.
        parameters: weights in the model, where it counts them.
    """

    prefill: tuple[Sample, ...] = ()
    decode: tuple[Sample, ...] = ()
    ttft_s: float | None = None
    load_s: float | None = None
    engine_version: str | None = None
    options: Mapping[str, Scalar] = field(default_factory=dict)
    parameters: int | None = None


class Tool(Protocol):
    """A benchmark tool."""

    @property
    def program(self) -> str:
        """Its name."""

    @property
    def engine(self) -> str:
        """The framework's own name."""

    @property
    def options(self) -> frozenset[str]:
        """Options of the runner that can be handed to it."""

    @property
    def changing(self) -> frozenset[str]:
        """Those of the options whose name depends on the tool's version, which its usage tells."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of its figures must know."""

    def refusal(self, wanted: Wanted) -> str:
        """Why it can't measure a workload; empty where it can."""

    def asks(self, wanted: Wanted, repetitions: int) -> list[Ask]:
        """How it is started for so many repetitions."""

    def read(self, ask: Ask, wanted: Wanted, lines: Sequence[Line]) -> Told:
        """What it told.

        Raises:
            RunnerProtocolError: its output is not understood.
            InvalidResultError: it is understood, and can't be true.
        """


def checked(program: str, what: str, value: float, unit: str) -> float:
    """A figure of a tool, if it can be true: a number above zero.

    Raises:
        InvalidResultError: it can't.
    """
    if not 0 < value <= MOST:
        # Python makes no text of the longest whole numbers.
        long = abs(value) > MOST and abs(value) != math.inf
        told = "more than 1e18" if long else f"{value:.6g}"
        msg = f"{program} tells {what} of {told} {unit}, which can't be"
        raise InvalidResultError(msg)
    return value


def checked_rate(program: str, tokens: int, rate: float, seconds: float | None = None) -> Sample:
    """A sample, if it can be true.

    Raises:
        InvalidResultError: it can't.
    """
    checked(program, "a rate", rate, "tokens/s")
    if seconds is not None:
        checked(program, "a time", seconds, "s")
    return Sample(tokens, rate, seconds)


def check_agreement(program: str, told: float, made: float, digit: float) -> None:
    """Make sure that a rate that a tool tells is that of its own time and tokens.

    Args:
        program: the tool's name.
        told: tokens/s, as it prints them.
        made: tokens/s, of what else it prints.
        digit: the smallest step of what it prints.

    Raises:
        InvalidResultError: they are not the same.
    """
    checked(program, "a rate", told, "tokens/s")
    if abs(told - made) > AGREEMENT * made + digit:
        msg = f"{program} contradicts itself: {told:.6g} tokens/s, and its times make {made:.6g}"
        raise InvalidResultError(msg)


def option_value(value: object) -> Scalar | None:
    """What a tool says that it used, as results can hold it; None where they can't."""
    if isinstance(value, str):
        return one_line(value)[:LONGEST_OPTION]
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MOST else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None


def not_understood(program: str, lines: Sequence[Line], looked_for: str) -> RunnerProtocolError:
    """That the output holds no result."""
    said = [text for line in lines if (text := one_line(line.text))]
    last = f"; its last line: {said[-1][:200]}" if said else "; it printed nothing"
    return RunnerProtocolError(
        f"{program} printed no {looked_for}{last}",
        remedy="The log has all that it printed. Is it the right tool, and a recent one?",
    )
