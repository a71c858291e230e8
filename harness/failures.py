"""Turns an error into the record that a reader of the results sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.errors import (
    EdgebenchError,
    RunnerCrashedError,
    RunnerError,
    RunnerRefusedError,
)
from edgebench.harness.results.measured import Failure

if TYPE_CHECKING:
    from pathlib import Path


def failure_of(error: EdgebenchError, *, log: Path | None = None, log_tail: str = "") -> Failure:
    """The record of `error`.

    Args:
        error: what happened.
        log: the runner's log, relative to the run's folder.
        log_tail: the log's end.
    """
    kind = "model"
    if isinstance(error, RunnerRefusedError):
        kind = error.reason
    elif isinstance(error, RunnerError):
        kind = error.kind
    crash = error if isinstance(error, RunnerCrashedError) else None
    return Failure(
        kind=kind,
        message=f"{error.message}. {error.remedy}" if error.remedy else error.message,
        signal=crash.signal if crash else None,
        exit_code=crash.exit_code if crash else None,
        log=log.as_posix() if log else None,
        log_tail=(crash.log_tail if crash else "") or log_tail,
    )
