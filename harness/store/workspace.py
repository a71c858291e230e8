"""Locks against other processes, and folders to make things in."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from edgebench.harness.store.folders import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.store.layout import Layout
    from edgebench.harness.store.progress import Progress

# Held for the moment in which a file and its record are put in place or taken away.
COMMIT = "commit"

_CACHEDIR_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Models that edgebench can fetch or make again: backups may leave this folder out.\n"
)


@contextmanager
def locked(layout: Layout, key: str, what: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of `key`; the operating system frees it when its holder dies.

    Args:
        layout: the store.
        key: what is locked.
        what: what is about to be made, for the message to whoever has to wait.
        progress: told once where another process holds the lock.
    """
    lock = FileLock(_lock_path(layout, key))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"waiting for another edgebench process: {what}", 0, None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(layout: Layout, key: str) -> Iterator[bool]:
    """Hold the lock of `key` where nobody else does; yields whether it is held."""
    lock = FileLock(_lock_path(layout, key))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _lock_path(layout: Layout, key: str) -> Path:
    path = layout.lock(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def scratch(layout: Layout, key: str) -> Iterator[Path]:
    """A new folder in the store's file system, removed at the end. Needs the lock of `key`."""
    for abandoned in abandoned_scratch(layout, key):
        remove_tree(abandoned)
    layout.temporaries.mkdir(parents=True, exist_ok=True)
    tag = layout.root / "CACHEDIR.TAG"
    if not tag.exists():
        tag.write_text(_CACHEDIR_TAG, encoding="ascii")
    folder = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=layout.temporaries))
    try:
        yield folder
    finally:
        remove_tree(folder)


def abandoned_scratch(layout: Layout, key: str) -> list[Path]:
    """The scratch folders of `key`. Whoever holds its lock and has none knows them abandoned."""
    return sorted(layout.temporaries.glob(f"{key}-*"))


def put_in_place(made: Path, final: Path) -> None:
    """Move a finished file of the same file system to its name: whole or not at all."""
    final.parent.mkdir(parents=True, exist_ok=True)
    _sync(made)
    made.replace(final)
    _sync(final.parent)


def put_folder_in_place(made: Path, final: Path) -> None:
    """Move a finished folder to its name. What is there, which must be damaged, moves away first.

    No folder can be renamed over another one: for a moment there is none.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    for path in made.rglob("*"):
        _sync(path)
    _sync(made)
    if final.exists():
        final.chmod(final.stat().st_mode | stat.S_IRWXU)
        final.rename(made.parent / ".damaged")
    made.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
