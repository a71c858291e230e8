"""One cell of the results: what a variant made of a text, and which of its windows count."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from edgebench.harness.quality.figures import UNITS, quality_metrics, quality_summaries
from edgebench.harness.results.cell import Cell, Summary
from edgebench.harness.results.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.cell import Flag
    from edgebench.harness.results.model import RunRecord, WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, WindowRecord
    from edgebench.harness.results.trial import Trial

MEANINGLESS = "synthetic weights: quality means nothing"

FEWER = "it was computed over more windows than were scored by every variant"


def quality_cell(
    record: RunRecord,
    variant: str,
    workload: WorkloadRecord,
    trials: Sequence[Trial],
    *,
    intervals: bool = True,
) -> Cell:
    """A variant on a text; what it rated last counts, as far as every variant rated it.

    Args:
        record: of the run.
        variant: its id.
        workload: one that rates a text.
        trials: all of this cell, in order.
        intervals: whether its figures have some, which takes time.
    """
    if record.synthetic is not None:
        return synthetic_cell(variant, workload.name)
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
        metrics=quality_summaries(_metrics(trial, protocol), windows, exact, intervals=intervals),
    )


def synthetic_cell(variant: str, workload: str) -> Cell:
    """What a variant with random weights is on a text: nothing, and why."""
    return Cell(
        variant=variant,
        workload=workload,
        status="not_run",
        n=0,
        metrics={
            key: Summary(median=None, n=0, unit=unit, source="derived", reason=MEANINGLESS)
            for key, unit in UNITS.items()
        },
    )


def windows_by_variant(
    trials: Sequence[Trial], workload: str, quality: QualityRecord
) -> dict[str, tuple[WindowRecord, ...]]:
    """The windows of every variant that was rated on as many of them as the workload says.

    A run that was interrupted may have meant to rate more: then most windows of a variant count.
    """
    # What a variant rated beyond what all of them did does not count.
    found = {
        trial.variant: tuple(trial.windows[: quality.windows or None])
        for trial in trials
        if trial.workload == workload
        and trial.kind == "quality"
        and trial.phase == "measured"
        and trial.status == "ok"
        and trial.windows
    }
    wanted = max(map(len, found.values()), default=0)
    sizes = {variant: tuple(each.tokens for each in windows) for variant, windows in found.items()}
    alike = Counter(each for each in sizes.values() if len(each) == wanted)
    if not alike:
        return {}
    ((usual, _count),) = alike.most_common(1)
    return {variant: windows for variant, windows in found.items() if sizes[variant] == usual}


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
