"""Disk space, checked before writing, and one error for every way in which a disk refuses."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgebench.harness.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_KIB = 1024


def human_bytes(count: int) -> str:
    """`count` bytes for a person: ``93.8 MiB``."""
    if count < _KIB:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= _KIB
        # 1023.95 would be printed as 1024.0, which the next unit says better.
        if size < _KIB - 0.05:
            return f"{size:.1f} {unit}"
    return f"{size / _KIB:.1f} TiB"


def free_bytes(folder: Path) -> int:
    """What this user may still write to the file system of `folder`, which need not exist yet."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free


def is_full(error: OSError) -> bool:
    """Whether `error` says that the disk, or the user's share of it, is full."""
    return error.errno in _FULL


def no_space(root: Path, what: str, needed_bytes: int | None = None) -> StoreError:
    """The error for a disk that is full, or that would be."""
    needs = "more space" if needed_bytes is None else human_bytes(needed_bytes)
    return StoreError(
        f"not enough disk space: {what} needs {needs}, "
        f"and {human_bytes(free_bytes(root))} are free at {root}",
        remedy="Free some with `edgebench models prune`, "
        "or name a folder on a larger disk in EDGEBENCH_CACHE.",
    )


def require_space(root: Path, what: str, needed_bytes: int) -> None:
    """Check that `needed_bytes` fit, before any is written.

    Raises:
        StoreError: they don't; says how much is needed and free, where, and what to do.
    """
    if free_bytes(root) < needed_bytes:
        raise no_space(root, what, needed_bytes)


@contextmanager
def storage_errors(root: Path, what: str, needed_bytes: int | None = None) -> Iterator[None]:
    """Turn what the operating system says about the store's files into a `StoreError`."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise no_space(root, what, needed_bytes) from error
        remedy = None
        if error.errno in _FORBIDDEN:
            remedy = (
                "Make the folder writable, or name one that is in the variable EDGEBENCH_CACHE."
            )
        msg = f"the model store at {root} can't be used for {what}: {error}"
        raise StoreError(msg, remedy=remedy) from error
