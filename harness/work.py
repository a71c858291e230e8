"""What a runner's process does in a block: make tokens, or run whole tasks; never both in one.

Sustained work makes tokens too, for minutes, and has a process of its own for each stretch. A task
loads its model into an engine of its own. In a process that had made tokens before, its peak of
memory would be that of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from edgebench.harness import wire
from edgebench.harness.errors import InvalidResultError, RunnerError, RunnerProtocolError
from edgebench.harness.metrics.system import (
    energy_metrics,
    meter_energies,
    timeline,
    window_metrics,
)
from edgebench.harness.metrics.timing import generation_metrics, task_metrics
from edgebench.harness.prompts import Prompt, TaskText
from edgebench.harness.results.trial import TaskOutput, Tokens
from edgebench.harness.sustained import Stretch
from edgebench.harness.sustained_power import NS, stretch_energies
from edgebench.runners.base import to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.devices.monitor import Window
    from edgebench.harness.results.measured import Measured
    from edgebench.harness.session import Session
    from edgebench.runners.base import Generation, LoadRequest, Scalar, TaskResult


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready.

    Attributes:
        started_ns, ready_ns: the runner's own time stamps.
        parameters: weights in the model, where the framework counts them.
        engine, engine_version: what was loaded, where the runner could not tell before.
        weight_bytes_per_token: what decoding one token reads of the weights, where it is told.
    """

    started_ns: int
    ready_ns: int
    effective_options: Mapping[str, Scalar]
    parameters: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    weight_bytes_per_token: int | None = None


class Outcome(Protocol):
    """What a repetition gave."""

    def fields(self, window: Window) -> dict[str, object]:
        """Its part of the trial's record.

        Args:
            window: what was seen of the process meanwhile.
        """


