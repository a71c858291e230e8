"""A run that is interleaved with what it is compared with, in place of a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.against import changed
from edgebench.harness.execute import execute_interleaved
from edgebench.harness.interleaving import planned_pair
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.records import Settings
    from edgebench.harness.scenario.model import Scenario
    from edgebench.testing.marker import Against


def run_against(scenario: Scenario, settings: Settings, against: Against) -> tuple[Path, Path]:
    """Run a scenario, and the same with something changed, in the same blocks.

    Args:
        scenario: the candidate's.
        settings: whose folder's name both runs' folders begin with.
        against: what the baseline has in place of the scenario's; a relative path in it is
            relative to the scenario.

    Returns:
        The folders of the candidate and of the baseline.

    Raises:
        UsageError: nothing here has such an option, or nothing changes.
        EdgebenchError: nothing could be run.
    """
    sides = changed(
        scenario,
        [f"{key}={value}" for key, value in against],
        runners=runner_classes(),
        pythons=settings.pythons,
        folder=settings.base,
        base=settings.base,
    )
    pair = planned_pair(sides, settings)
    execute_interleaved(pair.baseline, pair.candidate)
    baseline, candidate = pair.folders
    return candidate, baseline
