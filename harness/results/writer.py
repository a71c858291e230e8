"""Writes a run's folder so that a kill at any moment leaves files that can be read."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from edgebench.harness.errors import OutputError
from edgebench.harness.results.run import RUN_FILE, TRIALS_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.results.trial import Trial

LOGS_FOLDER = "logs"


class RunWriter:
    """The files of one run.

    Args:
        folder: the run's folder; made where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / LOGS_FOLDER).mkdir(parents=True, exist_ok=True)
            self._trials = (folder / TRIALS_FILE).open("ab", buffering=0)
        except OSError as error:
            raise _cannot_write(folder, error) from error

    def append(self, trial: Trial) -> None:
        """Add one trial; it is on the disk when this returns."""
        line = trial.model_dump_json(exclude_none=False).encode() + b"\n"
        start = self._trials.seek(0, os.SEEK_END)
        try:
            view = memoryview(line)
            while view:
                view = view[self._trials.write(view) or 0 :]
            os.fsync(self._trials.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._trials.truncate(start)  # no half line before what a resumed run adds
            raise _cannot_write(self.folder / TRIALS_FILE, error) from error

    def save(self, record: RunRecord) -> None:
        """Replace ``run.json``."""
        write_atomically(self.folder / RUN_FILE, record.model_dump_json(indent=1).encode() + b"\n")

    def close(self) -> None:
        """Close the trials' file."""
        self._trials.close()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, and never a part.

    Raises:
        OutputError: it can't be written; the old file is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        # Where nothing can be written, nothing can be removed either.
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise _cannot_write(path, error) from error


def cut_half_line(folder: Path) -> None:
    """Remove the end of ``trials.jsonl`` that a kill left without its end of line."""
    path = folder / TRIALS_FILE
    if not path.exists():
        return
    with path.open("r+b") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)


def _cannot_write(path: Path, error: OSError) -> OutputError:
    if not os.path.lexists(path) and not os.path.lexists(path.parent):
        msg = f"results can't be written to {path}: {error.strerror or error}"
        return OutputError(msg, remedy="Name a folder that can be written to, by --out.")
    return OutputError(
        f"results can't be written to {path}: {error.strerror or error}",
        remedy="What was finished is kept. Make room on the disk, or the folder writable, and go "
        "on with `edgebench run --resume`; or write reports alone with `edgebench report`.",
    )
