"""Two new run folders beside each other, for two runs in the same blocks."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from edgebench.harness.execute import Planned
from edgebench.harness.overrides import check_time
from edgebench.harness.results.model import Interleaved

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.against import Sides
    from edgebench.harness.records import Settings
    from edgebench.harness.scenario.model import Scenario

Side: TypeAlias = Literal["baseline", "candidate"]

LEAST_BLOCKS: Final = 10
"""Seven pairs are the fewest that can be certain at 99 %; values that are equal in some of them, as
of memory that moves by whole pages, take the chance away at seven or eight."""

_MOST_REPETITIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """The two sides of an interleaved run."""

    baseline: Planned
    candidate: Planned

    @property
    def folders(self) -> tuple[Path, Path]:
        """The baseline's, then the candidate's."""
        return self.baseline.settings.folder, self.candidate.settings.folder


def with_blocks(scenario: Scenario, least: int = LEAST_BLOCKS) -> Scenario:
    """The scenario with repetitions for so many blocks at the least, raised where it has fewer."""
    measure = scenario.measure
    repetitions = measure.repetitions
    needed = min(least * measure.per_block, _MOST_REPETITIONS)
    raised = repetitions.model_copy(
        update={"min": max(repetitions.min, needed), "max": max(repetitions.max, needed)}
    )
    return scenario.model_copy(
        update={"measure": measure.model_copy(update={"repetitions": raised})}
    )


def planned_pair(
    sides: Sides, settings: Settings, baseline_path: Path | None = None
) -> PlannedPair:
    """Two runs with a session of their own.

    Args:
        sides: the scenarios.
        settings: of both; each one's folder has the name of theirs, with its side behind it.
        baseline_path: the baseline's own file, where it has one.

    Raises:
        UsageError: the sustained work of both does not fit into the time budget.
    """
    check_time(sides.candidate, sides=2)
    folder, session = settings.folder, secrets.token_hex(8)

    def settings_of(side: Side, partner: Side) -> Settings:
        interleaved = Interleaved(
            session=session,
            side=side,
            partner=f"{folder.name}-{partner}",
            difference=sides.difference,
        )
        own = folder.with_name(f"{folder.name}-{side}")
        return replace(settings, folder=own, interleaved=interleaved)

    first = settings_of("baseline", "candidate")
    second = settings_of("candidate", "baseline")
    if baseline_path is not None:
        first = replace(first, base=baseline_path.parent, scenario_path=baseline_path.resolve())
    return PlannedPair(Planned(sides.baseline, first), Planned(sides.candidate, second))
