"""The index of results: it follows the folder, keeps series apart, and can always be made again."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from datetime import UTC, datetime

import pytest
from history_sample import change, sha, write_run, write_runs

from edgebench.harness.errors import ResultError
from edgebench.harness.history import index as index_module
from edgebench.harness.history.changes import find
from edgebench.harness.history.index import IN_MEMORY, Index
from edgebench.harness.history.model import Selection
from edgebench.reports.history_terminal import one_series, overview

RATE = Selection(metrics=("decode_rate",))


def asked(results, selection=RATE, **options):
    with Index(results, **options) as index:
        contents = index.update()
        return contents, index.series(selection), index.place


def medians(series):
    return [point.median for point in series.points]


def test_runs_become_a_series_oldest_first(tmp_path):
    """A row for each run, cell and metric, with the interval and the commit."""
    write_runs(tmp_path, [30.0, 10.0, 20.0])
    contents, (series,), _place = asked(tmp_path)
    assert contents.runs == 3
    assert medians(series) == [30.0, 10.0, 20.0]
    point = series.points[1]
    assert (point.run.id, point.run.sha, point.run.branch) == ("run-001", sha(1), "main")
    # Five values, 0.1 % apart in all: the bootstrap's interval is within them.
    assert 9.99 <= point.low <= 10.0 <= point.high <= 10.01
    assert point.n == 5
    assert (series.subject.unit, series.subject.variant) == ("token/s", "a")


def test_new_changed_and_removed_runs_are_followed(tmp_path):
    """What is asked for is what lies in the folder now."""
    write_runs(tmp_path, [1.0, 2.0, 3.0])
    asked(tmp_path)
    write_run(tmp_path, 3, 4.0)
    shutil.rmtree(tmp_path / "made-up" / "run-000")
    write_run(tmp_path, 1, 2.5, notes=["changed"])
    contents, (series,), _place = asked(tmp_path)
    assert contents.runs == 3
    assert medians(series) == [2.5, 3.0, 4.0]


def test_a_series_whose_runs_are_gone_is_gone(tmp_path):
    """Nothing is remembered that the results do not hold."""
    write_run(tmp_path, 0, 1.0)
    asked(tmp_path)
    shutil.rmtree(tmp_path / "made-up")
    contents, series, _place = asked(tmp_path)
    assert (contents.runs, series) == (0, ())


@pytest.mark.parametrize(
    "other",
    [
        {"machine": {"fingerprint": "another"}},
        {"workload": {"prompt_sha256": "0" * 64}},
        {"workload": {"generate_tokens": 4}},
        {"variant": {"options": {"threads": 2}}},
        {"variant": {"quantization": "Q4_0"}},
        {"scenario": {"model": {"name": "other", "source": "path:other.gguf"}}},
        {"scenario": {"model": {"source": "path:x", "sha256": "1" * 64}}},
    ],
)
def test_what_is_not_the_same_is_another_series(tmp_path, other):
    """Machine, prompt, length, options, quantisation and weights are never mixed."""
    write_runs(tmp_path, [1.0, 2.0])
    folder = write_run(tmp_path, 2, 3.0)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (what, fields) = next(iter(other.items()))
    if what == "machine":
        record["machine"] |= fields
    elif what == "scenario":
        record["scenario"] |= fields
    else:
        record[f"{what}s"][0] |= fields
    change(folder, **record)
    _contents, series, _place = asked(tmp_path)
    assert sorted(map(medians, series)) == [[1.0, 2.0], [3.0]]


def test_an_engine_may_change_along_a_series(tmp_path):
    """That is what a history is for: the version stands at the points."""
    folders = [write_run(tmp_path, number, 1.0) for number in range(2)]
    for folder, version in zip(folders, ("1", "2"), strict=True):
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        record["variants"][0] |= {"engine": "x", "engine_version": version}
        change(folder, variants=record["variants"])
    _contents, (series,), _place = asked(tmp_path)
    assert [point.setup.engine for point in series.points] == ["x 1", "x 2"]


def test_what_is_no_measurement_is_counted_and_left_out(tmp_path):
    """Quick looks, unfinished runs, and what an interleaved run was compared with."""
    write_runs(tmp_path, [1.0, 2.0])
    write_run(tmp_path, 2, 9.0, quick=True)
    write_run(tmp_path, 3, 9.0, status="interrupted")
    pair = {"session": "s", "side": "baseline", "partner": "x"}
    write_run(tmp_path, 4, 9.0, interleaved=pair)
    write_run(tmp_path, 5, 3.0, interleaved=pair | {"side": "candidate"})
    contents, (series,), _place = asked(tmp_path)
    assert medians(series) == [1.0, 2.0, 3.0]
    assert contents.left_out == {
        "quick look": 1,
        "not finished": 1,
        "baseline of an interleaved run": 1,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"schema_version": 99}', "newer edgebench"),
        ('{"schema_version": 1, "id": ', "not the record of a run"),
        ("", "not the record of a run"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(tmp_path, text, reason):
    """One damaged or newer record spoils nothing, and is said, the second time too."""
    folder = write_runs(tmp_path, [1.0, 2.0])
    (folder / "run.json").write_text(text, encoding="utf-8")
    for _time in range(2):
        contents, (series,), _place = asked(tmp_path)
        assert medians(series) == [1.0]
        assert [reason in each.reason for each in contents.skipped] == [True]


def test_nothing_inside_of_a_run_and_nothing_hidden_is_a_run(tmp_path):
    """A copy kept below a run, or in a hidden folder, would count twice."""
    folder = write_run(tmp_path, 0, 1.0)
    shutil.copytree(folder, folder / "copy")
    shutil.copytree(folder, tmp_path / ".trash" / "run")
    assert asked(tmp_path)[0].runs == 1


def test_another_version_of_the_index_is_made_again_without_a_word(tmp_path):
    """Its tables are of no use, and its results still lie there."""
    write_run(tmp_path, 0, 1.0)
    place = asked(tmp_path)[2]
    connection = sqlite3.connect(place)
    connection.execute("DROP TABLE points")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    contents, (series,), _place = asked(tmp_path)
    assert medians(series) == [1.0]
    assert contents.notes == ()


@pytest.mark.parametrize("damage", ["text", "half"])
def test_a_damaged_index_is_made_again_with_a_note(tmp_path, damage):
    """A file that is no database, or half of one, costs nothing but time."""
    write_runs(tmp_path, [1.0, 2.0, 3.0])
    file = tmp_path / ".edgebench" / "history.sqlite"
    asked(tmp_path)
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    data = file.read_bytes()
    file.write_bytes(b"no database" * 500 if damage == "text" else data[:4096] + b"\xff" * 8192)
    contents, (series,), _place = asked(tmp_path)
    assert medians(series) == [1.0, 2.0, 3.0]
    assert contents.notes == ("The index of the results was damaged, and was made again.",)


def test_a_rebuilt_index_says_the_same(tmp_path):
    """It is never the only copy of anything."""
    write_runs(tmp_path, [1.0, 2.0, 3.0])
    assert asked(tmp_path)[1] == asked(tmp_path, rebuild=True)[1]


def test_where_results_cannot_be_written_the_index_lies_in_the_cache(tmp_path, monkeypatch):
    """A folder that is only to be read (here: a file is in the way) can be asked all the same."""
    results = tmp_path / "results"
    write_run(results, 0, 1.0)
    (results / ".edgebench").touch()
    monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "cache"))
    _contents, (series,), place = asked(results)
    assert place.startswith(str(tmp_path / "cache"))
    assert medians(series) == [1.0]
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "file"))
    _contents, (series,), place = asked(results)
    assert place == IN_MEMORY
    assert medians(series) == [1.0]


def test_a_lock_that_is_never_given_back_keeps_no_answer_back(tmp_path, monkeypatch):
    """Another process holds the index for ever: the answer is made in memory, and that is said."""
    monkeypatch.setattr(index_module, "WAIT_S", 0.05)
    write_runs(tmp_path, [1.0, 2.0])
    place = asked(tmp_path)[2]
    write_run(tmp_path, 2, 3.0)
    holder = sqlite3.connect(place, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        contents, (series,), now_at = asked(tmp_path)
    finally:
        holder.close()
    assert medians(series) == [1.0, 2.0, 3.0]
    assert now_at == IN_MEMORY
    (note,) = contents.notes
    assert "database is locked" in note
    assert "made in memory" in note
    # Given back, it is used again, and brought up to date.
    contents, (series,), now_at = asked(tmp_path)
    assert (now_at, contents.notes) == (place, ())
    assert medians(series) == [1.0, 2.0, 3.0]


def test_a_lock_held_while_the_index_is_new_keeps_no_answer_back(tmp_path, monkeypatch):
    """Where not even the tables can be made, it is made elsewhere."""
    monkeypatch.setattr(index_module, "WAIT_S", 0.05)
    monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "cache"))
    results = tmp_path / "results"
    write_run(results, 0, 1.0)
    (results / ".edgebench").mkdir()
    holder = sqlite3.connect(results / ".edgebench" / "history.sqlite", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        _contents, (series,), place = asked(results)
    finally:
        holder.close()
    assert place.startswith(str(tmp_path / "cache"))
    assert medians(series) == [1.0]


def test_an_index_that_may_only_be_read_is_used_until_something_is_new(tmp_path, monkeypatch):
    """A disk that takes nothing more (here: by order of the connection) is no reason to fail."""
    monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "cache"))
    results = tmp_path / "results"
    write_runs(results, [1.0, 2.0])
    place = asked(results)[2]
    connected = index_module._connected

    def reading_only(file):
        connection = connected(file)
        if file != IN_MEMORY:
            connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(index_module, "_connected", reading_only)
    contents, (series,), now_at = asked(results)
    assert (medians(series), now_at, contents.notes) == ([1.0, 2.0], place, ())
    write_run(results, 2, 3.0)
    contents, (series,), now_at = asked(results)
    assert (medians(series), now_at) == ([1.0, 2.0, 3.0], IN_MEMORY)
    assert ["made in memory" in each for each in contents.notes] == [True]


@pytest.mark.parametrize(
    ("fields", "apart"),
    [
        ({"variants": {"options": {"threads": 2}}}, ["no threads", "threads=2"]),
        ({"variants": {"quantization": "Q4_0"}}, ["quantisation Q4_0", "quantisation source"]),
        ({"workloads": {"prompt_sha256": "ab" * 32}}, ["no prompt", "prompt ababababab"]),
        ({"workloads": {"prompt_tokens": 4096}}, ["prompt tokens 4", "prompt tokens 4096"]),
    ],
)
def test_series_of_one_name_say_what_differs(tmp_path, fields, apart):
    """The same variant and workload by name, and not by what they are made of."""
    write_runs(tmp_path, [1.0, 2.0])
    folder = write_run(tmp_path, 2, 3.0)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    ((what, changed),) = fields.items()
    change(folder, **{what: [record[what][0] | changed]})
    _contents, series, _place = asked(tmp_path)
    assert sorted(each.apart for each in series) == apart
    assert all(each.name == f"a ({each.apart})" for each in series)


def test_a_series_of_its_own_name_says_nothing_more(tmp_path):
    """All metrics of one cell are one thing."""
    write_runs(tmp_path, [1.0, 2.0])
    _contents, series, _place = asked(tmp_path, Selection())
    assert len(series) == 2
    assert {each.apart for each in series} == {""}


def estimated(folder):
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for cell in record["cells"]:
        for summary in cell["metrics"].values():
            summary["source"] = "estimated"
    change(folder, cells=record["cells"])


def test_estimates_are_a_series_of_their_own(tmp_path):
    """What was measured and what was estimated are never joined, and each says which it is."""
    for number in range(4):
        folder = write_run(tmp_path, number, 10.0 + number)
        if number >= 2:
            estimated(folder)
    _contents, series, _place = asked(tmp_path)
    assert {each.subject.source: medians(each) for each in series} == {
        "observed": [10.0, 11.0],
        "estimated": [12.0, 13.0],
    }
    assert len({each.subject.cell for each in series}) == 1


def energies(folder, meter):
    """The run's rate as watts of a meter; without a name as older runs have them."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for cell in record["cells"]:
        rate = cell["metrics"]["decode_rate"]
        cell["metrics"]["mean_power_w"] = {**rate, "unit": "W"}
    meters = [{"name": meter, "source": "observed"}] if meter else []
    change(folder, cells=record["cells"], meters=meters)


