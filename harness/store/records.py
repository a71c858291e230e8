"""The store's records: what each request gave, a file or a folder, and what made it."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from edgebench import __version__
from edgebench.harness.errors import ModelError
from edgebench.harness.store.folders import folder_sha256, made_files, make_read_only
from edgebench.harness.store.hashing import sha256_file
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.workspace import COMMIT, locked, put_folder_in_place, put_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from edgebench.harness.store.layout import Layout
    from edgebench.harness.store.progress import Progress


def plain_name(name: str) -> str:
    """`name`, which must name a file of one folder and lead nowhere else.

    Raises:
        ValueError: it does not.
    """
    if name in {"", ".", ".."} or "/" in name or "\x00" in name:
        msg = f"not a file name: {name!r}"
        raise ValueError(msg)
    return name


def inner_path(path: str) -> str:
    """`path`, which must lead to a file below the folder that it is relative to.

    Raises:
        ValueError: it does not.
    """
    for part in path.split("/"):
        plain_name(part)
    return path


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, AfterValidator(plain_name)]

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class RecordedFile(BaseModel):
    """One file of a stored folder."""

    model_config = ConfigDict(frozen=True, extra="allow")

    path: Annotated[str, AfterValidator(inner_path)]
    bytes: int = Field(ge=0)
    mtime_ns: int
    sha256: Sha256


class Record(BaseModel):
    """What one request gave. When it was last used is the time stamp of the record's own file."""

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = 1
    key: dict[str, str] = Field(description="The request: a source, or what to make from what.")
    name: FileName
    sha256: Sha256
    bytes: int = Field(ge=0)
    mtime_ns: int = Field(
        description="Of the file when it was stored, of a folder its last file; another one is "
        "re-hashed."
    )
    files: tuple[RecordedFile, ...] | None = Field(
        default=None, description="What a folder holds; None of a file."
    )
    made_by: str
    note: str | None = None
    revision: str | None = Field(default=None, description="The hub's commit, for a hub's file.")
    created_at: str = Field(description="UTC, ISO 8601.")
    edgebench_version: str = __version__


class UnsoundError(Exception):
    """A record can't be taken at its word.

    Args:
        reason: what is wrong with it.
        record: the record, where its file is there with the right length and may still be whole.
    """

    def __init__(self, reason: str, record: Record | None = None) -> None:
        super().__init__(reason)
        self.record = record


def read_record(layout: Layout, key: str) -> Record | None:
    """The record of `key`, or None where there is none.

    Raises:
        UnsoundError: there is one that says nothing usable.
    """
    try:
        text = layout.record(key).read_bytes()
    except FileNotFoundError:
        return None
    try:
        record = Record.model_validate_json(text)
    except ValidationError as error:
        msg = f"its record is damaged ({error.error_count()} faults)"
        raise UnsoundError(msg) from error
    if key_id(record.key) != key:
        msg = "its record is that of another file"
        raise UnsoundError(msg)
    return record


def find(layout: Layout, key: str) -> Record | None:
    """The record of `key` whose file is as it was when it was stored, or None without a record.

    Raises:
        UnsoundError: the record is damaged, or its file is gone or was touched.
    """
    record = read_record(layout, key)
    if record is None:
        return None
    path = layout.content(record.sha256, record.name)
    if record.files is None:
        changed = _check_file(path, "its file", record.bytes, record.mtime_ns)
    else:
        changed = _check_folder(path, record.files)
    if changed:
        raise UnsoundError(changed, record)
    return record


