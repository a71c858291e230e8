"""All texts of a run, one after the other, each in its share of the time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from edgebench.harness.quality.reference import CachedReference
from edgebench.harness.quality.scoring import Budget, QualityScoring
from edgebench.harness.results.quality import WITH_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prepared import Prepared
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.results.trial import Trial
    from edgebench.harness.store.store import ModelStore


def score_texts(
    prepared: Prepared,
    trials: Sequence[Trial],
    *,
    store: ModelStore,
    folder: Path,
    observer: Observer,
    timeout_s: float,
    budget_s: float,
    now: Callable[[], float],
    keep: Callable[[Trial], None],
    known: Callable[[str, QualityRecord], None],
) -> None:
    """Rate every text with every variant that can be started.

    Args:
        prepared: variants and texts.
        trials: what an earlier part of the run has; texts that were rated are not rated again.
        store: where the reference's ratings are kept.
        folder: the run's folder.
        observer: told of each step.
        timeout_s: for one load; a window gets more.
        budget_s: time for all texts together.
        now: the clock, in seconds.
        keep: takes each trial as soon as it is over.
        known: takes a workload's protocol, when its windows are planned and when they are scored.
    """
    begun = now()
    ready = [item for item in prepared.variants if item.failure is None]
    scoring = QualityScoring(folder, observer, timeout_s, keep)
    for place, task in enumerate(prepared.quality):
        share = (begun + budget_s - now()) / (len(prepared.quality) - place)
        needed = any(name in WITH_REFERENCE for name in task.record.metrics)

        def told(step: str, name: str = task.workload) -> None:
            observer.preparing(f"{name}: reference, {step}")

        reference = None
        if needed and prepared.source is not None:
            reference = CachedReference(prepared.source, store, told)
        done = {
            trial.variant: trial
            for trial in trials
            if trial.kind == "quality" and trial.status == "ok" and trial.workload == task.workload
        }
        budget = Budget(now, now() + share, share)
        planned = partial(known, task.workload)
        planned(scoring.run(task, ready, reference, budget, done, planned))
