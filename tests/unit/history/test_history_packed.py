"""Figures packed by many runs: what goes in comes out, whatever was taken away in between."""

from __future__ import annotations

import sqlite3

import pytest

from edgebench.harness.history import packed
from edgebench.harness.history.packed import RUNS, Figures, Writer


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(packed.TABLE)
    yield made
    made.close()


def figures(run):
    """With an interval for every third run only."""
    low, high = (run - 0.5, run + 0.5) if run % 3 == 0 else (None, None)
    return Figures(run, run / 7, low, high, run + 1, run % 2)


def write(connection, runs, subject=1):
    writer = Writer(connection)
    for run in runs:
        writer.add(subject, figures(run))
    writer.flush()


def read(connection, subject=1):
    return [Figures(*each) for each in zip(*packed.of_subject(connection, subject), strict=True)]


def test_what_was_written_is_read(connection):
    """Every bit of it, over the border of a part, and what has no interval still has none."""
    write(connection, range(2 * RUNS + 5))
    assert read(connection) == [figures(run) for run in range(2 * RUNS + 5)]
    assert read(connection, subject=2) == []


def test_runs_are_added_to_a_part_that_is_begun(connection):
    """One run at a time is as all at once; the same run twice is one."""
    for run in range(RUNS - 2, RUNS + 3):
        write(connection, [run, run])
    assert read(connection) == [figures(run) for run in range(RUNS - 2, RUNS + 3)]


def test_runs_that_are_gone_leave_the_others(connection):
    """In one part some, of another all; other series of these runs too."""
    for subject in (1, 2):
        write(connection, range(2 * RUNS), subject)
    packed.drop(connection, [3, *range(RUNS, 2 * RUNS)])
    left = [figures(run) for run in range(RUNS) if run != 3]
    assert read(connection, 1) == left
    assert read(connection, 2) == left
    packed.drop(connection, range(RUNS))
    assert connection.execute("SELECT count(*) FROM points").fetchone() == (0,)


def test_columns_are_put_in_another_order(connection):
    """Runs are read by number, and shown by date."""
    write(connection, range(4))
    columns = packed.of_subject(connection, 1)
    assert columns.at([3, 0]).runs == (3, 0)
    assert columns.at([3, 0]).highs == (3.5, 0.5)
    assert columns.at(range(4)) == columns
