"""pytest-benchmark's files: written as it writes them, read without trusting their statistics."""

from __future__ import annotations

import json
import statistics
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from baseline_sample import COMMIT, CRASH, machine, samples, side, side_run, small_side, variants
from baseline_sample import workloads as sample_workloads
from hypothesis import given
from hypothesis import strategies as some
from pytest_benchmark.stats import Stats

from edgebench.harness.compare.model import Samples, SideCell
from edgebench.harness.compare.pytest_benchmark import (
    MOST_BLOCKS,
    export_pytest_benchmark,
    is_pytest_benchmark,
    read_pytest_benchmark,
)
from edgebench.harness.errors import BaselineError, ExitStatus, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def timed(values: list[float]) -> dict[str, Any]:
    """The benchmark that one cell's times are exported as."""
    cell = SideCell(variants()[0], sample_workloads()[0], "ok", {"ttft_s": samples(values)})
    (benchmark,) = benchmarks(export_pytest_benchmark(side([cell])))
    return benchmark


def benchmarks(document: dict[str, object]) -> list[dict[str, Any]]:
    found = document["benchmarks"]
    assert isinstance(found, list)
    return found


def as_theirs(values: list[float]) -> dict[str, object]:
    """The same by pytest-benchmark's own code."""
    stats = Stats()
    for value in values:
        stats.update(value)
    return {**stats.as_dict(), "data": stats.data, "iterations": 1}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21])
def test_statistics_are_pytest_benchmarks_own(count: int) -> None:
    """All of them, whatever the remainder of the number of samples by 4; outliers included."""
    values = [0.1 * (7 * place % 11) + 0.013 * place for place in range(count)]
    if count > 6:
        values[3] = 40.0
    stats = timed(values)["stats"]
    theirs = as_theirs(values)
    assert list(stats) == list(theirs)
    assert stats.pop("data") == theirs.pop("data")
    assert stats == pytest.approx(theirs)


@given(some.lists(some.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 100.0]), min_size=1, max_size=25))
def test_statistics_agree_on_ties_and_zeros(values: list[float]) -> None:
    """Values that are exact in binary, so that nothing is rounded, and all must be equal."""
    stats, theirs = timed(values)["stats"], as_theirs(values)
    counts = ("rounds", "median", "q1", "q3", "iqr", "iqr_outliers", "ld15iqr", "hd15iqr")
    assert {key: stats[key] for key in counts} == {key: theirs[key] for key in counts}
    assert stats["ops"] == pytest.approx(theirs["ops"])


def test_times_are_exported_and_nothing_else() -> None:
    """One benchmark for each cell and time; rates, bytes, nulls and failed cells make none."""
    document = export_pytest_benchmark(small_side())
    assert [each["name"] for each in benchmarks(document)] == [
        "llama.cpp source threads=2/chat[load_s]",
        "llama.cpp source threads=2/chat[ttft_s]",
    ]
    first = benchmarks(document)[0]
    assert first["group"] == "chat/load_s"
    assert first["fullname"] == "smollm2-135m::llama.cpp source threads=2/chat[load_s]"
    assert first["param"] == "load_s"
    assert first["stats"]["data"] == [0.5, 0.25]
    json.dumps(document, allow_nan=False)


def test_the_commit_and_the_machine_have_their_places() -> None:
    """Under the names that pytest-benchmark gives them."""
    document = export_pytest_benchmark(small_side())
    assert document["commit_info"] == {
        "id": COMMIT.sha,
        "time": COMMIT.committed_at,
        "author_time": None,
        "dirty": False,
        "project": "smollm2-135m",
        "branch": "main",
    }
    about = document["machine_info"]
    assert isinstance(about, dict)
    assert about["cpu"]["brand_raw"] == "AMD EPYC 9B14"
    assert about["machine"] == "x86_64"
    assert document["datetime"] == "2025-01-14T10:15:00+00:00"
    unversioned = export_pytest_benchmark(small_side(runs=(side_run(commit=None),)))
    assert isinstance(unversioned["commit_info"], dict)
    assert unversioned["commit_info"]["id"] == "unversioned"


