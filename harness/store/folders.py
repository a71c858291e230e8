"""Models that are folders: which files belong to them, and one hash for all of these."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from edgebench.harness.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_FILES = 2000
"""A folder with more is no model: somebody's home, or the scenario's own folder, was named."""

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class HashedFile(Protocol):
    """A file of a folder."""

    @property
    def path(self) -> str:
        """Relative to the folder, with ``/``."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def sha256(self) -> str:
        """Of its bytes, in hexadecimal."""


def folder_sha256(files: Iterable[HashedFile]) -> str:
    """One hash for a folder: the SHA-256 of the list of its files.

    The list has a line ``SHA256 SIZE PATH``, ended by a line feed, for each file, in the order of
    the bytes of the paths; names are UTF-8.
    """
    lines = sorted((file.path.encode(), file.sha256, file.bytes) for file in files)
    digest = hashlib.sha256()
    for path, sha256, size in lines:
        digest.update(f"{sha256} {size} ".encode() + path + b"\n")
    return digest.hexdigest()


def own_files(folder: Path) -> list[str]:
    """The files of a user's folder, relative to it; hidden ones belong to other tools.

    Links to files are followed: Hugging Face's own cache is made of them.

    Raises:
        ModelError: there is none, or something in it can't be read as a file.
    """
    names = []
    for path in _walk(folder, hidden=False):
        relative = path.relative_to(folder).as_posix()
        fault = _fault(path)
        if fault:
            msg = f"the model's folder {folder} holds {relative!r}, which {fault}"
            raise ModelError(msg, remedy="Name a folder that holds the model's files only.")
        names.append(relative)
        if len(names) > MOST_FILES:
            msg = f"the folder {folder} holds more than {MOST_FILES} files, which no model does"
            raise ModelError(msg, remedy="Name the folder of the model itself.")
    if not names:
        msg = f"the model's folder {folder} holds no file"
        raise ModelError(msg)
    return names


def made_files(folder: Path) -> list[str]:
    """The files of a folder that a tool made, relative to it; none where it holds none.

    Raises:
        ModelError: it holds anything else than files, such as a link, which may lead elsewhere.
    """
    names = []
    for path in _walk(folder, hidden=True):
        relative = path.relative_to(folder).as_posix()
        fault = "is a link" if path.is_symlink() else _fault(path)
        if fault:
            msg = f"{folder.name} can't be stored: its {relative!r} {fault}"
            raise ModelError(msg)
        names.append(relative)
    return names


def make_read_only(folder: Path) -> None:
    """Take the right to write from all that is below `folder`, but not from itself.

    A folder that nobody may write to could not be moved any more.
    """
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & ~_WRITABLE)


def remove_tree(folder: Path) -> None:
    """Remove a folder, read-only ones below it too."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IRWXU)
    shutil.rmtree(folder)


def _walk(folder: Path, *, hidden: bool) -> Iterator[Path]:
    """All that is below `folder` but its folders; links to folders are not followed."""
    for root, folders, names in os.walk(folder, onerror=_raise):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if Path(root, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links))
        for name in sorted([*names, *links]):
            if hidden or not name.startswith("."):
                yield Path(root, name)


def _raise(error: OSError) -> None:
    raise error


def _fault(path: Path) -> str | None:
    """Why `path` can't be a file of a model, or None."""
    if not path.name.isprintable():
        return "has a name that can't be written down"
    if not path.exists():
        return "is a link that leads nowhere"
    if path.is_dir():
        return "is a link to a folder"
    return None if path.is_file() else "is not a regular file"
