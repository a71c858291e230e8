"""Which cells have what: repetitions so far, and failures in a row."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.trial import Trial

MAX_FAILURES = 2
"""A cell that failed this often without a success between is given up."""


class Tally:
    """Counts trials as they come in, so that no block has to look at all of them again.

    Args:
        workloads: names of the workloads that make tokens, which a failed load fails together.
        tasks: names of those that are tasks, which the failed load of a task fails together.
    """

    def __init__(self, workloads: Sequence[str], tasks: Sequence[str] = ()) -> None:
        self._loaded = {"load": workloads, "task_load": tasks}
        self._measured: dict[tuple[str, str], list[Trial]] = defaultdict(list)
        self._failures: Counter[tuple[str, str]] = Counter()
        self._next_block: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        """Take one more trial into account."""
        if trial.kind == "quality":  # of no block, and never repeated
            return
        self._next_block[trial.variant] = max(self._next_block[trial.variant], trial.block + 1)
        if trial.status == "failed":
            one = [trial.workload] if trial.workload is not None else []
            failed = one or self._loaded.get(trial.kind, ())
            self._failures.update((trial.variant, workload) for workload in failed)
        elif trial.workload is not None and trial.phase == "measured":
            self._measured[trial.variant, trial.workload].append(trial)
            self._failures[trial.variant, trial.workload] = 0

    def measured(self, variant: str, workload: str) -> list[Trial]:
        """The cell's measured repetitions that succeeded."""
        return self._measured[variant, workload]

    def is_lost(self, variant: str, workload: str) -> bool:
        """Whether a cell failed so often that more tries would only cost time."""
        return self._failures[variant, workload] >= MAX_FAILURES

    def next_block(self, variants: Sequence[str]) -> int:
        """The number of the next block of these variants."""
        return max((self._next_block[variant] for variant in variants), default=0)
