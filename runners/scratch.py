"""Folders for what a framework writes beside a model, as large as the model itself.

A process that is killed can't remove its folder, and the place is one that outlives a restart. So
each folder is locked by the process that made it. Whoever makes the next one, or kills such a
process, takes away those that nobody holds any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "edgebench-scratch-"
LOCK = "lock"
"""Beside what is in use, and held while it is."""

DISK = Path("/var/tmp")  # noqa: S108 - folders in it are made safely
"""Kept over a restart, so it is on a disk; `/tmp` often is memory."""


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on a disk, or in TMPDIR where that is set; removed at the end, or by the next one.

    Raises:
        OSError: none can be made.
    """
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix="edgebench-new-", dir=_place()))
    try:
        with _locked(folder / LOCK):
            # Only now may others look whether somebody holds it.
            folder = folder.rename(folder.with_name(PREFIX + folder.name.rpartition("-")[2]))
            inside = folder / "files"
            inside.mkdir()
            yield inside
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> None:
    """Take away the folders whose processes are gone."""
    for folder in _place().glob(PREFIX + "*"):
        # What can't be locked is held, somebody else's, or gone meanwhile.
        with contextlib.suppress(OSError), _locked(folder / LOCK):
            shutil.rmtree(folder, ignore_errors=True)


def _place() -> Path:
    if "TMPDIR" not in os.environ and DISK.is_dir():
        return DISK
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock, which the system gives back when the process ends, however it does.

    Raises:
        OSError: another process holds it, or the file can't be opened.
    """
    import fcntl  # noqa: PLC0415 - not on every system that this module is imported on

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
