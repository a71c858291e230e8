"""The run itself: prepare, measure in randomised blocks, keep every trial as it ends."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.harness.execution import Execution
from edgebench.harness.measuring import measure
from edgebench.harness.observer import Silent
from edgebench.harness.sided import Sided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.records import Settings
    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.results.run import Run
    from edgebench.harness.scenario.model import Scenario


def new_run_folder(out: Path, name: str) -> Path:
    """``OUT/SCENARIO/UTC-TIME-SHORT-ID``; two runs at once get two folders."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return out / name / f"{stamp}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class Planned:
    """One of two runs that are to be interleaved, or that are gone on with.

    Attributes:
        settings: whose `interleaved` says which side it is.
    """

    scenario: Scenario
    settings: Settings
    resumed: Run | None = None


def execute(
    scenario: Scenario,
    settings: Settings,
    observer: Observer | None = None,
    *,
    resumed: Run | None = None,
) -> RunRecord:
    """Run a scenario, or go on with one.

    Returns:
        The run's record, as written to its folder.

    Raises:
        EdgebenchError: nothing could be run, or results could not be written. What was finished
            is kept.
        KeyboardInterrupt: as it came; the record says ``interrupted``.
    """
    told = observer or Silent()
    (record,) = _run_all([Execution(scenario, settings, told, resumed)], told)
    return record


def execute_interleaved(
    baseline: Planned, candidate: Planned, observer: Observer | None = None
) -> tuple[RunRecord, RunRecord]:
    """Run two scenarios in the same blocks: two ordinary runs, each with its own folder.

    Args:
        baseline: what is compared with.
        candidate: what it is about; its protocol is that of both.
        observer: told of both, each by its side's name.

    Returns:
        Both records, as written to their folders.

    Raises:
        EdgebenchError, KeyboardInterrupt: as in `execute`; both runs are closed.
    """
    told = observer or Silent()
    executions: list[Execution] = []
    try:
        for side, each in (("baseline", baseline), ("candidate", candidate)):
            settings = each.settings
            if executions and _on_one_board(baseline.scenario, candidate.scenario):
                # Its meters may be programs that hold a port: one of each has to do.
                settings = replace(settings, board=executions[0].board)
            executions.append(Execution(each.scenario, settings, Sided(told, side), each.resumed))
    except BaseException:
        for made in executions:
            made.release()
        raise
    first, second = _run_all(executions, told)
    return first, second


def _run_all(runs: Sequence[Execution], observer: Observer) -> list[RunRecord]:
    try:
        _in_turn(runs, Execution.prepare)
        since = runs[-1].settings.monotonic()
        _in_turn(runs, Execution.record_failures)
        _in_turn(runs, lambda run: run.score(1 / len(runs)))
        measure(runs, since, observer)
        return [run.close("finished") for run in runs]
    except BaseException:
        for run in runs:
            run.break_off()
        raise
    finally:
        for run in runs:
            run.release()


def _on_one_board(one: Scenario, other: Scenario) -> bool:
    return (one.device, one.power) == (other.device, other.power)


def _in_turn(runs: Sequence[Execution], work: Callable[[Execution], None]) -> None:
    """One after the other; the time that one takes is not the other's."""
    for run in runs:
        now = run.settings.monotonic
        begun = now()
        work(run)
        for other in runs:
            if other is not run:
                other.away_s += now() - begun


def cells_worked(cells: Sequence[Cell]) -> tuple[int, int]:
    """How many cells have results, and how many have no fault: all is there that was wanted."""
    worked = sum(cell.n > 0 for cell in cells)
    return worked, sum(cell.status == "ok" or cell.left_out for cell in cells)
