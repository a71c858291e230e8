"""Taking models and ratings out of the store that nobody has used for a while."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.store.folders import remove_tree
from edgebench.harness.store.local import read_file_hash
from edgebench.harness.store.progress import silent
from edgebench.harness.store.records import Record, UnsoundError, read_record
from edgebench.harness.store.references import lock_key, source_sha256
from edgebench.harness.store.workspace import COMMIT, abandoned_scratch, locked, locked_if_free

if TYPE_CHECKING:
    from collections.abc import Collection

    from edgebench.harness.store.layout import Layout

_DAY_S = 86_400
_KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or with `dry_run` would be.

    Attributes:
        files: models, a model's ratings by the reference, cut-off downloads, what was left of
            killed processes, useless records.
        bytes: their size in all.
        in_use: what was left alone because another process is making or fetching it.
    """

    files: tuple[Path, ...]
    bytes: int
    in_use: tuple[str, ...]


@dataclass(slots=True)
class _Pruning:
    """One walk through the store."""

    layout: Layout
    oldest_s: float | None
    keep: frozenset[str]
    dry_run: bool
    files: list[Path] = field(default_factory=list)
    bytes: int = 0
    in_use: set[str] = field(default_factory=set)

    def remove(self, path: Path) -> None:
        """Count a file or folder, and take it away."""
        below = [path, *path.rglob("*")] if path.is_dir() else [path]
        self.bytes += sum(file.lstat().st_size for file in below if not file.is_dir())
        self.files.append(path)
        if self.dry_run:
            return
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink()

    def is_old(self, path: Path) -> bool:
        """Whether `path` was last used before the limit, where there is one."""
        return self.oldest_s is None or path.stat().st_mtime < self.oldest_s


def prune(
    layout: Layout, *, older_than_days: float | None, keep: Collection[str], dry_run: bool
) -> Pruned:
    """See `ModelStore.prune`."""
    oldest_s = None if older_than_days is None else time.time() - older_than_days * _DAY_S
    pruning = _Pruning(layout, oldest_s, frozenset(keep), dry_run)
    if any(each.is_dir() for each in (layout.records, layout.temporaries, layout.references)):
        dropped = _drop_records(pruning)
        _prune_contents(pruning, dropped)
        _prune_references(pruning)
        _prune_unfinished(pruning)
        _prune_hashes(pruning)
    return Pruned(tuple(pruning.files), pruning.bytes, tuple(sorted(pruning.in_use)))


def _drop_records(pruning: _Pruning) -> set[Path]:
    """Forget the records that are old, and those that are good for nothing; says which."""
    dropped: set[Path] = set()
    for path in _listing(pruning.layout.records):
        with locked_if_free(pruning.layout, path.stem) as held:
            if not held:
                pruning.in_use.add(_name(pruning.layout, path.stem))
                continue
            if not path.exists():  # another prune was faster
                continue
            record = _sound(pruning.layout, path.stem)
            if record is None or not pruning.layout.content(record.sha256, record.name).exists():
                pruning.remove(path)
                dropped.add(path)
            elif record.sha256 not in pruning.keep and pruning.is_old(path):
                dropped.add(path)
                if not pruning.dry_run:
                    path.unlink()
    return dropped


def _prune_contents(pruning: _Pruning, dropped: set[Path]) -> None:
    """Remove the models that no record speaks of (any more)."""
    layout = pruning.layout
    with locked(layout, COMMIT, "pruning", silent):
        wanted = set()
        for path in _listing(layout.records):
            # One that is there although it was dropped was made again just now.
            pretended = pruning.dry_run and path in dropped
            record = None if pretended else _sound(layout, path.stem)
            if record is not None:
                wanted.add(layout.content(record.sha256, record.name))
        for path in sorted(layout.files.glob("*/*/*")):
            if path in wanted:
                continue
            pruning.remove(path)
            for folder in (path.parent, path.parent.parent):
                if not any(folder.iterdir()):
                    folder.rmdir()


def _prune_references(pruning: _Pruning) -> None:
    """Remove the ratings of a model that are old, all together."""
    for folder in _listing(pruning.layout.references):
        if source_sha256(folder) in pruning.keep or not pruning.is_old(folder):
            continue
        with locked_if_free(pruning.layout, lock_key(folder)) as held:
            if not held:
                pruning.in_use.add(folder.name)
            elif folder.exists():  # else another prune was faster
                pruning.remove(folder)


def _prune_unfinished(pruning: _Pruning) -> None:
    """Remove what killed processes left behind, and downloads that nobody went on with."""
    layout = pruning.layout
    scratch = _listing(layout.temporaries)
    partials = _listing(layout.partials)
    for key in sorted({path.name[:_KEY_LENGTH] for path in [*scratch, *partials]}):
        with locked_if_free(layout, key) as held:
            if not held:
                pruning.in_use.add(_name(layout, key))
                continue
            for path in abandoned_scratch(layout, key):
                pruning.remove(path)
            for path in sorted(layout.partials.glob(f"{key}-*")):
                if pruning.is_old(path):
                    pruning.remove(path)


def _prune_hashes(pruning: _Pruning) -> None:
    """Forget the hashes of users' files that are gone, or that are old. They are not counted."""
    for path in _listing(pruning.layout.hashes):
        known = read_file_hash(path)
        gone = known is None or not Path(known.path).exists()
        if (gone or pruning.is_old(path)) and not pruning.dry_run:
            path.unlink(missing_ok=True)


def _listing(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _sound(layout: Layout, key: str) -> Record | None:
    try:
        return read_record(layout, key)
    except UnsoundError:
        return None


def _name(layout: Layout, key: str) -> str:
    record = _sound(layout, key)
    return key if record is None else record.name
