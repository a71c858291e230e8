"""The memory's bandwidth from the command line: measured, kept, and held against a run's rates."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import edgebench

from edgebench.devices.bandwidth import Bandwidth
from edgebench.devices.machine import describe_machine
from edgebench.harness.bandwidth import bandwidth_record, keep_bandwidth
from edgebench.harness.results.run import read_run

TOLD = "name: told, token_s: 0.001, virtual_clock: true, threads: 1, weight_bytes: {bytes}"
UNTOLD = "name: untold, token_s: 0.001, virtual_clock: true, threads: 1"
SLOW = "{warmup: {min: 1, max: 1}, repetitions: {min: 5, max: 5}, timeout_s: 20}"


@pytest.fixture
def kept():
    """One GB/s was measured of this machine with one thread: 1000 tokens/s read 1 MB each of it."""
    found = Bandwidth(1, 1 << 28, None, "lines-1", (1e9,) * 5)
    fingerprint = describe_machine().fingerprint
    keep_bandwidth(bandwidth_record(found, fingerprint, now=datetime.now(UTC)))


def run(make_scenario, tmp_path, *variants: str, options: tuple[str, ...] = (), **more: str):
    scenario = make_scenario(*variants, **{"measure": SLOW, **more})
    done = edgebench("run", scenario, "--out", tmp_path / "runs", "--json", *options)
    assert done.returncode == 0, done.stderr
    return read_run(Path(json.loads(done.stdout)["run_dir"])), done


def test_a_rate_above_the_bandwidth_is_broken_in_every_form(make_scenario, tmp_path, kept):
    """1000 tokens/s of 3 MB take 3 GB/s of 1 GB/s: 300 %, said in each of the reports."""
    made, _done = run(make_scenario, tmp_path, TOLD.format(bytes=3_000_000), UNTOLD)
    cells = {each.variant: each for each in made.record.cells}
    assert cells["told"].metrics["mbu"].median == pytest.approx(3.0)
    assert "above_bandwidth" in cells["told"].flags
    assert "above_bandwidth" not in cells["untold"].flags
    assert "does not tell" in (cells["untold"].metrics["mbu"].reason or "")
    assert [each.bytes_per_s for each in made.record.bandwidth] == [1e9]

    done = edgebench(
        "report", made.path, "--format", "html,md,csv,json,latex", "--out", tmp_path / "forms"
    )
    assert done.returncode == 0, done.stderr
    forms = [path for path in (tmp_path / "forms").rglob("*") if path.is_file()]
    assert len(forms) >= 5
    for suffix in (".html", ".md", ".csv", ".json", ".tex"):
        texts = [path.read_text() for path in forms if path.suffix == suffix]
        assert any("above" in text and "bandwidth" in text for text in texts), suffix
    page = next(path for path in forms if path.suffix == ".html").read_text()
    assert "was measured to deliver" in page


def test_a_rate_below_it_has_its_share(make_scenario, tmp_path, kept):
    """Of 100 kB a token: 10 %, and nothing is flagged; each repetition has its own."""
    made, _done = run(make_scenario, tmp_path, TOLD.format(bytes=100_000))
    (cell,) = made.record.cells
    assert cell.metrics["mbu"].median == pytest.approx(0.1)
    assert "above_bandwidth" not in cell.flags
    shares = [
        each.metrics["mbu"].value
        for each in made.trials
        if each.kind == "generate" and each.phase == "measured"
    ]
    assert shares == pytest.approx([0.1] * 5)
    frame = made.to_frame()
    assert set(frame[frame.metric == "mbu"].unit) == {"1"}


@pytest.mark.parametrize(
    ("options", "measure", "reason"),
    [
        ((), SLOW[:-1] + ", bandwidth: false}", "measure.bandwidth is off"),
        (("--quick",), SLOW, "quick look"),
    ],
)
def test_it_need_not_be_measured(make_scenario, tmp_path, options, measure, reason):
    """Switched off, or in a quick look, no memory is read, and the share is null with that."""
    made, done = run(
        make_scenario, tmp_path, TOLD.format(bytes=1000), options=options, measure=measure
    )
    assert made.record.bandwidth == []
    assert "reading memory" not in done.stderr
    assert reason in (made.record.cells[0].metrics["mbu"].reason or "")


def test_runs_of_what_reads_no_weights_read_no_memory(make_scenario, tmp_path):
    """The fake runner alone costs nothing."""
    made, done = run(make_scenario, tmp_path, UNTOLD)
    assert made.record.bandwidth == []
    assert "reading memory" not in done.stderr


def test_the_probe_measures_and_says_what_it_means():
    """A table of threads, and JSON with the samples; all within 80 columns."""
    done = edgebench("probe", "bandwidth", "--seconds", "0.1", "--threads", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:2] == ["threads", "GB/s"]
    assert float(lines[2].split()[1]) > 0.1
    assert "last-level caches" in done.stdout or "does not tell" in done.stdout

    done = edgebench("probe", "bandwidth", "--seconds", "0.1", "--threads", "2,1,2", "--json")
    found = json.loads(done.stdout)
    assert [each["threads"] for each in found] == [2, 1]
    assert all(len(each["samples"]) >= 5 for each in found)


@pytest.mark.parametrize("threads", ["0", "-1", "x", "1,,2", "", "1025", "1.5"])
def test_wrong_threads_are_told(threads):
    """What is no number of threads is named, with what to write instead."""
    done = edgebench("probe", "bandwidth", "--threads", threads)
    assert done.returncode == 2
    assert "--threads 1,2,4" in done.stderr


@pytest.mark.parametrize("seconds", ["0", "nan", "inf", "-1", "x"])
def test_wrong_seconds_are_told(seconds):
    """Neither endless nor nothing."""
    done = edgebench("probe", "bandwidth", "--threads", "1", "--seconds", seconds)
    assert done.returncode == 2


def test_the_table_of_platforms_holds_the_rate_against_the_measured_memory(
    make_scenario, tmp_path, kept
):
    """100 kB x 1000 tokens/s are 10 % of the GB/s that was measured, and it says so."""
    made, _done = run(make_scenario, tmp_path, TOLD.format(bytes=100_000))
    done = edgebench("report", made.path, "--format", "md", "--out", tmp_path / "forms")
    assert done.returncode == 0, done.stderr
    (page,) = (tmp_path / "forms").rglob("*.md")
    text = page.read_text()
    assert "Of the 1.0 GB/s that 1 thread read here, measured" in text
    own = next(line for line in text.splitlines() if "fake" in line and "| 10" in line)
    assert "told" in own
    assert "1.0 GB/s with 1 thread" in text  # among the machine's facts
