"""Every variant rates the same windows: the first one timed, then as many as there is time for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.failures import failure_of
from edgebench.harness.quality.exact import Exact
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.quality.plan import QualityTask, affordable, text_range
from edgebench.harness.quality.rater import Rater
from edgebench.harness.variant_session import SCORING, in_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.quality.reference import CachedReference
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.results.trial import Trial
    from edgebench.harness.session import Session

LATE = 0.1
"""The share of a budget by which what was planned may be late before windows are left out."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When rating one text is to end.

    Attributes:
        now: the clock, in seconds.
        deadline: on that clock.
        seconds: how long it is in all.
    """

    now: Callable[[], float]
    deadline: float
    seconds: float

    @property
    def left_s(self) -> float:
        """Until the deadline."""
        return self.deadline - self.now()

    def has_time(self, rater: Rater, others: Sequence[Rater]) -> bool:
        """Whether one more window can be rated, and as many by those that are still to come."""
        more = len(rater.windows)  # one more than all have, who have rated the first
        needed = rater.window_s + sum(each.load_s + more * each.window_s for each in others)
        return needed <= self.left_s + LATE * self.seconds


class QualityScoring:
    """Rates texts with prepared variants.

    Args:
        folder: the folder that the logs' folder stands in.
        observer: told of each step.
        timeout_s: for one load; a window gets more.
        keep: takes each trial as soon as it is over.
    """

    def __init__(
        self, folder: Path, observer: Observer, timeout_s: float, keep: Callable[[Trial], None]
    ) -> None:
        self._folder = folder
        self._observer = observer
        self._timeout_s = timeout_s
        self._keep = keep

    def run(
        self,
        task: QualityTask,
        variants: Sequence[PreparedVariant],
        reference: CachedReference | None,
        budget: Budget,
        done: Mapping[str, Trial],
        planned: Callable[[QualityRecord], None],
    ) -> QualityRecord:
        """Rate one text with all variants.

        Args:
            task: the text.
            variants: those that can be started.
            reference: what rates by the source's weights; None where no metric needs it.
            budget: the time there is for it.
            done: by variant, what an earlier part of the run rated; the others rate as much.
            planned: told of the protocol as soon as it is known how many windows are rated.

        Returns:
            The protocol, with the windows that were scored by all.
        """
        exact = Exact(task, reference)
        exact.take(1)
        raters = [
            Rater(item, task, exact, self._timeout_s)
            for item in variants
            if item.variant.id not in done
        ]
        raters = [each for each in raters if self._rate(task, each, 1)]
        self._warn(task, raters)
        count = min((len(each.windows) for each in done.values()), default=0)
        if raters and not done:
            count = self._plan(task, raters, exact, budget)
        exact.take(count)
        planned(self._record(task, exact, count))
        # Whoever is slowest settles how many windows there is time for; all others rate as many.
        settled, scored = bool(done), bool(done)
        waiting = sorted(raters, key=lambda rater: -rater.window_s)
        for place, each in enumerate(waiting, start=1):
            goes_on = None if settled else partial(budget.has_time, each, waiting[place:])
            if len(each.windows) < count and not self._rate(task, each, count, goes_on):
                continue
            settled = scored = True
            count = min(count, len(each.windows))
            self._keep(each.trial(count))
        return self._record(task, exact, count if scored else 0)

    @staticmethod
    def _record(task: QualityTask, exact: Exact, count: int) -> QualityRecord:
        found = {"reference": exact.record(count), "no_reference": exact.lacks}
        return task.recorded(count).model_copy(update=found)

    def _warn(self, task: QualityTask, raters: Sequence[Rater]) -> None:
        """Tell of a window that is longer than what the model was trained for."""
        known = [each.trained_tokens for each in raters if each.trained_tokens is not None]
        if known and task.context_tokens > min(known):
            self._observer.note(
                f"{task.workload}: windows have {task.context_tokens} tokens and the model was "
                f"trained for {min(known)}: beyond these it predicts badly, whatever the format"
            )

    def _plan(
        self, task: QualityTask, raters: Sequence[Rater], exact: Exact, budget: Budget
    ) -> int:
        """How many windows to rate; tells how long that takes."""
        planned = len(task.windows)
        reading_s, reference_s = exact.costs_s(planned)
        costs = [*(each.window_s for each in raters), reference_s]
        loads = [*(each.load_s for each in raters), reading_s]
        count = affordable(planned, budget.left_s, loads, costs)
        windows = f"{count} window{'' if count == 1 else 's'}"
        if count < planned:
            says = (
                f"time for {count} of {planned} windows, the same for all: one takes "
                f"{sum(costs):.1f} s for {_variants(raters)}"
                + (f", {reference_s:.1f} s of it for the reference" if reference_s else "")
            )
        else:
            takes = sum(loads) + (count - 1) * sum(costs) if count > 1 else 0.0
            says = (
                f"{windows} of {task.record.window} tokens, {_variants(raters)}: "
                f"about {takes:.0f} s more"
            )
        if count < MIN_WINDOWS:
            says += f"; below {MIN_WINDOWS} windows there are no intervals"
        if len(raters) > 1:
            slowest = max(raters, key=lambda each: each.window_s)
            says += f" (slowest: {slowest.id}, {slowest.window_s:.2g} s a window)"
        self._observer.note(f"{task.workload}: {says}")
        return count

    def _rate(
        self,
        task: QualityTask,
        rater: Rater,
        count: int,
        goes_on: Callable[[], bool] | None = None,
    ) -> bool:
        """Rate up to `count` windows; False where the variant failed, which is recorded.

        Args:
            task: the text.
            rater: the variant.
            count: how many windows there are to be in all.
            goes_on: asked before each window, if given; no more is rated once it says no.
        """
        if not rater.scores:
            failure = failure_of(RunnerRefusedError(SCORING, reason="unsupported"))
            self._keep(rater.failed(failure))
            return False
        begun = time.perf_counter()

        def work(session: Session) -> None:
            self._observer.preparing(f"{task.workload}: loading {rater.id}")
            rater.load(session, begun)
            while len(rater.windows) < count and (goes_on is None or goes_on()):
                place = len(rater.windows) + 1
                which = f"window {place} of {count}" if count > 1 else "the first window, timed"
                self._observer.preparing(f"{task.workload}: {rater.id}, {which}")
                rater.rate(session)

        failed = in_session(rater.item, self._folder, f"quality-{task.workload}", work)
        if failed is None:
            return True
        where = f"{text_range(task, len(rater.windows))}: " if rater.is_loaded else ""
        failure = failed.model_copy(update={"message": f"{where}{failed.message}"})
        self._keep(rater.failed(failure))
        return False


def _variants(raters: Sequence[Rater]) -> str:
    return f"{len(raters)} variant{'' if len(raters) == 1 else 's'}"