class Work(Protocol):
    """One kind of work."""

    @property
    def kind(self) -> Literal["generate", "sustained", "task"]:
        """Of the trials of its repetitions."""

    @property
    def load_kind(self) -> Literal["load", "task_load"]:
        """Of the trials of its loads."""

    def begin(self, session: Session, timeout_s: float) -> None:
        """Import the framework, which is no part of loading."""

    def prepare(self, session: Session, request: LoadRequest, timeout_s: float) -> list[Path]:
        """Make what loading is to find; files that it will read besides the model."""

    def load(self, session: Session, request: LoadRequest, timeout_s: float) -> Loaded:
        """Load the model."""

    def warm_up(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """One repetition that does not count."""

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """One repetition."""

    def broken_off(self) -> BrokenOff | None:
        """What the repetition that failed last had done until then; None where it is nothing."""


class BrokenOff(Protocol):
    """What there is of a repetition that failed."""

    @property
    def how_far(self) -> str:
        """After how much of how much it failed, a sentence without a full stop."""

    def fields(self, window: Window) -> dict[str, object]:
        """Its part of the failed trial's record, which has no metrics."""


class Generating:
    """Makes tokens, and counts them.

    Args:
        idle: what the machine drew before, in watts; None where nobody looked.
    """

    kind: Literal["generate"] = "generate"
    load_kind: Literal["load"] = "load"

    def __init__(self, idle: Measured | None = None) -> None:
        self._idle = idle
        self._vocabulary_size = 0

    def begin(self, session: Session, timeout_s: float) -> None:
        """Import the framework."""
        session.call("probe", timeout_s=timeout_s)

    def prepare(self, session: Session, request: LoadRequest, timeout_s: float) -> list[Path]:
        """What the runner makes before a load, such as a warm cache."""
        return wire.read_files(session.call("prepare", to_wire(request), timeout_s=timeout_s))

    def load(self, session: Session, request: LoadRequest, timeout_s: float) -> Loaded:
        """Load the model."""
        answer = session.call("load", to_wire(request), timeout_s=timeout_s)
        model, started, ready = wire.loaded_model(answer)
        self._vocabulary_size = model.vocabulary_size
        return Loaded(
            started,
            ready,
            model.effective_options,
            model.parameters,
            model.engine,
            model.engine_version,
            model.weight_bytes_per_token,
        )

    def warm_up(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """As one that counts."""
        return self.run(session, prompt, timeout_s)

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """Make the tokens of one prompt."""
        return _Generated(self.generation(session, prompt, timeout_s), self._idle)

    def broken_off(self) -> None:
        """Nothing: half a generation is none."""

    def generation(
        self, session: Session, prompt: Prompt | TaskText, timeout_s: float
    ) -> Generation:
        """One generation, checked."""
        if not isinstance(prompt, Prompt):
            raise _mixed(prompt)
        request = prompt.request()
        answer = session.call("generate", to_wire(request), timeout_s=timeout_s)
        return wire.generation(answer, request, self._vocabulary_size)


class Sustaining:
    """Makes the tokens of one prompt again and again, for as long as its workload asks.

    Each generation begins with an empty cache: were it one long text, the growing cache would slow
    the decoding down, and that would be no heat. The time is the runner's own.

    Args:
        idle: what the machine drew before, in watts, for its warm-ups; None where nobody looked.
    """

    kind: Literal["sustained"] = "sustained"
    load_kind: Literal["load"] = "load"

    def __init__(self, idle: Measured | None = None) -> None:
        self._generating = Generating(idle)
        self._broken_off: _PartOfStretch | None = None

    def begin(self, session: Session, timeout_s: float) -> None:
        """Import the framework."""
        self._generating.begin(session, timeout_s)

    def prepare(self, session: Session, request: LoadRequest, timeout_s: float) -> list[Path]:
        """What the runner makes before a load."""
        return self._generating.prepare(session, request, timeout_s)

    def load(self, session: Session, request: LoadRequest, timeout_s: float) -> Loaded:
        """Load the model."""
        return self._generating.load(session, request, timeout_s)

    def warm_up(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """One generation."""
        self._broken_off = None
        return self._generating.run(session, prompt, timeout_s)

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """Generate until the time is over; the last generation is not cut off.

        Args:
            session: the process.
            prompt: one that is to be sustained.
            timeout_s: of each generation.
        """
        if not isinstance(prompt, Prompt) or prompt.sustained_s is None:
            raise _mixed(prompt)
        self._broken_off = None
        made: list[Generation] = []
        try:
            while not made or _lasted_s(made) < prompt.sustained_s:
                made.append(self._generating.generation(session, prompt, timeout_s))
        except RunnerError:
            # Minutes of a device's work are worth keeping.
            if made:
                self._broken_off = _PartOfStretch(Stretch(prompt.sustained_s, tuple(made)))
            raise
        stretch = Stretch(prompt.sustained_s, tuple(made))
        stretch.check()
        return _Sustained(stretch)

    def broken_off(self) -> BrokenOff | None:
        """The generations that were over before the one that failed."""
        return self._broken_off


class RunningTask:
    """Runs one whole task, and times it.

    Args:
        task: its name.
    """

    kind: Literal["task"] = "task"
    load_kind: Literal["task_load"] = "task_load"

    def __init__(self, task: str) -> None:
        self._task = task

    def begin(self, session: Session, timeout_s: float) -> None:
        """Import what runs the task, and not what makes tokens."""
        session.call("import_task", {"task": self._task}, timeout_s=timeout_s)

    def prepare(self, session: Session, request: LoadRequest, timeout_s: float) -> list[Path]:  # noqa: ARG002
        """Nothing: a task loads what it is given."""
        return []

    def load(self, session: Session, request: LoadRequest, timeout_s: float) -> Loaded:
        """Load the model for the task."""
        asked = {"task": self._task, "request": to_wire(request)}
        loaded = wire.loaded_task(session.call("load_task", asked, timeout_s=timeout_s))
        return Loaded(loaded.started_ns, loaded.ready_ns, loaded.effective_options)

    def warm_up(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """As one that counts."""
        return self.run(session, prompt, timeout_s)

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """Run the task on one text."""
        if not isinstance(prompt, TaskText):
            raise _mixed(prompt)
        answer = session.call("task", to_wire(prompt.request()), timeout_s=timeout_s)
        return _Done(wire.task_result(answer))

    def broken_off(self) -> None:
        """Nothing: half a task has no result."""


@dataclass(frozen=True, slots=True)
class _Generated:
    made: Generation
    idle: Measured | None

    def fields(self, window: Window) -> dict[str, object]:
        made = self.made
        zero = made.submitted_ns
        return {
            "metrics": {
                **generation_metrics(made),
                **window_metrics(window),
                **energy_metrics(window, made, self.idle),
            },
            "power": meter_energies(window, made),
            "tokens": Tokens(
                prompt_tokens=made.prompt_tokens,
                depth_tokens=made.depth_tokens,
                generated_ids=list(made.token_ids),
                tokenized_ns=None if made.tokenized_ns is None else made.tokenized_ns - zero,
                prefilled_ns=None if made.prefilled_ns is None else made.prefilled_ns - zero,
                token_ns=[stamp - zero for stamp in made.token_ns],
                finish_reason=made.finish_reason,
            ),
            "timeline": timeline(window, zero),
        }


@dataclass(frozen=True, slots=True)
class _Sustained:
    stretch: Stretch

    def fields(self, window: Window) -> dict[str, object]:
        """No timeline: it would be as long as the stretch, and says nothing new after a second."""
        metrics, record = self.stretch.outcome(window)
        return {
            "metrics": {**metrics, **window_metrics(window)},
            "power": stretch_energies(window, self.stretch.begun_ns, record.lasted_s),
            "sustained": record,
        }


@dataclass(frozen=True, slots=True)
class _PartOfStretch:
    stretch: Stretch

    @property
    def how_far(self) -> str:
        done, asked = self.stretch.lasted_s, self.stretch.asked_s
        return f"It broke off after {done:.0f} s of {asked:g} s of sustained work"

    def fields(self, window: Window) -> dict[str, object]:
        """How it went until then; no figure of it counts."""
        try:
            self.stretch.check()
        except InvalidResultError:
            return {}
        return {"sustained": self.stretch.outcome(window)[1]}


@dataclass(frozen=True, slots=True)
class _Done:
    made: TaskResult

    def fields(self, window: Window) -> dict[str, object]:
        made = self.made
        zero = made.submitted_ns
        return {
            "metrics": {**task_metrics(made), **window_metrics(window)},
            "output": TaskOutput(text=made.text, finished_ns=made.finished_ns - zero),
            "timeline": timeline(window, zero),
        }


def _lasted_s(made: Sequence[Generation]) -> float:
    return (made[-1].token_ns[-1] - made[0].submitted_ns) / NS


def _mixed(prompt: Prompt | TaskText) -> RunnerProtocolError:
    return RunnerProtocolError(f"{prompt.workload} is not this process's kind of work")
