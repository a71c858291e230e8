"""How a scenario is run on a board: by runners of ours, or by what else can run there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from edgebench.harness.measure import run_block
from edgebench.harness.prepare import Preparation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.board import Board
    from edgebench.harness.cooldown import Waited
    from edgebench.harness.measure import Bench, Task
    from edgebench.harness.prepared import Prepared, PreparedVariant
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.workshop import Workshop


class Conduct(Protocol):
    """One way to run a scenario on a board."""

    @property
    def board(self) -> Board:
        """Where it runs."""

    @property
    def why_no_bandwidth(self) -> str | None:
        """Why its memory is not read; None where it can be."""

    @property
    def why_not_verified(self) -> str | None:
        """Why nothing that runs there is held against the reference; None where it can be."""

    def prepare(
        self,
        workshop: Workshop,
        scenario: Scenario,
        variants: Sequence[ExpandedVariant],
        source: ModelSource,
        texts: Sequence[TextWorkload],
    ) -> Prepared:
        """Fetch, convert, tokenize: all before anything is measured.

        Raises:
            ModelError: the source can't be had, so that nothing can be run.
            StoreError: the store can't be written to at all.
        """

    def run_block(
        self,
        bench: Bench,
        item: PreparedVariant,
        tasks: Sequence[Task],
        block: int,
        waited: Waited | None,
    ) -> None:
        """Measure one variant's workloads in one block; what fails is a row."""


@dataclass(frozen=True, slots=True)
class ByRunners:
    """Runners of ours start there, each in its own process: on this machine, or over SSH."""

    board: Board
    why_no_bandwidth: None = None
    why_not_verified: None = None

    def prepare(
        self,
        workshop: Workshop,
        scenario: Scenario,
        variants: Sequence[ExpandedVariant],
        source: ModelSource,
        texts: Sequence[TextWorkload],
    ) -> Prepared:
        """Prompts are tokenized once, for all frameworks."""
        return Preparation(workshop, self.board).run(scenario, variants, source, texts)

    def run_block(
        self,
        bench: Bench,
        item: PreparedVariant,
        tasks: Sequence[Task],
        block: int,
        waited: Waited | None,
    ) -> None:
        """A fresh process loads, warms up, repeats."""
        run_block(bench, item, tasks, block, waited)
