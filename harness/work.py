"""What a runner's process does in a block: make tokens, or run whole tasks; never both in one.

A task loads its model into an engine of its own. In a process that had made tokens before, its
peak of memory would be that of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from edgebench.harness import wire
from edgebench.harness.errors import RunnerProtocolError
from edgebench.harness.metrics.system import energy_metrics, timeline, window_metrics
from edgebench.harness.metrics.timing import generation_metrics, task_metrics
from edgebench.harness.prompts import Prompt, TaskText
from edgebench.harness.results.model import TaskOutput, Tokens
from edgebench.runners.base import to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.devices.monitor import Window
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
    def kind(self) -> Literal["generate", "task"]:
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

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """One repetition."""


class Generating:
    """Makes tokens, and counts them."""

    kind: Literal["generate"] = "generate"
    load_kind: Literal["load"] = "load"

    def __init__(self) -> None:
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

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """Make the tokens of one prompt."""
        if not isinstance(prompt, Prompt):
            raise _mixed(prompt)
        request = prompt.request()
        answer = session.call("generate", to_wire(request), timeout_s=timeout_s)
        return _Generated(wire.generation(answer, request, self._vocabulary_size))


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

    def run(self, session: Session, prompt: Prompt | TaskText, timeout_s: float) -> Outcome:
        """Run the task on one text."""
        if not isinstance(prompt, TaskText):
            raise _mixed(prompt)
        answer = session.call("task", to_wire(prompt.request()), timeout_s=timeout_s)
        return _Done(wire.task_result(answer))


@dataclass(frozen=True, slots=True)
class _Generated:
    made: Generation

    def fields(self, window: Window) -> dict[str, object]:
        made = self.made
        zero = made.submitted_ns
        return {
            "metrics": {
                **generation_metrics(made),
                **window_metrics(window),
                **energy_metrics(window, made),
            },
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


def _mixed(prompt: Prompt | TaskText) -> RunnerProtocolError:
    return RunnerProtocolError(f"{prompt.workload} is not this process's kind of work")
