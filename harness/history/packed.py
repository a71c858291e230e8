"""The figures of series in the index, packed: those of many runs are one row of a table.

A row takes as long to read as a hundred packed figures, and a history has a million of them.
"""

from __future__ import annotations

import struct
from itertools import chain, groupby
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

RUNS = 128
"""Successive numbers of runs whose figures are packed together, for each series."""

TABLE = """
CREATE TABLE points (
    number INTEGER PRIMARY KEY, subject INTEGER, part INTEGER, packed BLOB, UNIQUE (subject, part)
);
CREATE INDEX points_of_part ON points (part);
"""

_ONE = "idddii"
_SIZE = struct.calcsize("<" + _ONE)


class Figures(NamedTuple):
    """One run of one series: as in `Point`, with run and setup by their numbers."""

    run: int
    median: float
    low: float | None
    high: float | None
    n: int
    setup: int


class Columns(NamedTuple):
    """The figures of many runs, an entry for each in every column."""

    runs: tuple[int, ...] = ()
    medians: tuple[float, ...] = ()
    lows: tuple[float | None, ...] = ()
    highs: tuple[float | None, ...] = ()
    ns: tuple[int, ...] = ()
    setups: tuple[int, ...] = ()

    def at(self, places: Sequence[int]) -> Columns:
        """The entries at these places, in their order."""
        if list(places) == list(range(len(self.runs))):
            return self
        return Columns(
            tuple(self.runs[place] for place in places),
            tuple(self.medians[place] for place in places),
            tuple(self.lows[place] for place in places),
            tuple(self.highs[place] for place in places),
            tuple(self.ns[place] for place in places),
            tuple(self.setups[place] for place in places),
        )


class Writer:
    """Adds figures, in the order of the runs' numbers; what is added is written by `flush`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._part = 0
        self._of_subjects: dict[int, list[Figures]] = {}

    def add(self, subject: int, figures: Figures) -> None:
        """Add a run to a series; two cells of one run that say they are the same are one."""
        part = figures.run // RUNS
        if part != self._part:
            self.flush()
            self._part = part
        before = self._of_subjects.get(subject)
        if before is None:
            before = self._of_subjects[subject] = self._written(subject)
        if not any(each.run == figures.run for each in before[-1:]):
            before.append(figures)

    def flush(self) -> None:
        """Write what was added."""
        self._connection.executemany(
            "INSERT INTO points (subject, part, packed) VALUES (?, ?, ?) "
            "ON CONFLICT (subject, part) DO UPDATE SET packed = excluded.packed",
            [(subject, self._part, _pack(rows)) for subject, rows in self._of_subjects.items()],
        )
        self._of_subjects.clear()

    def _written(self, subject: int) -> list[Figures]:
        found = self._connection.execute(
            "SELECT packed FROM points WHERE subject = ? AND part = ?", (subject, self._part)
        ).fetchone()
        return [] if found is None else _unpack(found[0])


def drop(connection: sqlite3.Connection, runs: Iterable[int]) -> None:
    """Forget the figures of runs."""
    for part, numbers in groupby(sorted(runs), key=lambda run: run // RUNS):
        gone = set(numbers)
        for number, packed in connection.execute(
            "SELECT number, packed FROM points WHERE part = ?", (part,)
        ).fetchall():
            rows = _unpack(packed)
            left = [each for each in rows if each.run not in gone]
            if not left:
                connection.execute("DELETE FROM points WHERE number = ?", (number,))
            elif len(left) < len(rows):
                connection.execute(
                    "UPDATE points SET packed = ? WHERE number = ?", (_pack(left), number)
                )


def of_subject(connection: sqlite3.Connection, subject: int) -> Columns:
    """The figures of a series, in the order of the runs' numbers."""
    parts = connection.execute(
        "SELECT packed FROM points WHERE subject = ? ORDER BY part", (subject,)
    )
    of_parts = [_columns(packed) for (packed,) in parts]
    return Columns(*(tuple(chain.from_iterable(each)) for each in zip(*of_parts, strict=True)))


def _pack(rows: Sequence[Figures]) -> bytes:
    """Column after column; what is None is no number."""
    values = [
        nan if value is None else value for column in zip(*rows, strict=True) for value in column
    ]
    return struct.pack(_format(len(rows)), *values)


def _unpack(packed: bytes) -> list[Figures]:
    return list(map(Figures, *_columns(packed)))


def _columns(packed: bytes) -> Columns:
    count = len(packed) // _SIZE
    values = struct.unpack(_format(count), packed)
    runs, medians, lows, highs, ns, setups = (
        values[place * count : (place + 1) * count] for place in range(len(_ONE))
    )
    return Columns(runs, medians, _numbers(lows), _numbers(highs), ns, setups)


def _numbers(values: tuple[float, ...]) -> tuple[float | None, ...]:
    if not isnan(sum(values)):  # The usual case, without a look at each.
        return values
    return tuple(None if isnan(value) else value for value in values)


def _format(count: int) -> str:
    return "<" + "".join(f"{count}{each}" for each in _ONE)
