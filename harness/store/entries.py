"""What is in the store, for people who look into it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.harness.store.records import Record, UnsoundError, read_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.harness.store.layout import Layout


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of ``edgebench models list``.

    Attributes:
        key: the hash of the request.
        request: the request: ``source``, or what was made from what.
        name: the file's name.
        path: where the file is.
        sha256: of its bytes.
        bytes: its size.
        made_by: the tool that made it, or that it is as published.
        note: what a reader must know.
        created_at: when it was stored; UTC, ISO 8601.
        last_used_at: when it was last asked for; UTC.
    """

    key: str
    request: Mapping[str, str]
    name: str
    path: Path
    sha256: str
    bytes: int
    made_by: str
    note: str | None
    created_at: str
    last_used_at: datetime


def list_entries(layout: Layout) -> list[Entry]:
    """What is in the store, the last used first. Damaged records are left out."""
    entries = []
    for path in sorted(layout.records.glob("*.json")):
        try:
            record = read_record(layout, path.stem)
            if record is not None:
                entries.append(_entry(layout, path, record))
        except (UnsoundError, FileNotFoundError):
            continue  # made again when it is needed; or pruned at this moment
    return sorted(entries, key=lambda entry: entry.last_used_at, reverse=True)


def _entry(layout: Layout, path: Path, record: Record) -> Entry:
    return Entry(
        key=path.stem,
        request=record.key,
        name=record.name,
        path=layout.content(record.sha256, record.name),
        sha256=record.sha256,
        bytes=record.bytes,
        made_by=record.made_by,
        note=record.note,
        created_at=record.created_at,
        last_used_at=datetime.fromtimestamp(path.stat().st_mtime, UTC),
    )
