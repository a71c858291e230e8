"""What was measured of a machine's memory is kept for a week, and taken up by runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from edgebench.devices.bandwidth import Bandwidth
from edgebench.harness.bandwidth import (
    OFF,
    QUICK,
    bandwidth_for_run,
    bandwidth_record,
    for_threads,
    keep_bandwidth,
    measure_bandwidth,
    stored_bandwidth,
    stored_bandwidths,
    wanted_threads,
)
from edgebench.harness.errors import RunnerError
from edgebench.harness.metrics.statistics import median_interval

NOW = datetime(2026, 1, 10, tzinfo=UTC)
READ = Bandwidth(2, 256 << 20, 2 << 20, "lines-4", (9e9, 10e9, 11e9, 10e9, 10e9))


def record(threads: int = 2, *, gigabytes: float = 10.0, now: datetime = NOW, **changes):
    made = bandwidth_record(replace(READ, threads=threads), "f" * 16, now=now)
    return made.model_copy(update={"bytes_per_s": gigabytes * 1e9, **changes})


class Memory:
    """Stands for a board's: counts how often it is read."""

    def __init__(self, found: Bandwidth = READ) -> None:
        self.found = found
        self.read: list[int] = []

    def __call__(self, threads: int) -> Bandwidth:
        self.read.append(threads)
        return replace(self.found, threads=threads)


def test_a_record_has_the_median_and_its_interval():
    """Of five repetitions: the middle one, and the interval that medians of metrics have."""
    made = bandwidth_record(READ, "f" * 16, now=NOW)
    interval = median_interval([9e9, 10e9, 11e9, 10e9, 10e9], range(5))
    assert made.bytes_per_s == 10e9
    assert (made.ci_low, made.ci_high) == (interval.low, interval.high)
    assert made.samples == [9e9, 10e9, 11e9, 10e9, 10e9]
    assert made.cache_bytes == 2 << 20


def test_what_is_kept_is_found_for_a_week(tmp_path):
    """On the seventh day it is there, a second later it is not."""
    keep_bandwidth(record(), root=tmp_path)
    week = NOW + timedelta(days=7)
    assert stored_bandwidth("f" * 16, 2, root=tmp_path, now=week) == record()
    assert stored_bandwidth("f" * 16, 2, root=tmp_path, now=week + timedelta(seconds=1)) is None


def test_a_machine_has_a_record_for_each_number_of_threads(tmp_path):
    """Another machine's is no one's business; a newer one takes the place of the older one."""
    for each in (record(1, gigabytes=6), record(4, gigabytes=9), record(2, gigabytes=8)):
        keep_bandwidth(each, root=tmp_path)
    keep_bandwidth(record(2, gigabytes=12), root=tmp_path)
    found = stored_bandwidths("f" * 16, root=tmp_path, now=NOW)
    assert [(each.threads, each.bytes_per_s) for each in found] == [(1, 6e9), (2, 12e9), (4, 9e9)]
    assert stored_bandwidth("f" * 16, root=tmp_path, now=NOW) == found[1]
    assert stored_bandwidths("e" * 16, root=tmp_path, now=NOW) == ()
    assert stored_bandwidth("f" * 16, 3, root=tmp_path, now=NOW) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 2, "bandwidth": {}}', '{"format": 1, "bandwidth": {}}']
)
def test_a_damaged_file_is_measured_anew(tmp_path, text):
    """Half a file, or another version's, is as none."""
    folder = tmp_path / "bandwidth"
    folder.mkdir()
    (folder / f"{'f' * 16}-2.json").write_text(text)
    assert stored_bandwidths("f" * 16, root=tmp_path, now=NOW) == ()
    memory = Memory()
    bandwidth_for_run([2], "f" * 16, memory, root=tmp_path)
    assert memory.read == [2]


def test_a_machine_is_measured_once(tmp_path):
    """The second run takes what the first one kept."""
    memory = Memory()
    first = bandwidth_for_run([1, 2], "f" * 16, memory, root=tmp_path)
    second = bandwidth_for_run([1, 2], "f" * 16, memory, root=tmp_path)
    assert memory.read == [1, 2]
    assert second.records == first.records


def test_a_disturbed_reading_is_shown_and_not_kept(tmp_path):
    """It is too low; the next run measures again."""
    memory = Memory(replace(READ, disturbed=True))
    found = bandwidth_for_run([2], "f" * 16, memory, root=tmp_path)
    assert [each.disturbed for each in found.records] == [True]
    bandwidth_for_run([2], "f" * 16, memory, root=tmp_path)
    assert memory.read == [2, 2]
    assert for_threads(found.records, 2) is None


