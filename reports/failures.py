"""What failed, each failure once, with the end of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.text import tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgebench.harness.results.model import Cell, Failure, Trial
    from edgebench.reports.series import Place

LOADING = "loading the model"

_KINDS = {
    "crash": "crashed",
    "timeout": "did not answer in time",
    "protocol": "answered with something that is not the protocol",
    "refused": "refused",
    "invalid_result": "gave a result that can't be true",
    "unavailable": "is not available",
    "model": "had no model",
    "error": "failed",
}


@dataclass(frozen=True, slots=True)
class FailureView:
    """One kind of failure of one variant.

    Attributes:
        variant: the variant's id.
        where: the workloads it happened on, or `LOADING`.
        what: what happened, in a few words, such as ``crashed with SIGSEGV``.
        message: the failure's own message.
        log: the log's path, relative to the run's folder, or None.
        log_tail: the end of the log, cleaned.
        count: how many trials failed so.
    """

    variant: str
    where: tuple[str, ...]
    what: str
    message: str
    log: str | None
    log_tail: str
    count: int


def failure_views(trials: Iterable[Trial], cells: Mapping[Place, Cell]) -> tuple[FailureView, ...]:
    """Gather the failures of the trials, and those of cells that had no trial at all."""
    seen: dict[tuple[str, str, str], _Gathered] = {}
    for trial in trials:
        if trial.status == "failed" and trial.failure is not None:
            key = (trial.variant, trial.failure.kind, trial.failure.message)
            gathered = seen.setdefault(key, _Gathered(trial.failure))
            gathered.add(trial.workload or LOADING, trial.failure)
    for (workload, variant), cell in cells.items():
        if cell.failure is None:
            continue
        key = (variant, cell.failure.kind, cell.failure.message)
        if key not in seen or not seen[key].count:
            seen.setdefault(key, _Gathered(cell.failure)).where[workload] = None
    return tuple(gathered.view(variant) for (variant, _, _), gathered in seen.items())


class _Gathered:
    """Failures that are the same in all that a reader wants to know."""

    def __init__(self, failure: Failure) -> None:
        self.where: dict[str, None] = {}
        self.count = 0
        self._last = failure

    def add(self, where: str, failure: Failure) -> None:
        self.where[where] = None
        self.count += 1
        self._last = failure

    def view(self, variant: str) -> FailureView:
        failure = self._last
        return FailureView(
            variant=variant,
            where=tuple(self.where),
            what=_what(failure),
            message=failure.message,
            log=failure.log,
            log_tail=tail(failure.log_tail),
            count=max(self.count, 1),
        )


def _what(failure: Failure) -> str:
    what = _KINDS.get(failure.kind, f"failed ({failure.kind})")
    if failure.signal:
        return f"{what} with {failure.signal}"
    if failure.exit_code is not None:
        return f"{what} with exit status {failure.exit_code}"
    return what
