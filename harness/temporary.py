"""Folders for small files that no killed process leaves behind for ever."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK: Final = "lock"
"""In each folder, held by its owner; the system lets go of it when the process ends, however."""

_NEW: Final = "edgebench-new-"


class TemporaryFolder:
    """An empty folder of this process, until `cleanup`.

    Whoever makes one also removes those of the same prefix whose owners are gone.

    Args:
        prefix: what its name begins with.

    Attributes:
        path: where it is.

    Raises:
        OSError: it can't be made.
    """

    def __init__(self, prefix: str) -> None:
        import fcntl  # noqa: PLC0415 - not on every system that this module is imported on

        remove_abandoned(prefix)
        folder = Path(tempfile.mkdtemp(prefix=_NEW))
        self._lock = (folder / LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Only now may others look whether somebody holds it.
        self.path = folder.rename(folder.with_name(prefix + folder.name.removeprefix(_NEW)))

    def cleanup(self) -> None:
        """Remove it with all that is in it; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def remove_abandoned(prefix: str) -> None:
    """Take away the folders of this user whose owners are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # What can't be locked is held, or gone meanwhile; what has no lock is not of this kind.
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with _locked(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[str]]:
    import fcntl  # noqa: PLC0415 - see above

    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file
