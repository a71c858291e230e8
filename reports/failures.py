"""What failed, each failure once, with the end of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.languages import N_, _
from edgebench.reports.text import tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.results.trial import Trial
    from edgebench.reports.series import Place

LOADING = N_("loading the model")

_KINDS = {
    "crash": N_("crashed"),
    "timeout": N_("did not answer in time"),
    "protocol": N_("answered with something that is not the protocol"),
    "refused": N_("refused"),
    "invalid_result": N_("gave a result that can't be true"),
    "unavailable": N_("is not available"),
    "model": N_("had no model"),
    "error": N_("failed"),
}


@dataclass(frozen=True, slots=True)
class FailureView:
    """One kind of failure of one variant.

    Attributes:
        variant: the variant's id.
        places: the workloads it happened on, or `LOADING`.
        kind, signal, exit_code: of the last such failure.
        message: the failure's own message.
        log: the log's path, relative to the run's folder, or None.
        log_tail: the end of the log, cleaned.
        count: how many trials failed so.
    """

    variant: str
    places: tuple[str, ...]
    kind: str
    signal: str | None
    exit_code: int | None
    message: str
    log: str | None
    log_tail: str
    count: int

    @property
    def where(self) -> tuple[str, ...]:
        """The places in the current language."""
        return tuple(_(LOADING) if each == LOADING else each for each in self.places)

    @property
    def what(self) -> str:
        """What happened, in a few words, such as ``crashed with SIGSEGV``."""
        known = _KINDS.get(self.kind)
        what = _(known) if known else _("failed ({kind})", kind=self.kind)
        if self.signal:
            return _("{what} with {signal}", what=what, signal=self.signal)
        if self.exit_code is not None:
            return _("{what} with exit status {status}", what=what, status=self.exit_code)
        return what


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
    return tuple(gathered.view(variant) for (variant, *_rest), gathered in seen.items())


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
            places=tuple(self.where),
            kind=failure.kind,
            signal=failure.signal,
            exit_code=failure.exit_code,
            message=failure.message,
            log=failure.log,
            log_tail=tail(failure.log_tail),
            count=max(self.count, 1),
        )
