"""A watch of a runner's process on a board: the monitor is there, what it saw comes here."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, Self

from edgebench.devices.reading import Reading
from edgebench.devices.window import Window
from edgebench.harness.errors import RunnerError
from edgebench.harness.ssh import parsed

if TYPE_CHECKING:
    from types import TracebackType

    from edgebench.devices.power import PowerSettings


class Ask(Protocol):
    """Asks a board's agent."""

    def __call__(self, method: str, params: dict[str, object], /) -> object:
        """The answer."""


class RemoteWatch:
    """Watches from the board's agent, over a connection that is not the runner's.

    A link that breaks is no error once the watch has begun: where it was the runner's as well, its
    answer will be missing, and that is told as a failure of what was measured. What a window can't
    tell is missing, with that reason; the next one is watched again.

    Args:
        ask: asks the agent; raises a `RunnerError` where that is not possible.
        pid: the runner's process there.
        power: which meters to use there.
    """

    def __init__(self, ask: Ask, pid: int, power: PowerSettings) -> None:
        self._ask = ask
        self._pid = pid
        self._power = power
        self._lost: str | None = None

    def __enter__(self) -> Self:
        self._watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lost is None:
            with contextlib.suppress(RunnerError):
                self._ask("board.unwatch", {})

    def begin(self) -> None:
        """Open a window there."""
        if self._lost is None:
            try:
                self._begin()
            except RunnerError as error:
                self._lose(error)
            else:
                return
        with contextlib.suppress(RunnerError):  # why it was lost is known
            self._watch()
            self._begin()

    def end(self) -> Window:
        """Close it, and fetch it."""
        if self._lost is not None:
            return nothing_seen(self._lost)
        try:
            return parsed.window(self._ask("board.end", {}))
        except RunnerError as error:
            return nothing_seen(self._lose(error))

    def current_rss(self) -> Reading:
        """The process tree's resident memory now, in bytes."""
        if self._lost is not None:
            return Reading.missing(self._lost)
        try:
            return parsed.reading(self._ask("board.current_rss", {}))
        except RunnerError as error:
            return Reading.missing(self._lose(error))

    def _watch(self) -> None:
        self._ask("board.watch", {"pid": self._pid, "power": asdict(self._power)})
        self._lost = None

    def _begin(self) -> None:
        self._ask("board.begin", {})

    def _lose(self, error: RunnerError) -> str:
        self._lost = f"the board can't be asked: {error.message}"
        return self._lost


def nothing_seen(why: str) -> Window:
    """A window of which nothing is known."""
    missing = Reading.missing(why)
    return Window(
        begin_ns=0,
        end_ns=0,
        samples=(),
        peak_rss=missing,
        peak_anon=missing,
        peak_file=missing,
        peak_shared=missing,
        pss=missing,
        cpu_time=missing,
        minor_faults=missing,
        major_faults=missing,
        voluntary_switches=missing,
        involuntary_switches=missing,
        others=missing,
        clock=missing,
        temperature=missing,
        energy=(),
        energy_reason=why,
    )
