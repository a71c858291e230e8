"""What a run, several runs or a folder of runs say as one side of a comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from sample_quality import quality_sample
from sample_run import handmade, sample
from side_sample import interleaved, run, side

from edgebench.harness.compare.merging import merged
from edgebench.harness.compare.run_side import UNITS_DIFFER, side_of_run
from edgebench.harness.compare.sides import read_baseline_side, read_side
from edgebench.harness.errors import BaselineError, NotComparableError, ResultError
from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.run import Run, read_run
from edgebench.harness.results.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

RATES = {"a": {"decode_rate": [10.0, 11.0, 12.0]}}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of several variants, two workloads and a crash."""
    return sample(blocks=2).write(tmp_path_factory.mktemp("run"))


def test_samples_are_the_measured_repetitions_with_their_blocks(sampled: Path) -> None:
    """In the order of the file, warm-ups and failures left out; the block is named by the run."""
    found = read_side([sampled])
    cell = found.cells["llama.cpp Q8_0 threads=2", "chat"]
    lines = [json.loads(each) for each in (sampled / "trials.jsonl").read_text().splitlines()]
    expected = [
        (("20250114T101500Z-3f9c2a", each["block"]), each["metrics"]["decode_rate"]["value"])
        for each in lines
        if (each["variant"], each["workload"], each["phase"]) == (*cell.key, "measured")
    ]
    samples = cell.metrics["decode_rate"]
    assert list(zip(samples.blocks, samples.values, strict=True)) == expected
    assert len(expected) == 4
    assert (samples.unit, samples.source, samples.reason) == ("token/s", "derived", None)


def test_repetitions_of_a_block_count_once() -> None:
    """A block's value is the median of its repetitions."""
    found = side("a", RATES)
    samples = found.cells["a", "w"].metrics["decode_rate"]
    doubled = type(samples)(
        (1.0, 2.0, 9.0, 4.0), (("s", 0), ("s", 0), ("s", 0), ("s", 1)), "s", "observed"
    )
    assert doubled.by_block() == {("s", 0): 2.0, ("s", 1): 4.0}


def test_loads_belong_to_every_workload_of_their_variant(sampled: Path) -> None:
    """A block has one load, which all workloads of the block ran in."""
    cells = read_side([sampled]).cells
    for workload in ("chat", "pp512-tg128"):
        loads = cells["llama.cpp Q8_0 threads=2", workload].metrics["load_s"]
        assert [block for _, block in loads.blocks] == [0, 1]


def test_what_was_not_measured_has_its_reason(sampled: Path) -> None:
    """As the run recorded it."""
    cell = read_side([sampled]).cells["llama.cpp Q8_0 threads=2", "chat"]
    assert cell.metrics["cpu_clock_hz"].values == ()
    assert cell.metrics["cpu_clock_hz"].reason == "the virtual machine does not show it"


def test_facts_of_the_artifact_are_known_without_a_measurement(sampled: Path) -> None:
    """Its size in bytes, and 8 times that over the weights."""
    metrics = read_side([sampled]).cells["llama.cpp Q8_0 threads=2", "chat"].metrics
    assert metrics["model_bytes"].values == (144_000_000.0,)
    assert metrics["bits_per_weight"].values == (8 * 144_000_000 / 134_515_008,)


def test_a_cell_that_failed_is_there_with_its_failure(sampled: Path) -> None:
    """It has no metric, not even of its load or its file."""
    cell = read_side([sampled]).cells["llama.cpp F16 threads=2", "pp512-tg128"]
    assert cell.status == "failed"
    assert dict(cell.metrics) == {}
    assert cell.failure is not None


def test_cells_are_as_the_run_sums_them_up(sampled: Path) -> None:
    """Their order, their status and their flags are those of its summary."""
    found = read_side([sampled])
    record = read_run(sampled)
    assert [(each.key, each.status, list(each.flags)) for each in found.cells.values()] == [
        ((each.variant, each.workload), each.status, each.flags)
        for each in summarize(record.record, record.trials)
    ]


def test_effective_options_are_those_of_the_load(sampled: Path) -> None:
    """Also where the record was not finished, and does not have them."""
    cell = read_side([sampled]).cells["llama.cpp Q8_0 threads=2", "chat"]
    assert cell.variant.effective_options["batch_size"] == 512


def test_windows_of_a_text_are_kept(tmp_path: Path) -> None:
    """Of each variant that rated it as often as the workload says."""
    found = read_side([quality_sample(blocks=1).write(tmp_path / "rated")])
    rated = [cell for cell in found.cells.values() if cell.workload.name == "prose"]
    assert {len(cell.windows) for cell in rated} == {30}
    assert all(len(cell.metrics["perplexity"].values) == 1 for cell in rated)
    assert {"the reference of quality"} <= found.hashes.keys()


