"""From trials to cells: the medians, intervals and flags of every variant on every workload."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from edgebench.harness.mbu import is_above
from edgebench.harness.metrics import statistics
from edgebench.harness.quality.cell import quality_cell
from edgebench.harness.results.cell import Cell, Flag, Summary
from edgebench.harness.results.meters import of_its_meter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.results.measured import Measured, Source
    from edgebench.harness.results.model import ProtocolRecord, RunRecord, WorkloadRecord
    from edgebench.harness.results.trial import Trial

OTHERS_LIMIT = 0.05
"""CPUs that other processes may take: as much as the doctor lets pass."""

IDLE_LIMIT = 0.1
"""CPUs that may stand idle where all are called taken."""

STEADY_METRICS = ("ttft_s", "decode_rate", "task_latency_s")
"""What warm-up, repetitions and the noise flag are judged by; a cell has two of them, or one."""


def summarize(record: RunRecord, trials: Sequence[Trial], *, figures: bool = True) -> list[Cell]:
    """One cell for each variant and workload, in the run's order, failed ones included.

    Args:
        record: of the run.
        trials: all of it.
        figures: whether cells have the medians and intervals of their metrics, which take time:
            who goes by the trials needs none. Texts that were rated have theirs without intervals.
    """
    by_cell: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    loads: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.workload is None:
            loads[trial.variant, trial.kind].append(trial)
        else:
            by_cell[trial.variant, trial.workload].append(trial)
    # Tasks run in processes of their own, whose loads say nothing about the others.
    return [
        quality_cell(
            record, variant.id, workload, by_cell[variant.id, workload.name], intervals=figures
        )
        if workload.kind == "quality"
        else _cell(
            record,
            variant.id,
            workload,
            by_cell,
            loads[variant.id, "task_load" if workload.task else "load"],
            figures=figures,
        )
        for variant in record.variants
        for workload in record.workloads
    ]


def _cell(
    record: RunRecord,
    variant: str,
    workload: WorkloadRecord,
    by_cell: dict[tuple[str, str], list[Trial]],
    loads: list[Trial],
    *,
    figures: bool,
) -> Cell:
    trials = by_cell.get((variant, workload.name), [])
    lasting = workload.kind == "sustained"
    measured = [trial for trial in trials if trial.phase == "measured" and trial.status == "ok"]
    failed = [trial for trial in [*loads, *trials] if trial.status == "failed"]
    outcomes = ("partial", "ok") if measured else ("failed", "not_run")
    return Cell.model_validate(
        {
            "variant": variant,
            "workload": workload.name,
            "status": outcomes[0] if failed else outcomes[1],
            "n": len(measured),
            "n_warmup": sum(trial.phase == "warmup" for trial in trials),
            "n_failed": len(failed),
            "flags": _flags(record, measured, trials, loads, failed=bool(failed), lasting=lasting),
            "metrics": {
                **_summaries(record, (trial for trial in loads if trial.status == "ok")),
                **_summaries(record, measured),
            }
            if measured and figures
            else {},
            "failure": failed[-1].failure if failed else None,
        }
    )


def _summaries(record: RunRecord, trials: Iterable[Trial]) -> dict[str, Summary]:
    samples: dict[str, list[tuple[int, Measured]]] = defaultdict(list)
    for trial in trials:
        for key, measured in of_its_meter(record, trial).items():
            samples[key].append((trial.block, measured))
    return {key: _summary(pairs) for key, pairs in samples.items()}


def _summary(pairs: list[tuple[int, Measured]]) -> Summary:
    present = [(block, pair.value, pair) for block, pair in pairs if pair.value is not None]
    if not present:
        first = pairs[0][1]
        return Summary(median=None, n=0, unit=first.unit, source=first.source, reason=first.reason)
    values = [value for _, value, _ in present]
    interval = statistics.median_interval(values, [block for block, _, _ in present])
    return Summary(
        median=statistics.median(values),
        ci_low=interval.low,
        ci_high=interval.high,
        min=min(values),
        max=max(values),
        cv=statistics.coefficient_of_variation(values),
        n=len(values),
        unit=present[0][2].unit,
        source=weakest(pair.source for _, _, pair in present),
        reason=interval.reason,
    )


def weakest(sources: Iterable[Source]) -> Source:
    """Of what stands for several values: `estimated` where one of them is; else the first's."""
    found = list(sources)
    return "estimated" if "estimated" in found else found[0]


