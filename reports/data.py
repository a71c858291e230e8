"""Everything that a report says, computed once from a run and shared by all its forms."""

from __future__ import annotations

import gc
import math
import statistics
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from edgebench.harness.metrics.statistics import median_interval
from edgebench.harness.results.cell import Cell, Summary
from edgebench.harness.results.run import Run, read_run, refuse_strays
from edgebench.harness.results.summary import summarize
from edgebench.reports.failures import FailureView, failure_views
from edgebench.reports.labels import labelled
from edgebench.reports.sameness import SameView, sameness_view
from edgebench.reports.series import Place, Series, SeriesCollector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from edgebench.harness.predict.device import DeviceFacts
    from edgebench.harness.results.model import RunRecord, VariantRecord
    from edgebench.harness.results.trial import Trial

BITS_PER_BYTE = 8
BROKEN: Final = "above_bandwidth"
"""The flag of a cell that can't be right: its figures are shown, and nothing is chosen by them."""

MEMORY_PARTS = ("peak_anon_bytes", "peak_file_bytes", "peak_shared_bytes")
"""What the peak of memory is made of, in the order in which it is drawn."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run of those that a report is about.

    Attributes:
        record: its ``run.json``.
        path: its folder.
        variants: ids of the variants that are its own, as the report names them.
        label: what the report calls it among others, such as ``AMD EPYC 9B14, 2025-01-14``; empty
            where it is alone.
        damaged_lines: lines of its trials that could not be read.
    """

    record: RunRecord
    path: Path
    variants: tuple[str, ...]
    label: str = ""
    damaged_lines: int = 0


@dataclass(frozen=True)
class ReportData:
    """A run, ready to be shown; or several, combined into one.

    Attributes:
        run: the run; its trials may lack their raw samples, which are in `series`.
        cells: one for each workload and variant of the run, in the order of the table.
        series: what is drawn over tokens and over time.
        failures: what failed, each kind of failure once.
        by_variant: metrics that need no trial: the model's size.
        parts: the runs that it is made of, at least one; machines and dates are theirs.
        predicted: devices that are not at hand, which the table of platforms predicts; nothing
            else looks at them.
    """

    run: Run
    cells: Mapping[Place, Cell]
    series: Series
    failures: tuple[FailureView, ...]
    by_variant: Mapping[str, Mapping[str, Summary]]
    parts: tuple[Part, ...]
    predicted: tuple[DeviceFacts, ...] = ()

    @property
    def record(self) -> RunRecord:
        """``run.json``."""
        return self.run.record

    @cached_property
    def variant_ids(self) -> tuple[str, ...]:
        """The variants, in the order of the table."""
        return tuple(each.id for each in self.record.variants)

    @cached_property
    def workload_names(self) -> tuple[str, ...]:
        """The workloads whose speed is measured, in the order of the run.

        Tasks and texts that are rated stand apart from them.
        """
        return tuple(each.name for each in self.record.workloads if each.kind == "prompt")

    @cached_property
    def task_names(self) -> tuple[str, ...]:
        """The workloads that are whole tasks, in the order of the run."""
        return tuple(each.name for each in self.record.workloads if each.task is not None)

    @cached_property
    def quality_names(self) -> tuple[str, ...]:
        """The workloads that rate a text, in the order of the run."""
        return tuple(each.name for each in self.record.workloads if each.quality)

    @cached_property
    def sameness(self) -> SameView | None:
        """The variants against the reference; None where the run did not verify them."""
        compared = [*self.record.variants, *self.record.proofs]
        return sameness_view(compared, self.record.reference)

    def part_of(self, variant: str) -> Part:
        """The run that a variant is of: its machine, its date, its versions."""
        return next(each for each in self.parts if variant in each.variants)

    def cell(self, workload: str, variant: str) -> Cell:
        """The cell of a variant on a workload."""
        return self.cells[workload, variant]

    def is_broken(self, workload: str, variant: str) -> bool:
        """Whether a cell takes more than the memory's bandwidth, so that it can't be right."""
        return BROKEN in self.cells[workload, variant].flags

    def broken(self, workloads: Sequence[str]) -> tuple[str, ...]:
        """The variants that have a broken cell on any of these workloads."""
        return tuple(
            each for each in self.variant_ids if any(self.is_broken(one, each) for one in workloads)
        )

    def summary(self, workload: str, variant: str, key: str) -> Summary | None:
        """One metric of one cell; None where the run says nothing about it."""
        own = self.cells[workload, variant].metrics.get(key)
        return own if own is not None else self.by_variant[variant].get(key)

    def summaries(self, workload: str, key: str) -> dict[str, Summary]:
        """One metric of all variants on a workload, to choose by.

        Those without a value are left out, and those whose cell is broken.
        """
        found = (
            (each, self.summary(workload, each, key))
            for each in self.variant_ids
            if not self.is_broken(workload, each)
        )
        return {
            variant: summary
            for variant, summary in found
            if summary is not None and summary.median is not None
        }

    @cached_property
    def metric_keys(self) -> frozenset[str]:
        """Every metric that any cell says something about."""
        keys = {key for cell in self.cells.values() for key in cell.metrics}
        for summaries in self.by_variant.values():
            keys.update(summaries)
        return frozenset(keys)


