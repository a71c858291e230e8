"""The tables of the index, and what is asked of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from edgebench.harness.errors import ResultError
from edgebench.harness.history import packed
from edgebench.harness.history.model import Points, RunFacts, Series, Setup, Subject

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from edgebench.harness.history.model import Selection

VERSION = 5
"""Of the tables, and of what tells one series from another. An index of another version is made
again."""

_TABLES = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, path TEXT UNIQUE, mtime INTEGER, size INTEGER, problem TEXT,
    left_out TEXT, id TEXT, created_at TEXT, moment REAL, scenario TEXT, cpu_model TEXT,
    version TEXT, sha TEXT, branch TEXT, committed_at TEXT, dirty INTEGER
);
CREATE TABLE subjects (
    number INTEGER PRIMARY KEY, identity TEXT UNIQUE, machine TEXT, model TEXT, weights TEXT,
    variant TEXT, workload TEXT, scenario TEXT, metric TEXT, unit TEXT, source TEXT,
    meter TEXT, testing INTEGER
);
CREATE TABLE setups (number INTEGER PRIMARY KEY, said TEXT UNIQUE);
"""

_RUN = (
    "id, path, created_at, moment, scenario, cpu_model, version, sha, branch, committed_at, dirty"
)
_SUBJECT = (
    "machine, model, weights, variant, workload, scenario, metric, unit, source, meter, testing, "
    "identity"
)


def create(connection: sqlite3.Connection) -> None:
    """Make the tables where they are not there, or are of another version."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it meanwhile.
        if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                quoted = name.replace('"', '""')
                connection.execute(f'DROP TABLE "{quoted}"')
            for statement in filter(str.strip, (_TABLES + packed.TABLE).split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def known(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """The time and size of every record that was taken in, by the run's folder."""
    rows = connection.execute("SELECT path, mtime, size FROM runs")
    return {path: (mtime, size) for path, mtime, size in rows}