def test_energies_of_each_meter_are_a_series_of_their_own(tmp_path):
    """What two meters told is never joined, and each says which it is; a rate has no meter."""
    for number, meter in enumerate(["rapl:package", "battery", "rapl:package", "battery", ""]):
        energies(write_run(tmp_path, number, 10.0 + number), meter)
    watts = Selection(metrics=("mean_power_w",))
    _contents, series, _place = asked(tmp_path, watts)
    assert {each.subject.meter: medians(each) for each in series} == {
        "rapl:package": [10.0, 12.0],
        "battery": [11.0, 13.0],
        "": [14.0],
    }
    assert len({each.subject.cell for each in series}) == 1
    found = [(each, find(each.medians)) for each in series]
    listed = list(overview(found))
    assert "      of rapl:package" in listed
    assert "      of battery" in listed
    for each, findings in found:
        if each.subject.meter:
            (head,) = [line for line in one_series(each, findings) if "Mean power" in line]
            assert f"Mean power ({each.subject.meter}), W" in head
    _contents, (rates,), _place = asked(tmp_path)
    assert (rates.subject.meter, len(rates.points)) == ("", 5)


def test_an_index_that_joined_estimates_is_made_again(tmp_path):
    """An index of before that rule is of another version, and is not believed."""
    estimated(write_run(tmp_path, 0, 1.0))
    asked(tmp_path)
    with sqlite3.connect(tmp_path / ".edgebench" / "history.sqlite") as old:
        old.execute("UPDATE subjects SET source = 'observed'")
        old.execute("PRAGMA user_version = 3")
    old.close()
    _contents, (series,), _place = asked(tmp_path)
    assert series.subject.source == "estimated"


