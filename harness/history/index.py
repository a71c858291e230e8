"""All results below a folder, in an SQLite file that can always be made again from them.

Nothing is only here: what is asked for first brings the index up to date with the runs' records,
by their time and size. It lies in ``.edgebench`` in the folder of the results; where that can't be
written, in the user's cache; where that can't either, in memory.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edgebench.harness.errors import ResultError
from edgebench.harness.history import tables
from edgebench.harness.history.apart import told_apart
from edgebench.harness.history.packed import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from edgebench.harness.history.model import Selection, Series

FOLDER = ".edgebench"
FILE = "history.sqlite"
RUN_FILE = "run.json"
"""As in `edgebench.harness.results.run`, which takes long to import where nothing need be read."""

IN_MEMORY = ":memory:"
WAIT_S = 60.0
"""How long one process waits for another one that brings the index up to date."""

DEEPEST = 6
"""Folders below that of the results in which runs are looked for."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index holds.

    Attributes:
        runs: that are in series.
        left_out: how many are not, by why: quick looks and the like.
        skipped: what could not be read.
        notes: what happened to the index, a sentence each.
    """

    runs: int
    left_out: dict[str, int]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]


class Index:
    """The index of a folder of results; a context manager.

    Args:
        results: the folder.
        rebuild: make it anew, whatever there is.

    Raises:
        ResultError: there is no such folder.
    """

    def __init__(self, results: Path, *, rebuild: bool = False) -> None:
        if not results.is_dir():
            msg = f"{results} is not a folder of results."
            raise ResultError(
                msg, remedy="Name the folder that `edgebench run` writes to: its --out, or results."
            )
        self.results = results
        self.notes: list[str] = []
        self.place = IN_MEMORY
        self._connection = self._opened(rebuild=rebuild)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def update(self) -> Contents:
        """Take in what is new, drop what is gone, and say what there is."""
        try:
            self._update()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not _damaged(error):
                self._in_memory(str(error))
            else:
                self._again()
            self._update()
        counts = tables.counts(self._connection)
        skipped = tuple(Skipped(*each) for each in tables.skipped(self._connection))
        runs = counts.pop("", 0)
        return Contents(runs, counts, skipped, tuple(self.notes))

    def series(self, selection: Selection) -> tuple[Series, ...]:
        """The series that are selected, those without a run left out, in the order of their names.

        Each has its runs oldest first, and says what tells it from others of its names.
        """
        return told_apart(tables.series(self._connection, selection))

    def metrics(self) -> tuple[str, ...]:
        """The keys of all metrics that any series is of."""
        return tables.metrics(self._connection)

    def _update(self) -> None:
        there = dict(run_files(self.results))
        known = tables.known(self._connection)
        if there == known:
            return
        # Whoever waited for another process finds its work done.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            known = tables.known(self._connection)
            tables.drop(
                self._connection, [path for path in known if known[path] != there.get(path)]
            )
            numbers = tables.subjects(self._connection)
            writer = Writer(self._connection)
            for path, stamp in there.items():
                if known.get(path) != stamp:
                    tables.take(self._connection, self.results, path, stamp, numbers, writer)
            writer.flush()
            tables.sweep(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _opened(self, *, rebuild: bool) -> sqlite3.Connection:
        for file in (self.results / FOLDER / FILE, _in_cache(self.results)):
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                if file.parent.name == FOLDER:
                    _ignored(file.parent)
                if rebuild:
                    _remove(file)
                connection = _connected(file)
            except (OSError, sqlite3.OperationalError) as error:
                if not isinstance(error, sqlite3.OperationalError) or not _damaged(error):
                    continue  # Not ours to write.
                connection = self._anew(file)
            except sqlite3.DatabaseError:
                connection = self._anew(file)
            self.place = str(file)
            return connection
        return _connected(IN_MEMORY)

    def _anew(self, file: Path) -> sqlite3.Connection:
        self.notes.append("The index of the results was damaged, and was made again.")
        _remove(file)
        return _connected(file)

    def _again(self) -> None:
        self._connection.close()
        self._connection = self._anew(Path(self.place))

    def _in_memory(self, why: str) -> None:
        """A disk that is full, or a lock that is never given back, is no reason to say nothing."""
        self._connection.close()
        self.notes.append(f"The index could not be written ({why}); it was made in memory.")
        self.place = IN_MEMORY
        self._connection = _connected(IN_MEMORY)


def run_files(results: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """The folders of all runs below one, relative to it, with the time and size of each record.

    Hidden folders and symbolic links are not looked into, nor is anything inside of a run.
    """
    waiting = [(str(results), "", 0)]
    while waiting:
        folder, name, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        record = next((each for each in found if each.name == RUN_FILE), None)
        if record is not None:
            with suppress(OSError):
                stat = record.stat()
                yield name or ".", (stat.st_mtime_ns, stat.st_size)
            continue
        if depth < DEEPEST:
            waiting += [
                (each.path, f"{name}/{each.name}" if name else each.name, depth + 1)
                for each in found
                if not each.name.startswith(".") and each.is_dir(follow_symlinks=False)
            ]


def _connected(file: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT_S, isolation_level=None)
    try:
        if file != IN_MEMORY:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")  # It can always be made again.
        connection.execute("PRAGMA cache_size = -65536")
        tables.create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _in_cache(results: Path) -> Path:
    from edgebench.harness.store.layout import cache_root  # noqa: PLC0415 - rarely needed

    name = hashlib.sha256(str(results.resolve()).encode()).hexdigest()[:16]
    return cache_root() / "history" / name / FILE


def _ignored(folder: Path) -> None:
    """Results may be kept in git, and an index had better not."""
    file = folder / ".gitignore"
    if not file.exists():
        with suppress(OSError):
            file.write_text("*\n", encoding="utf-8")


def _damaged(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _remove(file: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
