"""The store's records: what each request gave, and what made it."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from edgebench import __version__
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.workspace import COMMIT, locked, put_in_place

if TYPE_CHECKING:
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


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, AfterValidator(plain_name)]

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Record(BaseModel):
    """What one request gave. When it was last used is the time stamp of the record's own file."""

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = 1
    key: dict[str, str] = Field(description="The request: a source, or what to make from what.")
    name: FileName
    sha256: Sha256
    bytes: int = Field(ge=0)
    mtime_ns: int = Field(description="Of the file when it was stored; another one is re-hashed.")
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
    try:
        found = layout.content(record.sha256, record.name).stat()
    except FileNotFoundError as error:
        msg = "its file is gone"
        raise UnsoundError(msg) from error
    if found.st_size != record.bytes:
        msg = f"its file has {found.st_size} bytes instead of {record.bytes}"
        raise UnsoundError(msg)
    if found.st_mtime_ns != record.mtime_ns:
        msg = "its file was changed"
        raise UnsoundError(msg, record)
    return record


def commit(
    layout: Layout,
    key: dict[str, str],
    made: Path,
    *,
    sha256: str,
    made_by: str,
    note: str | None = None,
    revision: str | None = None,
    progress: Progress,
) -> Record:
    """Put a finished file and its record in place.

    Args:
        layout: the store.
        key: the request; its lock is held.
        made: the file, in a scratch folder of its own; its name is kept.
        sha256: of its bytes.
        made_by: what made it.
        note: what a reader must know.
        revision: the hub's commit.
        progress: told where another process is in the way.
    """
    # A framework that rewrote its model would make the file's hash a lie.
    made.chmod(made.stat().st_mode & ~_WRITABLE)
    found = made.stat()
    record = Record(
        key=key,
        name=made.name,
        sha256=sha256,
        bytes=found.st_size,
        mtime_ns=found.st_mtime_ns,
        made_by=made_by,
        note=note,
        revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with locked(layout, COMMIT, made.name, progress):
        # The file first: a record never names a file that was not there.
        put_in_place(made, layout.content(sha256, made.name))
        write_record(layout, record, made.parent)
    return record


def write_record(layout: Layout, record: Record, folder: Path) -> None:
    """Put `record` in place by way of the scratch folder `folder`."""
    temporary = folder / ".record.json"
    temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    put_in_place(temporary, layout.record(key_id(record.key)))