def test_metrics_are_chosen_by_pattern() -> None:
    """Only those that match; one that is no time, or matches nothing, is named."""
    document = export_pytest_benchmark(small_side(), ["ttft*"])
    assert [each["param"] for each in benchmarks(document)] == ["ttft_s"]
    with pytest.raises(UsageError, match=r"decode_rate is no time .*token/s.*\n.*tpot_s"):
        export_pytest_benchmark(small_side(), ["decode_rate"])
    with pytest.raises(UsageError, match=r"no metric 'nothing'\.\nIts times: load_s, ttft_s\."):
        export_pytest_benchmark(small_side(), ["ttft_s", "nothing"])
    rates = SideCell(
        variants()[0], sample_workloads()[0], "ok", {"decode_rate": samples([1.0], "token/s")}
    )
    with pytest.raises(UsageError, match="holds no times"):
        export_pytest_benchmark(side([rates]))


def written(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_an_export_is_read_back_as_the_same_cells(tmp_path: Path) -> None:
    """Times with their blocks, failures, machine, commit and model: as far as they are times."""
    one = small_side()
    again = read_pytest_benchmark(written(tmp_path, export_pytest_benchmark(one)))
    assert (again.runs, again.hashes) == (one.runs, one.hashes)
    assert again.label == str(tmp_path / "file.json")
    assert list(again.cells) == list(one.cells)
    for key, cell in again.cells.items():
        original = one.cells[key]
        assert (cell.variant, cell.status, cell.flags) == (
            original.variant,
            original.status,
            original.flags,
        )
        assert cell.failure == original.failure
    measured, failed = again.cells.values()
    original = next(iter(one.cells.values()))
    assert measured.metrics == {key: original.metrics[key] for key in ("load_s", "ttft_s")}
    assert failed.failure == CRASH


def a_benchmark(name: str = "test_a", **changes: object) -> dict[str, object]:
    """As pytest-benchmark writes one; its statistics are wrong on purpose."""
    data = changes.pop("data", [0.2, 0.1, 0.4])
    stats = {
        "min": 99.0,
        "mean": float("nan"),
        "stddev": 4.5e11,
        "median": 77.0,
        "rounds": 3,
        "iterations": 1,
    }
    return {
        "group": None,
        "name": name,
        "fullname": f"tests/test_speed.py::{name}",
        "params": None,
        "param": None,
        "extra_info": {},
        "options": {"timer": "perf_counter", "disable_gc": False, "warmup": False, "max_time": 1.0},
        "stats": {**stats, **({"data": data} if data is not None else {})},
        **changes,
    }


def a_file(*found: object, **changes: object) -> dict[str, Any]:
    return {
        "machine_info": {
            "node": "runner-17",
            "processor": "",
            "machine": "x86_64",
            "python_version": "3.12.4",
            "release": "6.8.0",
            "system": "Linux",
            "cpu": {"brand_raw": "A CPU", "count": 4, "hz_actual_friendly": "3.1 GHz"},
        },
        "commit_info": {
            "id": "abc123",
            "time": "2025-01-14T11:15:00+01:00",
            "author_time": None,
            "dirty": True,
            "project": "sorting",
            "branch": "main",
        },
        "benchmarks": list(found),
        "datetime": "2025-01-15T08:00:00.123456+00:00",
        "version": "5.1.0",
        **changes,
    }


def test_each_foreign_benchmark_is_a_cell(tmp_path: Path) -> None:
    """Its name on its group, or on its module; samples as they are, in their order."""
    file = a_file(a_benchmark(), a_benchmark("test_b[10]", group="sums"))
    one = read_pytest_benchmark(written(tmp_path, file))
    assert list(one.cells) == [("test_a", "tests/test_speed.py"), ("test_b[10]", "sums")]
    (first, second) = one.cells.values()
    session = one.runs[0].session
    assert first.metrics == {
        "duration_s": Samples(
            (0.2, 0.1, 0.4), tuple((session, block) for block in range(3)), "s", "observed"
        )
    }
    assert second.status == "ok"
    assert first.workload.kind == "task"
    assert dict(first.variant.effective_options) == {
        "timer": "perf_counter",
        "disable_gc": False,
        "warmup": False,
    }


def test_statistics_in_the_file_are_not_trusted(tmp_path: Path) -> None:
    """A median, a NaN mean and a huge deviation that the samples contradict change nothing."""
    path = written(tmp_path, a_file(a_benchmark()))
    assert "NaN" in path.read_text()
    (cell,) = read_pytest_benchmark(path).cells.values()
    assert statistics.median(cell.metrics["duration_s"].values) == 0.2


def test_where_and_of_what_it_was_measured(tmp_path: Path) -> None:
    """The commit and times in UTC, the machine, the project; two files of it are told apart."""
    one = read_pytest_benchmark(written(tmp_path, a_file(a_benchmark())))
    (run,) = one.runs
    assert (one.label, run.scenario_name) == (str(tmp_path / "file.json"), "sorting")
    assert run.created_at == "2025-01-15T08:00:00Z"
    assert run.commit is not None
    assert run.commit.model_dump(exclude_none=True) == {
        "sha": "abc123",
        "branch": "main",
        "committed_at": "2025-01-14T10:15:00Z",
        "dirty": True,
    }
    assert (run.machine.cpu_model, run.machine.logical_cpus) == ("A CPU", 4)
    assert run.machine.python == "3.12.4"


def test_a_file_without_a_commit_or_a_processor_is_read(tmp_path: Path) -> None:
    """What is not known is not made up."""
    bare = a_file(a_benchmark(), commit_info={"id": "unversioned", "branch": "(unknown)"})
    bare["machine_info"] = {"processor": "arm", "cpu": {}}
    bare["datetime"] = "2025-01-15T08:00:00"
    (run,) = read_pytest_benchmark(written(tmp_path, bare)).runs
    assert run.commit is None
    assert run.machine.cpu_model == "arm"
    assert run.created_at == "2025-01-15T08:00:00Z"


def test_a_machine_is_known_again(tmp_path: Path) -> None:
    """Whatever its host is called and at whatever clock it ran; not with another processor."""

    def fingerprint(**changes: object) -> str:
        file = a_file(a_benchmark())
        file["machine_info"].update(changes)
        return read_pytest_benchmark(written(tmp_path, file)).machine.fingerprint

    same = {"brand_raw": "A CPU", "count": 4, "hz_actual_friendly": "2.2 GHz"}
    assert fingerprint() == fingerprint(node="runner-18", cpu=same)
    assert fingerprint() != fingerprint(cpu={**same, "brand_raw": "Another CPU"})
    assert fingerprint() != fingerprint(cpu={**same, "count": 8})


def test_a_benchmark_without_samples_says_why(tmp_path: Path) -> None:
    """As `--benchmark-autosave` keeps it: no values, and the option that keeps them."""
    file = a_file(a_benchmark(data=None), a_benchmark("test_b"))
    one = read_pytest_benchmark(written(tmp_path, file))
    first, second = one.cells.values()
    assert first.metrics["duration_s"].values == ()
    assert "--benchmark-save-data" in (first.metrics["duration_s"].reason or "")
    assert (first.status, second.status) == ("not_run", "ok")
    assert one.notes[0].startswith("1 of 2 benchmarks can't be compared: the file holds no samples")


def test_calls_of_a_round_are_not_divided_by_twice(tmp_path: Path) -> None:
    """The file's samples are of one call already; how many made a round is said."""
    file = a_file(a_benchmark())
    file["benchmarks"][0]["stats"]["iterations"] = 1000
    (cell,) = read_pytest_benchmark(written(tmp_path, file)).cells.values()
    assert cell.metrics["duration_s"].values == (0.2, 0.1, 0.4)
    assert "mean of 1000 calls" in cell.workload.description


def test_thousands_of_rounds_are_medians_of_successive_ones(tmp_path: Path) -> None:
    """So that a baseline stays small, and no round counts as much as a process of its own."""
    data = [float(place) for place in range(10 * MOST_BLOCKS)]
    file = a_file(a_benchmark(data=data))
    file["benchmarks"][0]["stats"]["rounds"] = len(data)
    one = read_pytest_benchmark(written(tmp_path, file))
    (cell,) = one.cells.values()
    # By hand: the median of 0…9 is 4.5.
    assert cell.metrics["duration_s"].values == tuple(4.5 + 10 * place for place in range(100))
    assert len(set(cell.metrics["duration_s"].blocks)) == 100
    assert "median of 10 rounds" in cell.workload.description
    assert len(one.notes) == 1
    few = a_file(a_benchmark(data=data[:MOST_BLOCKS]))
    (cell,) = read_pytest_benchmark(written(tmp_path, few)).cells.values()
    assert cell.metrics["duration_s"].values == tuple(data[:MOST_BLOCKS])


def test_two_benchmarks_of_one_name_stay_apart(tmp_path: Path) -> None:
    """By their class in a module, by their full name in a group; the same one twice is refused."""
    in_class = a_benchmark(fullname="tests/test_speed.py::TestIt::test_a")
    one = read_pytest_benchmark(written(tmp_path, a_file(a_benchmark(), in_class)))
    assert [name for name, _ in one.cells] == ["test_a", "TestIt::test_a"]
    grouped = [
        a_benchmark(group="g"),
        a_benchmark(group="g", fullname="tests/test_other.py::test_a"),
    ]
    one = read_pytest_benchmark(written(tmp_path, a_file(*grouped)))
    assert [name for name, _ in one.cells] == [
        "tests/test_speed.py::test_a",
        "tests/test_other.py::test_a",
    ]
    with pytest.raises(BaselineError, match="twice"):
        read_pytest_benchmark(written(tmp_path, a_file(a_benchmark(), a_benchmark())))


def problem(path: Path) -> str:
    with pytest.raises(BaselineError) as caught:
        read_pytest_benchmark(path)
    assert caught.value.exit_status == ExitStatus.NOT_COMPARABLE
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cut off or damaged"),
        ('{"benchmarks": [', "cut off or damaged"),
        ("[" * 100_000, "cut off or damaged"),
        ("{}", "not a file of pytest-benchmark"),
        ("[]", "not a file of pytest-benchmark"),
        ('{"benchmarks": [], "machine_info": {}}', "holds no benchmarks"),
        ('{"benchmarks": [{}], "machine_info": {}}', "benchmarks.0.name: Field required"),
        ('{"benchmarks": [7], "machine_info": {}}', "benchmarks.0"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """By what is wrong with them."""
    path = tmp_path / "file.json"
    path.write_text(text)
    assert said in problem(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """And a folder, with the option that makes one."""
    assert "There is no file" in problem(tmp_path / "none.json")
    assert "Can't read" in problem(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1])
def test_a_sample_that_is_no_time_is_named(tmp_path: Path, value: float) -> None:
    """NaN, infinity and times below 0, with the benchmark's name."""
    said = problem(written(tmp_path, a_file(a_benchmark(data=[0.1, value]))))
    assert "a sample of 'test_a' is" in said


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    """1e999 is read as infinity by Python, and is no time."""
    path = tmp_path / "file.json"
    text = json.dumps(a_file(a_benchmark(data=[0.1, 123456.5])))
    path.write_text(text.replace("123456.5", "1e999"))
    assert "data.1" in problem(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["benchmarks"][0]["stats"]["data"].pop(), "not a block each"),
        (lambda one: one["benchmarks"][0].update(extra_info={}), "does not say which cell"),
        (lambda one: one["benchmarks"].append(one["benchmarks"][0]), "twice"),
        (lambda one: one["edgebench"]["cells"].clear(), "is not described"),
        (lambda one: one["edgebench"]["variants"].clear(), "is not described"),
        (lambda one: one["edgebench"].update(schema_version=2), "Upgrade edgebench"),
        (lambda one: one["edgebench"].pop("runs"), "edgebench.runs: Field required"),
    ],
)
def test_an_export_that_was_edited_is_refused(
    tmp_path: Path, change: Callable[[Any], object], said: str
) -> None:
    """By what does not fit."""
    document = export_pytest_benchmark(small_side())
    change(document)
    assert said in problem(written(tmp_path, document))


def test_files_are_known_by_their_content() -> None:
    """Whatever they are called."""
    assert is_pytest_benchmark(export_pytest_benchmark(small_side()))
    assert is_pytest_benchmark(a_file())
    assert not is_pytest_benchmark({"benchmarks": []})
    assert not is_pytest_benchmark([])


def test_dates_are_read_as_pytest_benchmark_writes_them() -> None:
    """What is exported is a time with its offset, as Python's isoformat gives it."""
    document = export_pytest_benchmark(small_side(runs=(side_run(machine=machine()),)))
    found = document["datetime"]
    assert isinstance(found, str)
    assert datetime.fromisoformat(found).utcoffset() is not None
