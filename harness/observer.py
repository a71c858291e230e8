"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgebench.harness.results.trial import Phase, Trial


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is about to be measured.

    Attributes:
        cells: those that are repeated.
        time_budget_s: for all of it.
        stretches: of sustained work, after those.
        sustained_s: how long these take together.
    """

    cells: int
    min_repetitions: int
    max_repetitions: int
    time_budget_s: float
    stretches: int = 0
    sustained_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A cell after a trial.

    Attributes:
        decode_rate: median so far in token/s, or None.
        task_latency_s: median so far in s, or None.
        measured: repetitions so far.
        time_left_s: how long the run may still take, at most; None before the first block ended.
    """

    decode_rate: float | None
    measured: int
    time_left_s: float | None
    task_latency_s: float | None = None


class Observer(Protocol):
    """Receives what happens, in order; must be quick, and must not raise."""

    def preparing(self, what: str) -> None:
        """A step of the preparation begins."""

    def transferring(self, what: str, done: int, total: int | None) -> None:
        """Bytes of it are done."""

    def planned(self, outlook: Outlook) -> None:
        """Preparation is over; measuring begins."""

    def session(self, block: int, variant: str) -> None:
        """A variant's process is being started."""

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        """A generation begins, or a run of a task."""

    def finished(self, trial: Trial, standing: Standing) -> None:
        """A trial has been recorded."""

    def note(self, text: str) -> None:
        """Something a user should know."""


class Silent:
    """Watches and says nothing."""

    def preparing(self, what: str) -> None:
        """Nothing."""

    def transferring(self, what: str, done: int, total: int | None) -> None:
        """Nothing."""

    def planned(self, outlook: Outlook) -> None:
        """Nothing."""

    def session(self, block: int, variant: str) -> None:
        """Nothing."""

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        """Nothing."""

    def finished(self, trial: Trial, standing: Standing) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
