"""What preparing a run gives: all that measuring needs, and why something can't be measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.harness.board import Board, LocalBoard
from edgebench.harness.results.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness import wire
    from edgebench.harness.prompts import Prompt, TaskText
    from edgebench.harness.quality.plan import QualityTask
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.values import OptionScalar
    from edgebench.harness.store.store import StoredFile
    from edgebench.runners.base import Description, TaskDescription


@dataclass(frozen=True, slots=True)
class PreparedVariant:
    """A variant that can be started, or the reason why it can't.

    Attributes:
        tasks: what runs the scenario's tasks, by task.
        task_failures: why a task can't be run, by task.
        board: where it runs.
    """

    variant: ExpandedVariant
    python: str | None
    probe: wire.Probe | None = None
    file: StoredFile | None = None
    failure: Failure | None = None
    tasks: Mapping[str, TaskDescription] = field(default_factory=dict)
    task_failures: Mapping[str, Failure] = field(default_factory=dict)
    board: Board = field(default_factory=LocalBoard)

    @property
    def description(self) -> Description | None:
        """Which framework it is, where that could be asked."""
        return self.probe.description if self.probe else None

    @property
    def load_options(self) -> dict[str, OptionScalar]:
        """The variant's options without those that had shaped the artifact."""
        shaping = self.probe.convert_options if self.probe else frozenset()
        return {key: value for key, value in self.variant.options.items() if key not in shaping}

    def artifact(self) -> Artifact | None:
        """What the framework loads, as the results name it."""
        if self.file is None:
            return None
        return Artifact(
            name=self.file.name,
            sha256=self.file.sha256,
            bytes=self.file.bytes,
            made_by=self.file.made_by,
            note=self.file.note,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that measuring needs.

    Attributes:
        source: the model that every artifact is made from; None where it was not even fetched.
        tasks: the workloads that are tasks.
        quality: those that rate a text.
        quality_failures: why one of those can't be scored by any variant, by its name.
        notes: what a reader of the figures must know.
    """

    variants: tuple[PreparedVariant, ...]
    prompts: tuple[Prompt, ...]
    workload_failures: Mapping[str, Failure]
    source: StoredFile | None = None
    tasks: tuple[TaskText, ...] = ()
    quality: tuple[QualityTask, ...] = ()
    quality_failures: Mapping[str, Failure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def context_tokens(self) -> int:
        """The longest of those that make tokens; every variant is loaded with it for them."""
        return max((prompt.context_tokens for prompt in self.prompts), default=0)