def _flags(
    record: RunRecord,
    measured: list[Trial],
    trials: list[Trial],
    loads: list[Trial],
    *,
    failed: bool,
    lasting: bool,
) -> list[Flag]:
    protocol = record.protocol
    flags: list[Flag] = []
    variations = [
        statistics.coefficient_of_variation(_values(measured, key)) for key in STEADY_METRICS
    ]
    if any(cv is not None and cv > protocol.max_cv for cv in variations):
        flags.append("noisy")
    if _was_contended(record, measured):
        flags.append("contended")
    if _warmup_was_unstable(trials, protocol):
        flags.append("unstable_warmup")
    if any(trial.sustained and trial.sustained.throttled for trial in measured):
        flags.append("throttled")
    if lasting:
        pass  # one stretch is all that is asked for
    elif len(measured) < protocol.min_repetitions:
        flags.append("few_repetitions")
        if record.stopped_by_budget and not failed:
            flags.append("cut_by_budget")
    elif record.stopped_by_budget and not is_settled(measured, protocol):
        flags.append("cut_by_budget")
    if record.quick:
        flags.append("quick")
    if measured and is_above(record, measured[0].variant, measured, loads):
        flags.append("above_bandwidth")
    return flags


def _was_contended(record: RunRecord, measured: list[Trial]) -> bool:
    """Whether other processes ran while all CPUs were taken, in every second repetition or more.

    Threads that work in step wait for the one that had to give way: a whole framework slows.
    """
    # Of those that the run may use: its runners are counted there, and so are the others.
    cpus = len(record.machine.affinity) or record.machine.logical_cpus
    taken = []
    for trial in measured:
        others, own = (trial.metrics.get(key) for key in ("others_cpus", "cpu_time_s"))
        if others and own and others.value is not None and own.value is not None:
            used = others.value + own.value / max(trial.duration_s, 1e-9)
            full = used >= cpus - IDLE_LIMIT
            taken.append(full and others.value >= OTHERS_LIMIT)
    return bool(taken) and 2 * sum(taken) >= len(taken)


def is_settled(measured: Sequence[Trial], protocol: ProtocolRecord) -> bool:
    """Whether a cell needs no more repetitions: enough, and narrow enough or at the cap."""
    if len(measured) >= protocol.max_repetitions:
        return True
    if len(measured) < protocol.min_repetitions:
        return False
    blocks = [trial.block for trial in measured]
    return all(
        statistics.is_narrow(values, blocks, protocol.ci_half_width)
        for values in (_values(measured, key) for key in STEADY_METRICS)
        if len(values) == len(blocks)
    )


def warmup_is_stable(warmups: Sequence[Trial], within: float) -> bool:
    """Whether the last two warm-ups of one process agree."""
    return all(
        statistics.is_stable(values, within)
        for values in (_values(warmups, key) for key in STEADY_METRICS)
        if values
    )


def _warmup_was_unstable(trials: list[Trial], protocol: ProtocolRecord) -> bool:
    by_block: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "warmup" and trial.status == "ok":
            by_block[trial.block].append(trial)
    return any(
        # One warm-up alone, as a scenario may ask for, says nothing about stability.
        len(warmups) > 1 and not warmup_is_stable(warmups, protocol.warmup_stable_within)
        for warmups in by_block.values()
    )


def _values(trials: Sequence[Trial], key: str) -> list[float]:
    found = (trial.metrics.get(key) for trial in trials)
    return [item.value for item in found if item is not None and item.value is not None]
