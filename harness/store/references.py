"""What the reference said of texts, kept: ratings can be made again, but take minutes to make."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.harness.store.layout import key_id
from edgebench.harness.store.progress import silent
from edgebench.harness.store.space import storage_errors
from edgebench.harness.store.workspace import locked, put_in_place, scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from edgebench.harness.store.layout import Layout

SUFFIX = ".npz"


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """The ratings of one source's texts.

    Attributes:
        source_sha256: of the source.
        path: the folder that holds them.
        windows: pieces of texts that were rated.
        bytes: its size.
        last_used_at: when they were last asked for; UTC.
    """

    source_sha256: str
    path: Path
    windows: int
    bytes: int
    last_used_at: datetime


class KeptReference:
    """The folder of one source's ratings.

    Args:
        layout: the store.
        sha256: of the source.
        version: of what rates; ratings of others are another folder's.
    """

    def __init__(self, layout: Layout, sha256: str, version: int) -> None:
        self._layout = layout
        self._folder = layout.references / f"{sha256}-{version}"

    def path(self, name: str) -> Path:
        """Where the file `name` is, if there is one."""
        return self._folder / name

    def used(self) -> None:
        """Remember that it was asked for, so that it is not pruned."""
        with suppress(OSError):  # there is none yet, or on a read-only disk nothing is pruned
            os.utime(self._folder)

    def keep(self, files: Mapping[str, Callable[[Path], None]]) -> None:
        """Put files into it, each seen whole or not at all.

        Args:
            files: by name, what writes the file to the path that it is given.

        Raises:
            StoreError: the store can't be written to, or there is no space.
        """
        what = "keeping the reference's ratings"
        key = lock_key(self._folder)
        with (
            storage_errors(self._layout.root, what),
            locked(self._layout, key, what, silent),
            scratch(self._layout, key) as folder,
        ):
            for name, write in files.items():
                write(folder / name)
                put_in_place(folder / name, self._folder / name)


def lock_key(folder: Path) -> str:
    """What to lock while ratings are put into their folder or taken away."""
    return key_id({"reference": folder.name})


def source_sha256(folder: Path) -> str:
    """The source that a folder's ratings are of."""
    return folder.name.partition("-")[0]


def list_references(layout: Layout) -> list[ReferenceEntry]:
    """The ratings in the store, the last used first."""
    entries = []
    for folder in layout.references.glob("*"):
        with suppress(FileNotFoundError, NotADirectoryError):  # pruned at this moment
            sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
            entries.append(
                ReferenceEntry(
                    source_sha256=source_sha256(folder),
                    path=folder,
                    windows=sum(name.endswith(SUFFIX) for name in sizes),
                    bytes=sum(sizes.values()),
                    last_used_at=datetime.fromtimestamp(folder.stat().st_mtime, UTC),
                )
            )
    return sorted(entries, key=lambda entry: entry.last_used_at, reverse=True)
