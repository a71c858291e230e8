"""``edgebench history`` as its users have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from history_sample import change, sha, write_run, write_runs

if TYPE_CHECKING:
    from pathlib import Path

STEP = [100.0] * 12 + [90.0] * 8


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with a step at the 13th run, a quick look and a damaged record."""
    folder = tmp_path_factory.mktemp("history")
    write_runs(folder, STEP)
    write_run(folder, 30, 50.0, quick=True)
    damaged = write_run(folder, 31, 50.0)
    (damaged / "run.json").write_text("{", encoding="utf-8")
    return folder


def test_the_overview_is_a_line_for_each_series(results):
    """First and last, trend and change, at 80 columns; what is left out is said."""
    done = edgebench("history", results)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "20 runs; left out: 1 quick look"
    assert lines[1] == "1 record could not be read:"
    (decode,) = [line for line in lines if line.startswith("    decode ")]
    assert "100.0 → 90.0 tokens/s" in decode
    assert "!−10.0 % at 01-26" in decode
    assert f"by commit {sha(12)[:10]}" in " ".join(done.stdout.split())
    assert done.stderr == ""


def test_one_series_is_a_line_for_each_run(results):
    """With dates, commits, medians with their intervals, and a mark where it changed."""
    done = edgebench("history", results, "--metric", "decode_rate")
    lines = done.stdout.splitlines()
    marked = [line for line in lines if "<-" in line]
    assert len(marked) == 1
    assert marked[0].startswith(f"2025-01-26       {sha(12)[:10]}")
    assert marked[0].endswith("<- −10.0 %")
    assert sum(line.startswith("2025-") for line in lines) == 20
    assert max(map(len, lines)) <= 80


def test_json_has_everything(results):
    """For scripts: points, changes with commits, what was left out and why."""
    done = edgebench("history", results, "--metric", "decode_rate", "--json")
    said = json.loads(done.stdout)
    assert said["schema_version"] == 1
    assert said["left_out"] == {"quick look": 1}
    assert len(said["skipped"]) == 1
    (series,) = said["series"]
    assert [point["median"] for point in series["points"]] == STEP
    (found,) = series["changes"]
    assert (found["at"], found["first_run"]) == (12, "run-012")
    assert found["last_commit_before"] == sha(11)
    assert found["first_commit_after"] == sha(12)
    assert found["ratio"] == pytest.approx(0.9)


def test_a_page_is_written(results, tmp_path):
    """With plots, and nothing that it would have to load."""
    file = tmp_path / "new" / "history.html"
    done = edgebench("history", results, "--html", file)
    assert done.returncode == 0, done.stderr
    text = file.read_text(encoding="utf-8")
    assert text.count('role="img"') == 2
    assert "−10.0 %" in text
    assert "src=" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "speed"), "has a value of speed"),
        (("--variant", "none"), "is selected"),
        (("--machine", "ffff"), "is selected"),
        (("--machine", "this"), "is selected"),
        (("--branch", "none"), "is selected"),
        (("--since", "2099-01-01"), "is selected"),
        (("--since", "yesterday"), "does not match the format"),
        (("--scenario", "none"), "is selected"),
    ],
)
def test_what_selects_nothing_says_so(results, options, said):
    """Status 2, one sentence and what to do; never a traceback."""
    done = edgebench("history", results, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_folder_without_runs_says_what_was_meant(tmp_path):
    """An empty folder, a missing one, and one of unfinished runs only."""
    done = edgebench("history", tmp_path)
    assert (done.returncode, "holds no finished run" in done.stderr) == (2, True)
    done = edgebench("history", tmp_path / "missing")
    assert (done.returncode, "is not a folder of results" in done.stderr) == (2, True)
    change(write_run(tmp_path, 0, 1.0), status="running")
    done = edgebench("history", tmp_path)
    assert "(1 x not finished)" in done.stderr


def test_real_runs_of_the_testing_runner_are_labelled(make_scenario, run_fake, tmp_path):
    """Three runs by the harness make a series, marked as made up."""
    path = make_scenario("token_s: 0.01, virtual_clock: true")
    for _time in range(3):
        run_fake(path)
    done = edgebench("history", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert "(made up by the testing runner)" in done.stdout
    said = done.stdout.splitlines()
    assert said[2] == "Nothing can be said of changes yet: fewer than 10 runs in a series."
    assert said[-1].endswith("3 runs")
