"""Every variant rates the same windows: the first one timed, then as many as there is time for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.failures import failure_of
from edgebench.harness.metrics.statistics import MIN_BLOCKS
from edgebench.harness.quality.exact import Exact
from edgebench.harness.quality.plan import QualityTask, affordable, text_range
from edgebench.harness.quality.rater import Rater
from edgebench.harness.variant_session import SCORING, in_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prepare import PreparedVariant
    from edgebench.harness.quality.reference import CachedReference
    from edgebench.harness.results.model import Trial
    from edgebench.harness.results.quality import QualityRecord
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

    @property
    def is_spent(self) -> bool:
        """Whether even what is late is too late."""
        return self.left_s <= -LATE * self.seconds


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
    ) -> QualityRecord:
        """Rate one text with all variants.

        Args:
            task: the text.
            variants: those that can be started.
            reference: what rates by the source's weights; None where no metric needs it.
            budget: the time there is for it.
            done: by variant, what an earlier part of the run rated; the others rate as much.

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
        raters = [each for each in raters if self._rate(task, each, 1, None)]
        count = min([len(task.windows), *(len(each.windows) for each in done.values())])
        if raters and not done:
            count = self._plan(task, raters, exact, budget)
        elif not raters and not done:
            count = 0
        exact.take(count)
        # The slowest first: should it be late, the others need not rate what it could not.
        for each in sorted(raters, key=lambda rater: -rater.window_s):
            late = None if done else budget
            if len(each.windows) < count and not self._rate(task, each, count, late):
                continue
            count = min(count, len(each.windows))
            self._keep(each.trial(count))
        for each in raters:
            if each.recorded > count:
                self._keep(each.trial(count))
        found = {"reference": exact.record(count), "no_reference": exact.reason}
        return task.recorded(count).model_copy(update=found)

    def _plan(
        self, task: QualityTask, raters: Sequence[Rater], exact: Exact, budget: Budget
    ) -> int:
        """How many windows to rate; tells how long that takes."""
        planned = len(task.windows)
        costs = [*(each.window_s for each in raters), exact.seconds_a_window(planned)]
        loads = [each.load_s for each in raters]
        count = affordable(planned, budget.left_s, loads, costs)
        if count < planned:
            says = (
                f"time for {count} of {planned} windows, the same for all: "
                f"{len(raters)} variants take {sum(costs):.1f} s a window"
            )
            if count < MIN_BLOCKS:
                says += f"; below {MIN_BLOCKS} there are no intervals"
        else:
            takes = sum(loads) + (count - 1) * sum(costs) if count > 1 else 0.0
            says = (
                f"{count} windows of {task.record.window} tokens, {len(raters)} variants: "
                f"about {takes:.0f} s more"
            )
        if len(raters) > 1:
            slowest = max(raters, key=lambda each: each.window_s)
            says += f" (slowest: {slowest.id}, {slowest.window_s:.2g} s a window)"
        self._observer.note(f"{task.workload}: {says}")
        return count

    def _rate(self, task: QualityTask, rater: Rater, count: int, budget: Budget | None) -> bool:
        """Rate up to `count` windows; False where the variant failed, which is recorded.

        Args:
            task: the text.
            rater: the variant.
            count: how many windows there are to be in all.
            budget: rate no further window once it is spent.
        """
        if not rater.scores:
            failure = failure_of(RunnerRefusedError(SCORING, reason="unsupported"))
            self._keep(rater.failed(failure))
            return False

        def work(session: Session) -> None:
            self._observer.preparing(f"{task.workload}: loading {rater.id}")
            rater.load(session)
            while len(rater.windows) < count and not (budget and budget.is_spent):
                place = len(rater.windows) + 1
                self._observer.preparing(f"{task.workload}: {rater.id}, window {place} of {count}")
                rater.rate(session)

        failed = in_session(rater.item, self._folder, f"quality-{task.workload}", work)
        if failed is None:
            return True
        where = f"{text_range(task, len(rater.windows))}: " if rater.is_loaded else ""
        failure = failed.model_copy(update={"message": f"{where}{failed.message}"})
        self._keep(rater.failed(failure))
        return False