@pytest.mark.parametrize("why_not", [OFF, QUICK])
def test_nothing_is_read_where_it_is_not_wanted(tmp_path, why_not):
    """Off is off; a quick look takes what is kept, and measures nothing."""
    memory = Memory()
    keep_bandwidth(record(2, now=datetime.now(UTC)), root=tmp_path)
    found = bandwidth_for_run([1, 2], "f" * 16, memory, why_not=why_not, root=tmp_path)
    assert memory.read == []
    assert found.why_none == why_not
    assert [each.threads for each in found.records] == ([] if why_not == OFF else [2])


def test_a_resumed_run_keeps_its_own(tmp_path):
    """What its first part measured is what its rates are held against."""
    memory = Memory()
    keep_bandwidth(record(2, gigabytes=50, now=datetime.now(UTC)), root=tmp_path)
    known = record(2, gigabytes=7)
    found = bandwidth_for_run([2], "f" * 16, memory, known=[known], root=tmp_path)
    assert (found.records, memory.read) == ((known,), [])


def test_what_could_not_be_read_has_its_reason(tmp_path):
    """Too little memory, or a board that can't be reached: the run goes on."""
    nothing = Memory(replace(READ, bytes_per_s=(), reason="there is too little memory"))
    found = bandwidth_for_run([2], "f" * 16, nothing, root=tmp_path)
    assert found.records == ()
    assert found.why_none == "the memory's bandwidth was not measured: there is too little memory"

    def unreachable(_threads: int) -> Bandwidth:
        msg = "the link broke"
        raise RunnerError(msg)

    found = bandwidth_for_run([2], "f" * 16, unreachable, root=tmp_path)
    assert found.why_none.endswith("the link broke")


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path):
    """It is measured, and measured again the next time."""
    (tmp_path / "bandwidth").write_text("a file where a folder should be")
    made = measure_bandwidth(2, "f" * 16, read=Memory(), root=tmp_path)
    assert not isinstance(made, str)
    assert stored_bandwidths("f" * 16, root=tmp_path) == ()


@pytest.mark.parametrize(("threads", "expected"), [(1, 1), (2, 4), (4, 4), (8, None), (None, 4)])
def test_more_threads_are_a_roof_and_fewer_are_none(threads, expected):
    """Of readings with 1 and 4 threads: two threads are held against four, eight against none."""
    found = for_threads([record(4), record(1)], threads)
    assert (found.threads if found else None) == expected


def item(runner: str = "llama.cpp", failure: object = None, **options: object):
    return SimpleNamespace(variant=SimpleNamespace(runner=runner, options=options), failure=failure)


def test_threads_are_those_of_the_variants():
    """Each number once, all CPUs for who does not say; nothing for what can't start or is fake."""
    items = [item(threads=4), item(threads=2), item(threads=2), item()]
    assert wanted_threads(items, 8) == (2, 4, 8)
    assert wanted_threads([item("fake"), item(failure="missing", threads=3)], 8) == ()
    assert wanted_threads([item("fake", weight_bytes=10, threads=1)], 8) == (1,)


@pytest.mark.parametrize("wrong", ["0", "-1.0", "NaN", "1e-300", "1e400", '"fast"'])
def test_a_kept_file_that_no_memory_wrote_is_measured_anew(tmp_path, wrong):
    """0 can't be divided by, and nothing is below it: as if there were no such file."""
    keep_bandwidth(record(), root=tmp_path)
    (path,) = (tmp_path / "bandwidth").iterdir()
    kept = path.read_text()
    assert '"bytes_per_s":10000000000.0' in kept.replace(" ", "")
    path.write_text(kept.replace("10000000000.0", wrong, 1))
    assert stored_bandwidths("f" * 16, root=tmp_path, now=NOW) == ()
    memory = Memory()
    found = bandwidth_for_run([2], "f" * 16, memory, root=tmp_path)
    assert memory.read == [2]
    assert [each.threads for each in found.records] == [2]


def test_what_is_dated_in_the_future_is_measured_anew(tmp_path):
    """A clock that was wrong once; a few seconds of it are let pass."""
    keep_bandwidth(record(now=NOW + timedelta(days=400)), root=tmp_path)
    assert stored_bandwidth("f" * 16, root=tmp_path, now=NOW) is None
    keep_bandwidth(record(now=NOW + timedelta(seconds=5)), root=tmp_path)
    assert stored_bandwidth("f" * 16, root=tmp_path, now=NOW) is not None


def test_a_bound_of_a_disturbed_reading_is_kept_in_the_record():
    """As it was read."""
    disturbed = replace(READ, disturbed=True, at_most=42e9)
    assert bandwidth_record(disturbed, "f" * 16, now=NOW).at_most_bytes_per_s == 42e9
