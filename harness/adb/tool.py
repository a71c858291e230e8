"""A framework's own benchmark tool: what it is asked, and what it tells."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.errors import InvalidResultError, RunnerProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.model import Scalar

Phase = Literal["prefill", "decode", "both"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One workload for one variant.

    Attributes:
        model: the path of the file or folder on the device.
        options: the variant's, without those that shaped the model.
        context_tokens: room for so many tokens.
    """

    model: str
    prompt_tokens: int
    depth_tokens: int
    generate_tokens: int
    options: Mapping[str, Scalar]
    context_tokens: int


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
    def caveat(self) -> str:
        """What a reader of its figures must know; may be empty."""

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


def checked_rate(program: str, tokens: int, rate: float, seconds: float | None = None) -> Sample:
    """A sample, if it can be true.

    Raises:
        InvalidResultError: the rate is none.
    """
    if not math.isfinite(rate) or rate <= 0 or (seconds is not None and seconds <= 0):
        msg = f"{program} tells a rate of {rate} tokens/s, which can't be"
        raise InvalidResultError(msg)
    return Sample(tokens, rate, seconds)


def not_understood(program: str, lines: Sequence[Line], looked_for: str) -> RunnerProtocolError:
    """That the output holds no result."""
    said = [text for line in lines if (text := one_line(line.text))]
    last = f"; its last line: {said[-1][:200]}" if said else "; it printed nothing"
    return RunnerProtocolError(
        f"{program} printed no {looked_for}{last}",
        remedy="The log has all that it printed. Is it the right tool, and a recent one?",
    )