def test_the_index_keeps_itself_out_of_git(tmp_path):
    """Results may be committed; what is made from them need not be."""
    write_run(tmp_path, 0, 1.0)
    asked(tmp_path)
    assert (tmp_path / ".edgebench" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_two_at_once_agree(tmp_path):
    """Threads that all find the index out of date each get all runs, each once."""
    write_runs(tmp_path, [float(number + 1) for number in range(12)])
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(asked(tmp_path)[1])) for _time in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [len(series.points) for (series,) in answers] == [12] * 4


def test_runs_are_selected_by_day_branch_and_scenario(tmp_path):
    """Filters take whole runs; patterns take names."""
    write_runs(tmp_path, [1.0, 2.0, 3.0])
    write_run(tmp_path, 3, 4.0, scenario="other")

    def found(**given):
        _contents, series, _place = asked(tmp_path, Selection(metrics=("decode_rate",), **given))
        return [medians(each) for each in series]

    assert found(since=datetime(2025, 1, 16, tzinfo=UTC), scenario="made-up") == [[3.0]]
    assert found(branch="main", workload="w", variant="?") == [[1.0, 2.0, 3.0], [4.0]]
    assert found(branch="none") == []
    assert found(variant="b") == []
    assert found(workload="x*") == []


def test_a_folder_that_is_none_is_refused(tmp_path):
    """The message names it and says which one is meant."""
    with pytest.raises(ResultError, match="not a folder of results"):
        Index(tmp_path / "nothing")