def test_an_interleaved_run_names_its_blocks_after_the_session() -> None:
    """So that blocks of one number on both sides are pairs."""
    found = side("a", RATES, interleaved=interleaved("both", "candidate", "b", "threads=1"))
    assert found.runs[0].session == "both"
    assert found.runs[0].interleaved
    assert found.runs[0].difference == "threads=1"
    assert found.cells["a", "w"].metrics["decode_rate"].blocks[0] == ("both", 0)


@pytest.mark.parametrize("damage", ['{"kind": "gener', '{"decode_rate": NaN}', "\x00"])
def test_damaged_lines_are_told(damage: str, tmp_path: Path) -> None:
    """Half a line, a line with NaN and rubbish are left out, and the side says so."""
    folder = sample(blocks=1).write(tmp_path / "a")
    with (folder / "trials.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(damage + "\n")
    assert read_side([folder]).notes == (
        "1 line of its trials could not be read, and is left out.",
    )


def test_a_value_that_is_no_number_is_a_damaged_line(tmp_path: Path) -> None:
    """NaN in a trial takes the trial out, not the run."""
    folder = sample(blocks=2).write(tmp_path / "a")
    file = folder / "trials.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    place = next(
        at
        for at, each in enumerate(lines)
        if '"measured"' in each and '"chat"' in each and "threads=1" in each
    )
    value = json.loads(lines[place])
    value["metrics"]["decode_rate"]["value"] = float("nan")
    lines[place] = json.dumps(value) + "\n"
    file.write_text("".join(lines), encoding="utf-8")
    found = read_side([folder])
    assert len(found.notes) == 1
    samples = found.cells["llama.cpp Q8_0 threads=1", "chat"].metrics["decode_rate"]
    assert len(samples.values) == 3


def test_a_run_without_a_trial_says_so(tmp_path: Path) -> None:
    """It is a side all the same: of cells that were not run."""
    folder = sample().write(tmp_path / "a")
    (folder / "trials.jsonl").unlink()
    found = read_side([folder])
    assert {cell.status for cell in found.cells.values()} == {"not_run"}
    assert found.notes == ("It holds no measured repetition.",)


def test_a_run_that_is_not_finished_says_so(tmp_path: Path) -> None:
    """It counts as far as it went."""
    folder = sample(blocks=1, changes={"status": "interrupted"}).write(tmp_path / "a")
    assert read_side([folder]).notes == (
        "The run is not finished (interrupted): it counts as far as it went.",
    )


def test_one_metric_in_two_units_is_no_sample() -> None:
    """Nothing of it can be taken together."""
    record, trials = handmade(RATES)
    odd = Measured(value=0.01, unit="token/ms", source="derived")
    trials[1] = trials[1].model_copy(update={"metrics": {"decode_rate": odd}})
    found = side_of_run(Run(record=record, trials=tuple(trials), path=run("a", RATES).path))
    samples = found.cells["a", "w"].metrics["decode_rate"]
    assert (samples.values, samples.reason) == ((), UNITS_DIFFER)


def test_runs_become_one_side_with_all_samples() -> None:
    """Oldest first, whatever order they are given in; blocks of two runs stay apart."""
    late = side("b", {"a": {"decode_rate": [13.0]}})
    found = merged([late, side("a", RATES)], "both")
    assert [each.id for each in found.runs] == ["a", "b"]
    samples = found.cells["a", "w"].metrics["decode_rate"]
    assert samples.values == (10.0, 11.0, 12.0, 13.0)
    assert samples.blocks == (("a", 0), ("a", 1), ("a", 2), ("b", 0))
    assert found.label == "both"


def test_a_cell_that_failed_in_one_of_two_runs_is_partial() -> None:
    """It has the samples of the one and the failure of the other."""
    failed = run("b", RATES)
    failure = Failure(kind="crash", message="It ended.")
    trials = tuple(
        each.model_copy(update={"status": "failed", "metrics": {}, "failure": failure})
        for each in failed.trials
    )
    broken = side_of_run(Run(failed.path, failed.record, trials))
    cell = merged([side("a", RATES), broken], "both").cells["a", "w"]
    assert cell.status == "partial"
    assert cell.metrics["decode_rate"].values == (10.0, 11.0, 12.0)
    assert cell.failure == failure


def test_a_workload_that_only_one_run_has_is_kept() -> None:
    """The newest run's cells come first."""
    record, trials = handmade(
        {"z": {"decode_rate": [1.0]}}, id="b", created_at="2025-01-02T00:00:00Z"
    )
    newest = side_of_run(Run(run("b", RATES).path, record, tuple(trials)))
    assert list(merged([side("a", RATES), newest], "x").cells) == [("z", "w"), ("a", "w")]


