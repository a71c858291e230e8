"""Reading a run's folder in whatever state it was left."""

from __future__ import annotations

import gc
import json
import math
import shutil

import pytest

import edgebench
from edgebench.harness.errors import ExitStatus, ResultError
from edgebench.harness.results.run import read_run, refuse_strays
from edgebench.reports.data import load_report_data

# 8 blocks of 5 loads and of 9 cells (one of the 10 crashes) with 3 warm-ups and 2 measured
# generations each, and the one trial that crashed.
SAMPLE_TRIALS = 8 * (5 + 9 * (3 + 2)) + 1


@pytest.fixture
def folder(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "run")


def test_reads_every_trial(run_folder):
    """A whole run is read in the order in which it was written."""
    run = edgebench.read_run(run_folder)
    assert len(run.trials) == SAMPLE_TRIALS
    assert run.damaged_lines == 0
    assert run.trials[0].kind == "load"
    assert run.record.scenario_name == "smollm2-135m"


def test_leaves_out_a_line_that_was_cut_off(folder):
    """What a killed run wrote before its last, half line is kept."""
    trials = folder / "trials.jsonl"
    trials.write_bytes(trials.read_bytes()[:-200])
    run = read_run(folder)
    assert len(run.trials) == SAMPLE_TRIALS - 1
    assert run.damaged_lines == 1


@pytest.mark.parametrize(
    "broken",
    [b"{", b"\xff\xfe\x00", b"[]", b"null", b'{"kind": "load"}', b"[" * 100_000, b'"\\ud800"'],
)
def test_leaves_out_a_broken_line_in_the_middle(folder, broken):
    """One line that can't be read costs that line and no other."""
    trials = folder / "trials.jsonl"
    lines = trials.read_bytes().splitlines()
    lines[7] = broken
    trials.write_bytes(b"\n".join(lines) + b"\n\n")
    run = read_run(folder)
    assert len(run.trials) == SAMPLE_TRIALS - 1
    assert run.damaged_lines == 1


@pytest.mark.parametrize("content", [b"", b"\n", None])
def test_a_run_without_trials_is_a_run(folder, content):
    """A run that was killed before its first trial ended can be read."""
    trials = folder / "trials.jsonl"
    trials.unlink()
    if content is not None:
        trials.write_bytes(content)
    run = read_run(folder)
    assert run.trials == ()
    assert run.damaged_lines == 0
    assert run.to_frame().empty


def test_refuses_a_newer_record(folder):
    """A record of a newer format is refused with the versions and what to do."""
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({"schema_version": 2, "unheard": record}))
    with pytest.raises(ResultError) as caught:
        read_run(folder)
    assert "written by a newer edgebench, format 2; this one reads up to 1." in str(caught.value)
    assert "Upgrade edgebench." in str(caught.value)
    assert caught.value.exit_status is ExitStatus.USAGE


@pytest.mark.parametrize("readable", [True, False])
def test_refuses_a_newer_trial(folder, readable):
    """A trial of a newer format is not taken for a damaged one, nor for one of ours."""
    lines = (folder / "trials.jsonl").read_text().splitlines()
    trial = json.loads(lines[3]) | {"schema_version": 7}
    lines[3] = json.dumps(trial if readable else {"schema_version": 7})
    (folder / "trials.jsonl").write_text("\n".join(lines))
    with pytest.raises(ResultError, match="newer edgebench, format 7"):
        read_run(folder)


def test_says_what_was_expected_of_a_missing_folder(tmp_path):
    """A path that holds no run is named, with what should be there."""
    with pytest.raises(ResultError) as caught:
        read_run(tmp_path / "none")
    assert "none is not a folder" in str(caught.value)
    assert "run.json and trials.jsonl" in str(caught.value)


