"""Users' own files and folders: used where they are, hashed once."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from edgebench.harness.errors import ModelError
from edgebench.harness.store.folders import folder_sha256, own_files
from edgebench.harness.store.hashing import sha256_file
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.records import Sha256  # noqa: TC001  # pydantic reads it
from edgebench.harness.store.workspace import locked, put_in_place, scratch

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from edgebench.harness.store.layout import Layout
    from edgebench.harness.store.progress import Progress

# A file that was written within its file system's resolution of time after it was hashed looks
# unchanged. Only a file that has been left alone for longer is remembered.
_SETTLED_NS = 2_000_000_000


class FileHash(BaseModel):
    """The SHA-256 of a file, as long as the other fields are those of the file."""

    model_config = ConfigDict(frozen=True, extra="allow")

    path: str
    bytes: int
    mtime_ns: int
    inode: int
    sha256: Sha256


def check_path(path: Path) -> Path:
    """The absolute path of a file or folder that a model can be read from.

    Raises:
        ModelError: there is none, or it is neither.
    """
    path = path.absolute()
    try:
        if path.is_dir():
            return path
        if not path.exists():
            msg = f"there is no model file or folder {path}"
            raise ModelError(
                msg, remedy="A relative path: is relative to the folder of the scenario's file."
            )
        if not path.is_file():
            msg = f"the model {path} is not a regular file"
            raise ModelError(msg)
    except OSError as error:
        msg = f"the model {path} can't be read: {error.strerror}"
        raise ModelError(msg) from error
    return path


def hash_folder(layout: Layout, folder: Path, progress: Progress) -> tuple[str, int]:
    """The hash of a folder's list of files, and their size in bytes; hidden files do not count.

    Raises:
        ModelError: a file can't be read, or there is none.
    """
    try:
        names = own_files(folder)
    except OSError as error:
        msg = f"the model's folder {folder} can't be read: {error.strerror}"
        raise ModelError(msg) from error
    files = [
        _FolderFile(name, known.bytes, known.sha256)
        for name in names
        for known in (hash_file(layout, folder / name, progress),)
    ]
    return folder_sha256(files), sum(file.bytes for file in files)


@dataclass(frozen=True, slots=True)
class _FolderFile:
    """A `HashedFile`."""

    path: str
    bytes: int
    sha256: str


def hash_file(layout: Layout, path: Path, progress: Progress) -> FileHash:
    """The SHA-256 of `path`, from memory where the file is the same as the last time.

    Raises:
        ModelError: the file can't be read, or changes while it is read.
    """
    key = key_id({"path": str(path)})
    remembered = read_file_hash(layout.file_hash(key))
    try:
        before = path.stat()
        if remembered and _describes(remembered, path, before):
            with suppress(OSError):  # a store that can't be written to is good enough for reading
                layout.file_hash(key).touch()
            return remembered
        sha256 = sha256_file(path, f"checking {path.name}", progress)
        after = path.stat()
    except OSError as error:
        msg = f"the model {path} can't be read: {error.strerror}"
        raise ModelError(msg) from error
    made = FileHash(
        path=str(path),
        bytes=before.st_size,
        mtime_ns=before.st_mtime_ns,
        inode=before.st_ino,
        sha256=sha256,
    )
    if not _describes(made, path, after):
        msg = f"the model {path} changed while it was read"
        raise ModelError(msg, remedy="Wait until whatever writes it is done.")
    if time.time_ns() - after.st_mtime_ns > _SETTLED_NS:
        with suppress(OSError):  # a hash that can't be kept costs time the next time, no more
            _remember(layout, key, made, progress)
    return made


def read_file_hash(path: Path) -> FileHash | None:
    """What is remembered in the file `path`, or None where that is nothing usable."""
    try:
        return FileHash.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None  # hashing the file again puts it right


def _describes(known: FileHash, path: Path, found: os.stat_result) -> bool:
    return (known.path, known.bytes, known.mtime_ns, known.inode) == (
        str(path),
        found.st_size,
        found.st_mtime_ns,
        found.st_ino,
    )


def _remember(layout: Layout, key: str, made: FileHash, progress: Progress) -> None:
    with locked(layout, key, "checking a file", progress), scratch(layout, key) as folder:
        temporary = folder / "hash.json"
        temporary.write_text(made.model_dump_json(indent=2) + "\n", encoding="utf-8")
        put_in_place(temporary, layout.file_hash(key))