def _machine(fingerprint: str, kernel: str = "6.8.0-45-generic") -> dict[str, object]:
    record, _ = handmade(RATES)
    return record.machine.model_dump() | {"fingerprint": fingerprint, "kernel": kernel}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "a", "created_at": "2025-01-01T10:00:00Z"}, "would count twice"),
        ({"quick": True}, "quick look"),
        ({"machine": _machine("other", "6.9.0")}, "kernel 6.9.0"),
        (
            {"scenario": {"model": {"name": "m", "source": "path:other.gguf"}}},
            "different models",
        ),
        ({"options": {"a": {"threads": 3}}}, "threads"),
    ],
)
def test_runs_of_two_things_are_no_side(changes: dict[str, object], said: str) -> None:
    """Both are named, with what differs and what to do."""
    with pytest.raises(NotComparableError) as caught:
        merged([side("a", RATES), side("b", RATES, **changes)], "both")
    assert said in str(caught.value)
    assert "\n  a: " in str(caught.value)
    assert caught.value.remedy


def test_two_sides_of_an_interleaved_run_are_no_side() -> None:
    """One of them is the baseline of the other."""
    one = side("a", RATES, interleaved=interleaved("s", "baseline", "b"))
    other = side("b", RATES, interleaved=interleaved("s", "candidate", "a"))
    with pytest.raises(NotComparableError, match="interleaved with each other"):
        merged([one, other], "both")


def test_a_workload_that_is_another_one_in_each_run_is_refused() -> None:
    """Its name, what differs and both values are told."""
    other = run("b", RATES)
    workload = other.record.workloads[0].model_copy(update={"generate_tokens": 99})
    record = other.record.model_copy(update={"workloads": [workload]})
    with pytest.raises(NotComparableError, match="number of tokens to generate") as caught:
        merged([side("a", RATES), side_of_run(Run(other.path, record, other.trials))], "both")
    assert "b: 99" in str(caught.value)


def _write(folder: Path, name: str, **changes: object) -> Path:
    record, trials = handmade(RATES, id=name, created_at=f"2025-01-{name}T00:00:00Z", **changes)
    target = folder / name
    target.mkdir()
    (target / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    (target / "trials.jsonl").write_text(
        "".join(each.model_dump_json() + "\n" for each in trials), encoding="utf-8"
    )
    return target


def test_a_folder_of_runs_is_all_that_are_finished_and_in_full(tmp_path: Path) -> None:
    """What is left out is named; so is the baseline side of an interleaved run."""
    _write(tmp_path, "01")
    _write(tmp_path, "02")
    _write(tmp_path, "03", quick=True)
    _write(tmp_path, "04", status="interrupted")
    _write(tmp_path, "05", interleaved=interleaved("s", "baseline", "06"))
    _write(tmp_path, "06", interleaved=interleaved("s", "candidate", "05"))
    found = read_side([tmp_path])
    assert [each.id for each in found.runs] == ["01", "02", "06"]
    notes = "\n".join(found.notes)
    assert "03 is left out: it is a quick look." in notes
    assert "04 is left out: it is not finished (interrupted)." in notes
    assert "05 is left out: it is the baseline side of an interleaved run." in notes


def test_a_folder_without_a_run_that_counts_says_why(tmp_path: Path) -> None:
    """The reason of each run is told."""
    _write(tmp_path, "01", quick=True)
    with pytest.raises(ResultError, match="01 is left out: it is a quick look"):
        read_side([tmp_path])


def test_a_path_to_the_record_is_its_run(tmp_path: Path) -> None:
    """A shell completes to the file."""
    folder = _write(tmp_path, "01")
    assert read_side([folder / "run.json"]).runs[0].id == "01"


def test_several_paths_are_one_side(tmp_path: Path) -> None:
    """Their label names both."""
    one, two = _write(tmp_path, "01"), _write(tmp_path, "02")
    found = read_side([one, two])
    assert len(found.runs) == 2
    assert found.label == f"{one}, {two}"


@pytest.mark.parametrize("what", ["nothing", "empty", "text"])
def test_what_is_no_result_is_refused(what: str, tmp_path: Path) -> None:
    """Of a candidate it is a wrong command line; as a baseline it is missing."""
    path = tmp_path / what
    if what == "empty":
        path.mkdir()
    elif what == "text":
        path.write_text("root:x:0:0\n", encoding="utf-8")
    with pytest.raises(ResultError, match=str(path)) as caught:
        read_side([path])
    assert caught.value.remedy
    with pytest.raises(BaselineError, match="no baseline to compare with"):
        read_baseline_side([path])


def test_notes_of_several_runs_name_no_folder_of_this_machine(tmp_path: Path) -> None:
    """They go into git with a baseline: the run's folder alone is named."""
    one = _write(tmp_path, "01", status="interrupted")
    two = _write(tmp_path, "02")
    notes = read_side([one, two]).notes
    assert len(notes) == 1
    assert notes[0].startswith("01: ")
    assert str(tmp_path) not in notes[0]


def test_what_is_known_of_a_file_is_no_measurement(tmp_path: Path) -> None:
    """A run whose trials are gone still knows the model's size, and is no baseline."""
    folder = _write(tmp_path, "01")
    (folder / "trials.jsonl").write_bytes(b"")
    assert read_side([folder])
    with pytest.raises(BaselineError, match="holds no measurement"):
        read_baseline_side([folder])
