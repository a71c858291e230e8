"""How a scenario is run on an Android device: frameworks' own tools measure themselves there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.adb.block import run_tools
from edgebench.harness.adb.board import NO_READER, AdbBoard
from edgebench.harness.adb.preparing import AndroidPreparation, tool_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.cooldown import Waited
    from edgebench.harness.measure import Bench, Task
    from edgebench.harness.prepared import Prepared, PreparedVariant
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.workshop import Workshop


@dataclass(frozen=True, slots=True)
class ByTools:
    """Tools that the user built are started there.

    Attributes:
        tools: their paths on this machine, by runner, as the scenario has them.
        base: the folder that a relative path of one is relative to.
    """

    board: AdbBoard
    tools: Mapping[str, str]
    base: Path
    why_no_bandwidth: str = NO_READER
    why_not_verified: str = "tools on an Android device make up prompts"

    def prepare(
        self,
        workshop: Workshop,
        scenario: Scenario,
        variants: Sequence[ExpandedVariant],
        source: ModelSource,
        texts: Sequence[TextWorkload],
    ) -> Prepared:
        """Artifacts are made on this machine; tools make up prompts of the length asked for."""
        preparation = AndroidPreparation(workshop, self.board, base=self.base, tools=self.tools)
        return preparation.run(scenario, variants, source, texts)

    def run_block(
        self,
        bench: Bench,
        item: PreparedVariant,
        tasks: Sequence[Task],
        block: int,
        waited: Waited | None,
    ) -> None:
        """What the tool tells of itself is kept."""
        tool = tool_path(self.tools[item.variant.runner], self.base)
        run_tools(bench, self.board, item, tool, tasks, block, waited)