def test_says_that_a_folder_is_no_run(tmp_path):
    """A folder without a record is told from a missing folder."""
    with pytest.raises(ResultError, match=r"holds no readable run\.json"):
        read_run(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_a_broken_record_is_an_error_of_ours(folder, content):
    """A record that is no record gives a message, not a traceback of a library."""
    (folder / "run.json").write_bytes(content)
    with pytest.raises(ResultError, match="is not the record of a run"):
        read_run(folder)


def edited(folder, change):
    """The folder with its record as `change` left it."""
    record = json.loads((folder / "run.json").read_text())
    change(record)
    (folder / "run.json").write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda record: record["variants"][0].update(id="other"), "variant 'llama.cpp source"),
        (lambda record: record["variants"].pop(), "variant 'llama.cpp Q4_0"),
        (lambda record: record["workloads"].pop(0), "workload 'chat'"),
    ],
)
def test_no_report_of_trials_that_the_record_does_not_know(folder, change, what):
    """A name that was changed or removed is an error that says the file, the name, the remedy."""
    edited(folder, change)
    with pytest.raises(ResultError) as caught:
        load_report_data(folder)
    assert f"{folder / 'trials.jsonl'} holds trials of the {what}" in str(caught.value)
    assert "edited by hand" in caught.value.remedy
    # Whoever wants the bare trials has them.
    assert len(read_run(folder).to_frame()) > 0


def test_no_report_of_two_variants_of_one_name(folder):
    """Every trial would be counted for both."""
    edited(folder, lambda record: record["variants"].append(record["variants"][0]))
    with pytest.raises(ResultError, match=r"two variants that are called 'llama\.cpp source"):
        load_report_data(folder)


def test_trials_of_proofs_are_no_strays(folder):
    """What was only verified is in the record too."""
    edited(folder, lambda record: record["proofs"].append(record["variants"].pop()))
    refuse_strays(read_run(folder))


def test_keeps_unknown_fields(folder):
    """What a later edgebench of the same format adds is not lost."""
    record = json.loads((folder / "run.json").read_text()) | {"weather": "mild"}
    (folder / "run.json").write_text(json.dumps(record))
    assert read_run(folder).record.model_extra == {"weather": "mild"}


def test_reduces_while_it_reads(run_folder):
    """A caller can drop raw samples of a large run before they add up."""
    run = read_run(run_folder, reduce=lambda trial: trial.model_copy(update={"tokens": None}))
    assert len(run.trials) == SAMPLE_TRIALS
    assert all(trial.tokens is None for trial in run.trials)


def test_leaves_the_garbage_collector_as_it_was(run_folder):
    """Reading switches the collector off only for itself."""
    assert gc.isenabled()
    read_run(run_folder)
    assert gc.isenabled()


def test_frame_has_a_row_for_each_trial_and_metric(sample_run, by_hand):
    """Two blocks with two metrics give four rows with the promised columns."""
    data = by_hand({"A": {"decode_rate": [50.0, 51.0], "ttft_s": [0.5, None]}})
    frame = data.run.to_frame()
    assert list(frame.columns) == [
        *("runner", "engine", "engine_version", "variant", "quantization", "workload", "block"),
        *("repetition", "phase", "status", "metric", "value", "unit", "source", "reason"),
    ]
    assert len(frame) == 4
    rates = frame[frame.metric == "decode_rate"]
    assert list(rates.value) == [50.0, 51.0]
    assert list(rates.block) == [0, 1]
    assert set(rates.unit) == {"token/s"}
    missing = frame[frame.value.isna()]
    assert list(missing.reason) == ["no such sensor"]
    assert set(frame.runner) == {"made-up"}


def test_frame_has_a_row_for_a_failure(run_folder):
    """A trial that failed is a row with its reason and without a value."""
    frame = read_run(run_folder).to_frame()
    failed = frame[frame.status == "failed"]
    assert len(failed) == 1
    row = failed.iloc[0]
    assert row.variant == "llama.cpp F16 threads=2"
    assert row.reason == "The runner's process ended while it generated."
    assert math.isnan(row.value)


def test_frame_has_loads_without_a_workload(run_folder):
    """A load belongs to no workload: 8 blocks of 5 variants with 4 metrics each."""
    frame = read_run(run_folder).to_frame()
    assert frame.workload.isna().sum() == 8 * 5 * 4