def _check_file(path: Path, what: str, size: int, mtime_ns: int) -> str | None:
    """What may be wrong with a stored file that has its length still.

    Raises:
        UnsoundError: it is not what was stored in any case.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        msg = f"{what} is gone"
        raise UnsoundError(msg) from error
    if not stat.S_ISREG(found.st_mode):
        msg = f"{what} is a folder"
        raise UnsoundError(msg)
    if found.st_size != size:
        msg = f"{what} has {found.st_size} bytes instead of {size}"
        raise UnsoundError(msg)
    return f"{what} was changed" if found.st_mtime_ns != mtime_ns else None


def _check_folder(folder: Path, files: Sequence[RecordedFile]) -> str | None:
    """The same for a stored folder. A file more may change what a framework does with it."""
    changed = None
    for file in files:
        what = f"its file {file.path}"
        changed = _check_file(folder / file.path, what, file.bytes, file.mtime_ns) or changed
    strange = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    } - {file.path for file in files}
    if strange:
        msg = f"{min(strange)} was added to it"
        raise UnsoundError(msg)
    return changed


def hash_folder(folder: Path, what: str, progress: Progress) -> tuple[RecordedFile, ...]:
    """Every file of a folder that a tool made, with its hash.

    Raises:
        ModelError: the folder holds something else than files.
    """
    return tuple(
        RecordedFile(
            path=name,
            bytes=(folder / name).stat().st_size,
            mtime_ns=(folder / name).stat().st_mtime_ns,
            sha256=sha256_file(folder / name, f"{what}/{name}", progress),
        )
        for name in made_files(folder)
    )


def rehashed(layout: Layout, record: Record, progress: Progress) -> Record | None:
    """`record` with the times of its file or files, if their bytes are still the stored ones."""
    path = layout.content(record.sha256, record.name)
    what = f"checking {record.name}"
    if record.files is None:
        if sha256_file(path, what, progress) != record.sha256:
            return None
        return record.model_copy(update={"mtime_ns": path.stat().st_mtime_ns})
    try:
        files = hash_folder(path, what, progress)
    except ModelError:  # what was a file is a link by now
        return None
    if folder_sha256(files) != record.sha256:
        return None
    return record.model_copy(update={"files": files, "mtime_ns": _latest(files)})


def _latest(files: Sequence[RecordedFile]) -> int:
    return max((file.mtime_ns for file in files), default=0)


def commit(
    layout: Layout,
    key: dict[str, str],
    made: Path,
    *,
    sha256: str,
    files: tuple[RecordedFile, ...] | None = None,
    made_by: str,
    note: str | None = None,
    revision: str | None = None,
    progress: Progress,
) -> Record:
    """Put a finished file or folder and its record in place.

    Args:
        layout: the store.
        key: the request; its lock is held.
        made: the file or folder, in a scratch folder of its own; its name is kept.
        sha256: of its bytes, or of the folder's list of files.
        files: what the folder holds; None of a file.
        made_by: what made it.
        note: what a reader must know.
        revision: the hub's commit.
        progress: told where another process is in the way.
    """
    # A framework that rewrote its model would make the file's hash a lie.
    if files is None:
        made.chmod(made.stat().st_mode & ~_WRITABLE)
        size, mtime_ns = made.stat().st_size, made.stat().st_mtime_ns
    else:
        make_read_only(made)
        size, mtime_ns = sum(file.bytes for file in files), _latest(files)
    record = Record(
        key=key,
        name=made.name,
        sha256=sha256,
        bytes=size,
        mtime_ns=mtime_ns,
        files=files,
        made_by=made_by,
        note=note,
        revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    final = layout.content(sha256, made.name)
    with locked(layout, COMMIT, made.name, progress):
        # The file first: a record never names a file that was not there.
        if files is None:
            put_in_place(made, final)
        elif kept := _whole(layout, record, progress):
            # Another request gave the same, and some process may be reading it.
            record = kept
        else:
            put_folder_in_place(made, final)
            final.chmod(final.stat().st_mode & ~_WRITABLE)
        write_record(layout, record, made.parent)
    return record


def _whole(layout: Layout, record: Record, progress: Progress) -> Record | None:
    """`record` with the times of the folder that is there already, where that is whole."""
    try:
        return rehashed(layout, record, progress)
    except OSError:  # none there
        return None


def write_record(layout: Layout, record: Record, folder: Path) -> None:
    """Put `record` in place by way of the scratch folder `folder`."""
    temporary = folder / ".record.json"
    temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    put_in_place(temporary, layout.record(key_id(record.key)))
