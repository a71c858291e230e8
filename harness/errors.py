"""Every failure that a user may see: what happened, where, and what to do.

Each class carries the exit status of the command line. Only the command line prints and exits.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitStatus(IntEnum):
    """What the command line returns to its caller."""

    DONE = 0
    REGRESSION = 1
    USAGE = 2
    SOME_CELLS_FAILED = 3
    NOTHING_RAN = 4
    NOT_COMPARABLE = 5
    INTERNAL = 70
    INTERRUPTED = 130


class EdgebenchError(Exception):
    """A failure with a message meant for a person.

    Args:
        message: what happened and where, one sentence.
        remedy: what to do about it, or nothing where there is nothing to do.
    """

    exit_status: ClassVar[ExitStatus] = ExitStatus.NOTHING_RAN

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class UsageError(EdgebenchError):
    """The command line is wrong."""

    exit_status = ExitStatus.USAGE


class ScenarioError(UsageError):
    """The scenario is wrong; the message holds every problem, one a line."""


class TreeError(UsageError):
    """A decision tree is wrong; the message holds every problem, one a line."""


class PolicyError(UsageError):
    """A gate's policy is wrong; the message holds every problem, one a line."""


class ProfileError(UsageError):
    """There is no such device profile, or it is wrong; each problem is a line of the message."""


class NotComparableError(EdgebenchError):
    """Results can't be compared: another machine, another model, another workload by that name."""

    exit_status = ExitStatus.NOT_COMPARABLE


class BaselineError(NotComparableError):
    """There is no baseline for this, or it can't be read."""


class ResultError(EdgebenchError):
    """A run's folder can't be read or written."""

    exit_status = ExitStatus.USAGE


class OutputError(EdgebenchError):
    """Results can't be written; what was written before is kept."""


class ModelError(EdgebenchError):
    """A model can't be had, or is not what the scenario says."""


class StoreError(EdgebenchError):
    """The model store can't be written (no space, no permission, broken record)."""


class RunnerError(EdgebenchError):
    """A runner's process failed; see the subclasses."""

    kind: ClassVar[str] = "error"


class RunnerUnavailableError(RunnerError):
    """The framework is not installed, or its interpreter can't be started."""

    kind = "unavailable"


class RunnerCrashedError(RunnerError):
    """The runner's process ended by itself.

    Args:
        message: what it was doing.
        signal: the name of the signal that ended it, such as ``SIGSEGV``, or None.
        exit_code: its exit code where it was not a signal.
        log_tail: the last lines of its log.
    """

    kind = "crash"

    def __init__(
        self,
        message: str,
        *,
        signal: str | None = None,
        exit_code: int | None = None,
        log_tail: str = "",
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.signal = signal
        self.exit_code = exit_code
        self.log_tail = log_tail


class RunnerTimeoutError(RunnerError):
    """The runner did not answer before its deadline and was stopped."""

    kind = "timeout"


class RunnerProtocolError(RunnerError):
    """The runner answered with something that is not the protocol."""

    kind = "protocol"


class RunnerRefusedError(RunnerError):
    """The runner answered that it can't do what was asked.

    Args:
        message: the runner's own words.
        reason: a short name: ``unsupported``, ``invalid``, ``unavailable``, ``out_of_memory``,
            ``framework`` or ``internal``.
    """

    kind = "refused"

    def __init__(self, message: str, *, reason: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class BoardError(RunnerError):
    """A board can't be used; see the subclasses."""

    kind = "board"


class BoardLinkError(BoardError):
    """A board does not answer, or the link to it broke; another try may succeed."""

    kind = "connection"


class BoardAccessError(BoardError):
    """A board answers and does not let us in, or is not the one that we know."""


class BoardUnfitError(BoardError):
    """A board lacks what a run needs: a Python, space, a folder that can be written to."""


class InvalidResultError(RunnerError):
    """The runner's answer is well-formed but can't be true (wrong count, time going back)."""

    kind = "invalid_result"
