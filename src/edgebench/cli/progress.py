"""What a person sees while a run goes on: a live line, or plain lines without a screen."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from edgebench.harness.observer import Outlook, Silent, Standing
from edgebench.reports.format import decimals_for, number, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.harness.observer import Observer
    from edgebench.harness.results.trial import Phase, Trial

TRANSFER_STEP_S = 5.0
"""How often plain lines tell of a long transfer."""


STEP_S = 10.0
"""How often plain lines tell of steps that differ in their numbers only."""

_NUMBERS = re.compile(r"\d+ of \d+")


@contextmanager
def make_observer(*, quiet: bool) -> Iterator[Observer]:
    """The observer that fits: silent, live, or plain lines (no terminal, or NO_COLOR)."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        with _Live(Console(stderr=True)) as live:
            yield live
    else:
        yield _Plain(sys.stderr, time.monotonic)


class _Plain:
    """One line an event that matters, for logs."""

    def __init__(self, stream: TextIO, now: Callable[[], float]) -> None:
        self._stream = stream
        self._now = now
        self._told = now()
        self._doing = ""

    def preparing(self, what: str) -> None:
        """Of many steps of one kind, which differ in their numbers, one now and then."""
        doing = _NUMBERS.sub("", what)
        if doing != self._doing or self._now() - self._told >= STEP_S:
            self._line(what)
        self._doing = doing

    def transferring(self, what: str, done: int, total: int | None) -> None:
        if self._now() - self._told >= TRANSFER_STEP_S:
            self._line(f"{what}: {_bytes(done, total)}")

    def planned(self, outlook: Outlook) -> None:
        self._line(_outlook(outlook))

    def session(self, block: int, variant: str) -> None:
        self._line(f"block {block + 1}: {variant}")

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        """Told when it is over."""

    def finished(self, trial: Trial, standing: Standing) -> None:
        if trial.status == "failed":
            self._line(f"  {_failure(trial)}")
        elif trial.kind == "quality":
            self._line(f"  {_rated(trial)}")
        elif trial.sustained is not None:
            self._line(f"  {trial.workload}: {_sustained(trial)}")
        elif trial.phase == "measured" and trial.workload:
            left = _left(standing.time_left_s)
            self._line(
                f"  {trial.workload}: repetition {standing.measured}, "
                f"median {_figure(standing) or '–'}{', ' + left if left else ''}"
            )

    def note(self, text: str) -> None:
        self._line(text)

    def _line(self, text: str) -> None:
        self._told = self._now()
        self._stream.write(text + "\n")
        self._stream.flush()


class _Live:
    """A bar for the run and a line for what runs now; what must stay is printed above."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[tail]}", markup=False),
            console=console,
            transient=True,
            # Drawing costs CPU time next to what is being measured.
            refresh_per_second=2,
        )
        self._task: TaskID = self._progress.add_task("", total=None, tail="")
        self._budget_s = 0.0
        self._known: dict[tuple[str, str], str] = {}
        self._left = ""

    def __enter__(self) -> _Live:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def preparing(self, what: str) -> None:
        self._show(what, "")

    def transferring(self, what: str, done: int, total: int | None) -> None:
        self._progress.update(
            self._task, description=what, completed=done, total=total, tail=_bytes(done, total)
        )

    def planned(self, outlook: Outlook) -> None:
        self._budget_s = outlook.time_budget_s
        self._console.print(_outlook(outlook), style="dim", highlight=False)
        self._progress.update(self._task, completed=0, total=outlook.time_budget_s)

    def session(self, block: int, variant: str) -> None:
        self._show(f"block {block + 1} · {variant}", "loading")

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        word = "warm-up" if phase == "warmup" else "repetition"
        # What is known of the cell stays in sight while the next generation runs.
        known = self._known.get((variant, workload), "")
        tail = " · ".join(part for part in (f"{word} {repetition + 1}", known, self._left) if part)
        self._show(f"{variant} · {workload}", tail)

    def finished(self, trial: Trial, standing: Standing) -> None:
        if trial.status == "failed":
            self._console.print(Text(_failure(trial), style="red"))
        elif trial.kind == "quality":
            self._console.print(Text(_rated(trial), style="dim"))
        elif trial.sustained is not None:
            where = f"{trial.variant} · {trial.workload}"
            self._console.print(Text(f"{where}: {_sustained(trial)}", style="dim"))
        if trial.workload is not None and (figure := _figure(standing)):
            self._known[trial.variant, trial.workload] = figure
        if standing.time_left_s is not None:
            minutes, seconds = divmod(round(standing.time_left_s), 60)
            self._left = f"{minutes}:{seconds:02d} left"
            self._progress.update(
                self._task, completed=self._budget_s - standing.time_left_s, total=self._budget_s
            )

    def note(self, text: str) -> None:
        self._console.print(Text(text, style="dim"))

    def _show(self, description: str, tail: str) -> None:
        self._progress.update(self._task, description=description, tail=tail)


def _outlook(outlook: Outlook) -> str:
    low, high = outlook.min_repetitions, outlook.max_repetitions
    count = f"{low}" if low == high else f"{low} to {high}"
    cells = f"{outlook.cells} cell{'' if outlook.cells == 1 else 's'}"
    parts = [f"measuring {cells}, {count} repetitions each"] if outlook.cells else []
    if outlook.stretches:
        once = "once" if outlook.stretches == 1 else f"{outlook.stretches} times"
        work = f"sustained work {once}, {_duration(outlook.sustained_s)} in all"
        parts.append(f"then {work}" if parts else work)
    return f"{', '.join(parts)}, at most {_duration(outlook.time_budget_s)}"


def _failure(trial: Trial) -> str:
    assert trial.failure is not None
    where = f"{trial.variant} · {trial.workload}" if trial.workload else trial.variant
    return f"{where} failed: {trial.failure.message.splitlines()[0]}"


def _rated(trial: Trial) -> str:
    """A text that a variant rated."""
    known = trial.metrics.get("perplexity")
    value = known.value if known is not None else None
    figure = "" if value is None else f"perplexity {value:,.2f}, "
    count = len(trial.windows)
    return (
        f"{trial.variant} · {trial.workload}: {figure}{count} window{'' if count == 1 else 's'} "
        f"in {trial.duration_s:.1f} s"
    )


def _sustained(trial: Trial) -> str:
    """A stretch of sustained work."""
    found = (trial.metrics.get(key) for key in ("burst_rate", "sustained_rate"))
    burst, lasting = (
        "–" if each is None or each.value is None else _rate(each.value) for each in found
    )
    lasted_s = trial.sustained.lasted_s if trial.sustained else trial.duration_s
    return f"{burst} token/s at first, {lasting} at last, over {_duration(lasted_s)}"


def _figure(standing: Standing) -> str:
    """What a person watches for: the decode rate, or of a task its latency; empty without one."""
    if standing.task_latency_s is not None:
        return quantity(standing.task_latency_s, "s")
    return "" if standing.decode_rate is None else f"{_rate(standing.decode_rate)} token/s"


def _rate(value: float) -> str:
    """As in the tables: of a slow device's rate too, three digits."""
    return number(value, decimals_for(value))


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"at most {_duration(seconds)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _bytes(done: int, total: int | None) -> str:
    mib = 1024 * 1024
    return (
        f"{done / mib:.0f} MiB" if total is None else f"{done / mib:.0f} of {total / mib:.0f} MiB"
    )