def build_report_data(run: Run) -> ReportData:
    """What there is to say about a run that was read.

    Raises:
        ResultError: as `refuse_strays` does.
    """
    collector = SeriesCollector()
    for trial in run.trials:
        collector.take(trial)
    return _build(run, collector.series())


def load_report_data(path: str | PathLike[str]) -> ReportData:
    """Read a run's folder for a report; a large run needs little memory this way.

    Raises:
        ResultError: as `read_run` and `refuse_strays` do.
    """
    collector = SeriesCollector()
    run = read_run(path, reduce=collector.take)
    with collected_before():
        return _build(run, collector.series())


@contextmanager
def collected_before() -> Iterator[None]:
    """Look for no garbage among what there is already.

    The values of a large run are millions, in no cycle, and looked through again and again.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def intervals_overlap(one: Summary, other: Summary) -> bool | None:
    """Whether two 95 % intervals share a value; None where one of the two is missing."""
    mine, others = bounds(one), bounds(other)
    if mine is None or others is None:
        return None
    return mine[0] <= others[1] and others[0] <= mine[1]


def paired_ratio(
    trials: Sequence[Trial], workload: str, key: str, numerator: str, denominator: str
) -> float | None:
    """How many times a variant's value is another's: the median of the ratios within blocks.

    Returns:
        None where no block holds a value of both.
    """
    ratios = ratios_within_blocks(trials, workload, key, numerator, denominator)
    return ratio_summary(ratios).median if ratios else None


def ratio_summary(ratios: Mapping[int, float]) -> Summary:
    """The median of ratios within blocks with its 95 % interval, both taken of their logarithms.

    So the ratio of A to B is one over that of B to A, for an even number of blocks too, where the
    median is the mean of two: the mean of two ratios times that of their inverses is above 1.

    Args:
        ratios: by block, each above 0; at least one.
    """
    logarithms = [math.log(each) for each in ratios.values()]
    interval = median_interval(logarithms, list(ratios))
    return Summary(
        median=math.exp(statistics.median(logarithms)),
        ci_low=None if interval.low is None else math.exp(interval.low),
        ci_high=None if interval.high is None else math.exp(interval.high),
        n=len(ratios),
        unit="1",
        source="derived",
        reason=interval.reason,
    )


def ratios_within_blocks(
    trials: Sequence[Trial], workload: str, key: str, numerator: str, denominator: str
) -> dict[int, float]:
    """How many times a variant's value is another's, by block, of blocks that hold both.

    Pairing within a block takes out what drifted between blocks (heat, other load).
    """
    values: dict[str, dict[int, list[float]]] = {
        numerator: defaultdict(list),
        denominator: defaultdict(list),
    }
    for trial in trials:
        if trial.workload != workload or trial.phase != "measured" or trial.status != "ok":
            continue
        blocks = values.get(trial.variant)
        measured = trial.metrics.get(key)
        if blocks is not None and measured is not None and measured.value is not None:
            blocks[trial.block].append(measured.value)
    below = values[denominator]
    return {
        block: statistics.median(above) / statistics.median(below[block])
        for block, above in values[numerator].items()
        if block in below and min(statistics.median(above), statistics.median(below[block])) > 0
    }


def bounds(summary: Summary) -> tuple[float, float] | None:
    """The ends of the 95 % interval, of what is known for certain the value; None without."""
    if summary.ci_low is not None and summary.ci_high is not None:
        return summary.ci_low, summary.ci_high
    if summary.median is not None and summary.reason is None:
        # Known, not sampled: the size of a file has no interval and needs none.
        return summary.median, summary.median
    return None


def _build(run: Run, series: Series) -> ReportData:
    refuse_strays(run)
    run, series = labelled(run, series)
    summarized = {(each.workload, each.variant): each for each in summarize(run.record, run.trials)}
    cells = {
        (workload.name, variant.id): summarized.get((workload.name, variant.id))
        or Cell(variant=variant.id, workload=workload.name, status="not_run", n=0)
        for workload in run.record.workloads
        for variant in run.record.variants
    }
    return ReportData(
        run=run,
        cells=cells,
        series=series,
        failures=failure_views(run.trials, cells),
        by_variant={each.id: _of_artifact(each) for each in run.record.variants},
        parts=(
            Part(
                run.record,
                run.path,
                tuple(each.id for each in run.record.variants),
                damaged_lines=run.damaged_lines,
            ),
        ),
    )


def _of_artifact(variant: VariantRecord) -> dict[str, Summary]:
    artifact = variant.artifact
    if artifact is None:
        return {}
    found = {"model_bytes": Summary(median=artifact.bytes, n=1, unit="byte", source="observed")}
    if artifact.parameters:
        bits = BITS_PER_BYTE * artifact.bytes / artifact.parameters
        found["bits_per_weight"] = Summary(median=bits, n=1, unit="bit", source="derived")
    if artifact.weight_bytes_per_token:
        read = artifact.weight_bytes_per_token
        found["weight_bytes_per_token"] = Summary(median=read, n=1, unit="byte", source="derived")
    return found
