"""One cell of the results: what a variant made of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.quality.figures import quality_metrics, quality_summaries
from edgebench.harness.results.model import Cell, Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import Flag, RunRecord, Trial, WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord

FEWER = "it was computed over more windows than were scored by every variant"


def quality_cell(
    record: RunRecord, variant: str, workload: WorkloadRecord, trials: Sequence[Trial]
) -> Cell:
    """A variant on a text; what it rated last counts, as far as every variant rated it.

    Args:
        record: of the run.
        variant: its id.
        workload: one that rates a text.
        trials: all of this cell, in order.
    """
    rated = [trial for trial in trials if trial.status == "ok"]
    failed = [trial for trial in trials if trial.status == "failed"]
    protocol = workload.quality
    if not rated or protocol is None:
        return Cell(
            variant=variant,
            workload=workload.name,
            status="failed" if failed else "not_run",
            n=0,
            n_failed=len(failed),
            failure=failed[-1].failure if failed else None,
        )
    trial = rated[-1]
    windows = trial.windows[: protocol.windows] if protocol.windows else trial.windows
    exact = protocol.reference.windows if protocol.reference else None
    flags: list[Flag] = []
    if 0 < protocol.windows < protocol.windows_planned:
        flags.append("cut_by_budget")
    if record.quick:
        flags.append("quick")
    return Cell(
        variant=variant,
        workload=workload.name,
        status="ok",
        n=1,
        n_failed=len(failed),
        flags=flags,
        metrics=quality_summaries(_metrics(trial, protocol), windows, exact),
    )


def _metrics(trial: Trial, protocol: QualityRecord) -> dict[str, Measured]:
    """Its values over the windows that count."""
    if len(trial.windows) <= protocol.windows or not protocol.windows:
        return dict(trial.metrics)
    exact = protocol.reference.windows if protocol.reference else None
    fewer = quality_metrics(trial.windows[: protocol.windows], exact, {})
    found = {}
    for name, measured in trial.metrics.items():
        known = fewer.get(name)
        if measured.value is None or name == "scoring_rate":
            found[name] = measured
        elif known is not None and known.value is not None:
            found[name] = known
        else:
            found[name] = Measured.missing(measured.unit, FEWER, measured.source)
    return found
