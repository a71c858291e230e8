"""What two interleaved runs tell one observer: each variant by its side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgebench.harness.observer import Observer, Outlook, Standing
    from edgebench.harness.results.trial import Phase, Trial


class Sided:
    """Passes all on, with the side before it.

    Args:
        observer: who is told.
        side: how this run is called.
    """

    def __init__(self, observer: Observer, side: str) -> None:
        self._observer = observer
        self._side = side

    def preparing(self, what: str) -> None:
        """A step of the preparation begins."""
        self._observer.preparing(f"{self._side}: {what}")

    def transferring(self, what: str, done: int, total: int | None) -> None:
        """Bytes of it are done."""
        self._observer.transferring(f"{self._side}: {what}", done, total)

    def planned(self, outlook: Outlook) -> None:
        """Measuring begins, of both sides."""
        self._observer.planned(outlook)

    def session(self, block: int, variant: str) -> None:
        """A variant's process is being started."""
        self._observer.session(block, self._named(variant))

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        """A generation begins, or a run of a task."""
        self._observer.trial(self._named(variant), workload, phase, repetition)

    def finished(self, trial: Trial, standing: Standing) -> None:
        """A trial has been recorded."""
        named = trial.model_copy(update={"variant": self._named(trial.variant)})
        self._observer.finished(named, standing)

    def note(self, text: str) -> None:
        """Something a user should know."""
        self._observer.note(f"{self._side}: {text}")

    def _named(self, variant: str) -> str:
        return f"{self._side} · {variant}"
