"""The single values behind a cell's figures: of repetitions, of loads, of a text's windows."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from edgebench.harness.quality.cell import windows_by_variant
from edgebench.harness.quality.figures import MOST_NAT, UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, WindowRecord
    from edgebench.harness.results.trial import Trial
    from edgebench.reports.data import ReportData

REPETITIONS: Final = 0
LOADS: Final = 1
WINDOWS: Final = 2

MOST_WINDOWS: Final = 500
"""Of more windows a page would hold too many values: it holds none."""

WINDOWS_TOGETHER: Final = 10
"""Windows that are shown in one row, as a block of repetitions is."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands behind one cell.

    Attributes:
        values: by what they are of, in the order of the run, the values by metric.
        blocks: the same for the block of each.
        windows: how many windows of a text were rated; 0 of any other cell.
        keys: by what values are of, the metrics that they have.
    """

    values: tuple[tuple[Mapping[str, float], ...], ...] = ((), (), ())
    blocks: tuple[tuple[int, ...], ...] = ((), (), ())
    windows: int = 0
    keys: tuple[frozenset[str], ...] = field(default=(frozenset(),) * 3)

    def of(self, key: str) -> tuple[int, tuple[float | None, ...]]:
        """What a metric's values are of, and the values; None where one has none."""
        own = WINDOWS if self.windows and key in UNITS else REPETITIONS
        if own == REPETITIONS and key not in self.keys[own] and key in self.keys[LOADS]:
            own = LOADS
        if key not in self.keys[own]:
            return own, ()
        return own, tuple(each.get(key) for each in self.values[own])


def samples(data: ReportData, workload: WorkloadRecord) -> dict[str, Behind]:
    """What stands behind each variant's cell of a workload; nothing of those without a value.

    A load of the model serves all workloads of its block: it stands behind each of them, but tasks
    have loads of their own.
    """
    if workload.quality:
        return dict(_rated(data, workload.name, workload.quality))
    load = "task_load" if workload.task else "load"
    taken: dict[tuple[str, int], list[Trial]] = defaultdict(list)
    for trial in data.run.trials:
        if trial.phase != "measured" or trial.status != "ok":
            continue
        if trial.workload == workload.name:
            taken[trial.variant, REPETITIONS].append(trial)
        elif trial.workload is None and trial.kind == load:
            taken[trial.variant, LOADS].append(trial)
    return {
        each: _of_trials(taken[each, REPETITIONS], taken[each, LOADS]) for each in data.variant_ids
    }


def _of_trials(repetitions: Sequence[Trial], loads: Sequence[Trial]) -> Behind:
    both = (repetitions, loads)
    return Behind(
        values=(*(tuple(map(_values, each)) for each in both), ()),
        blocks=(*(tuple(trial.block for trial in each) for each in both), ()),
        # A metric that repetitions have is theirs, as it is in the cell, even where it is null.
        keys=(
            *(frozenset(key for trial in each for key in trial.metrics) for each in both),
            frozenset(),
        ),
    )


def _values(trial: Trial) -> dict[str, float]:
    return {key: each.value for key, each in trial.metrics.items() if each.value is not None}


def _rated(data: ReportData, workload: str, quality: QualityRecord) -> Iterator[tuple[str, Behind]]:
    exact = quality.reference.windows if quality.reference else ()
    for variant, windows in windows_by_variant(data.run.trials, workload, quality).items():
        few = len(windows) <= MOST_WINDOWS
        reference = exact if len(exact) >= len(windows) else (None,) * len(windows)
        values = tuple(map(_of_window, windows, reference)) if few else ()
        yield (
            variant,
            Behind(
                values=((), (), values),
                blocks=((), (), tuple(at // WINDOWS_TOGETHER for at in range(len(values)))),
                windows=len(windows),
                keys=(frozenset(), frozenset(), frozenset(key for each in values for key in each)),
            ),
        )


def _of_window(window: WindowRecord, exact: WindowRecord | None) -> dict[str, float]:
    """The figures of a text, of one window alone."""
    found: dict[str, float] = {}
    cost = -window.log_likelihood / window.tokens
    if cost <= MOST_NAT:
        found["perplexity"] = math.exp(cost)
        if exact is not None:
            above = (exact.log_likelihood - window.log_likelihood) / window.tokens
            found["perplexity_ratio"] = math.exp(min(above, MOST_NAT))
    if window.bytes:
        found["bits_per_byte"] = -window.log_likelihood / math.log(2) / window.bytes
    if window.kl_divergence is not None:
        found["kl_divergence"] = window.kl_divergence / window.tokens
    if window.top1 is not None:
        found["top1_agreement"] = window.top1 / window.tokens
    return found