def drop(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Forget runs."""
    numbers: list[int] = []
    for path in paths:
        found = connection.execute("SELECT number FROM runs WHERE path = ?", (path,)).fetchone()
        numbers += found or ()
        connection.execute("DELETE FROM runs WHERE path = ?", (path,))
    packed.drop(connection, numbers)


def sweep(connection: sqlite3.Connection) -> None:
    """Forget subjects that no run has any more."""
    connection.execute(
        "DELETE FROM subjects WHERE NOT EXISTS "
        "(SELECT 1 FROM points WHERE points.subject = subjects.number)"
    )


def subjects(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of every subject, by its identity."""
    return dict(connection.execute("SELECT identity, number FROM subjects").fetchall())


def take(
    connection: sqlite3.Connection,
    results: Path,
    path: str,
    stamp: tuple[int, int],
    numbers: dict[str, int],
    writer: packed.Writer,
) -> None:
    """Read a run's record and put its rows in; one that can't be read is noted with the reason.

    Args:
        connection: the index.
        results: the folder of results.
        path: the run's, relative to it.
        stamp: time and size of the record.
        numbers: as `subjects` gives them; new ones are added.
        writer: of the figures.
    """
    # Late: where nothing is new, no record need be read, and none of this imported.
    from edgebench.harness.history.rows import rows_of  # noqa: PLC0415
    from edgebench.harness.results.run import read_record  # noqa: PLC0415

    try:
        rows = rows_of(read_record(results / path), path)
    except ResultError as error:
        connection.execute(
            "INSERT INTO runs (path, mtime, size, problem) VALUES (?, ?, ?, ?)",
            (path, *stamp, error.message),
        )
        return
    run = rows.run
    number = connection.execute(
        f"INSERT INTO runs (mtime, size, left_out, {_RUN}) VALUES ({_marks(14)})",  # noqa: S608 - our own names
        (
            *stamp,
            rows.left_out,
            *(run.id, run.path, run.created_at, run.moment, run.scenario, run.cpu_model),
            *(run.version, run.sha, run.branch, run.committed_at, run.dirty),
        ),
    ).lastrowid
    assert number is not None
    setups: dict[Setup, int] = {}
    for subject, point in rows.points:
        if point.setup not in setups:
            setups[point.setup] = _setup(connection, point.setup)
        figures = (number, point.median, point.low, point.high, point.n, setups[point.setup])
        writer.add(_subject(connection, subject, numbers), packed.Figures(*figures))


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How many runs, by why they are left out; empty for those that are not."""
    return dict(
        connection.execute(
            "SELECT left_out, count(*) FROM runs WHERE problem IS NULL GROUP BY left_out"
        ).fetchall()
    )


def skipped(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """What could not be read, and why."""
    return connection.execute(
        "SELECT path, problem FROM runs WHERE problem IS NOT NULL ORDER BY path"
    ).fetchall()


def metrics(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The keys of all metrics."""
    return tuple(key for (key,) in connection.execute("SELECT DISTINCT metric FROM subjects"))


def series(connection: sqlite3.Connection, selection: Selection) -> Iterator[Series]:
    """The series that are selected, their runs oldest first."""
    runs = {
        row[0]: RunFacts(*(*row[1:11], None if row[11] is None else bool(row[11])))
        for row in connection.execute(
            f"SELECT number, {_RUN} FROM runs WHERE left_out = '' ORDER BY moment, created_at"  # noqa: S608 - our own names
        )
    }
    taken = {number: run for number, run in runs.items() if selection.takes_run(run)}
    # In the order of time, which is that of the dictionary.
    order = {number: place for place, number in enumerate(taken)}
    setups: dict[int, Setup] = {}
    for fields in connection.execute(
        f"SELECT number, {_SUBJECT} FROM subjects"  # noqa: S608 - our own names
    ).fetchall():
        number, subject = fields[0], Subject(*(*fields[1:11], bool(fields[11]), fields[12]))
        if not selection.takes(subject):
            continue
        columns = packed.of_subject(connection, number)
        for said in set(columns.setups).difference(setups):
            setups[said] = _said(connection, said)
        times = [order.get(run, -1) for run in columns.runs]
        selected = (place for place, time in enumerate(times) if time >= 0)
        columns = columns.at(sorted(selected, key=times.__getitem__))
        if columns.runs:
            yield Series(
                subject,
                Points(
                    tuple(taken[run] for run in columns.runs),
                    *columns[1:5],
                    tuple(setups[said] for said in columns.setups),
                ),
            )


def _subject(connection: sqlite3.Connection, subject: Subject, numbers: dict[str, int]) -> int:
    found = numbers.get(subject.identity)
    if found is not None:
        return found
    number = connection.execute(
        f"INSERT INTO subjects ({_SUBJECT}) VALUES ({_marks(12)})",  # noqa: S608 - our own names
        (
            *(subject.machine, subject.model, subject.weights, subject.variant),
            *(subject.workload, subject.scenario, subject.metric, subject.unit),
            *(subject.source, subject.meter, subject.testing, subject.identity),
        ),
    ).lastrowid
    assert number is not None
    numbers[subject.identity] = number
    return number


def _setup(connection: sqlite3.Connection, setup: Setup) -> int:
    said = json.dumps([setup.engine, setup.artifact, setup.effective], ensure_ascii=False)
    connection.execute("INSERT OR IGNORE INTO setups (said) VALUES (?)", (said,))
    found = connection.execute("SELECT number FROM setups WHERE said = ?", (said,)).fetchone()
    return int(found[0])


def _said(connection: sqlite3.Connection, number: int) -> Setup:
    (said,) = connection.execute("SELECT said FROM setups WHERE number = ?", (number,)).fetchone()
    engine, artifact, effective = json.loads(said)
    return Setup(engine, artifact, tuple(effective))


def _marks(count: int) -> str:
    return ", ".join("?" * count)
