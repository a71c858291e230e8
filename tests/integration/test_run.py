"""Whole runs with the fake runner: blocks, failures, budgets, interruption and resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.power import MeterSearch
from edgebench.harness.errors import ResultError
from edgebench.harness.execute import execute
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.reports.data import build_report_data
from edgebench.reports.sweeps import sweeps
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario, RunFake

TWO_WORKLOADS = (
    "[{name: short, prompt: hello, generate_tokens: 4},"
    " {name: long, prompt_tokens: 40, generate_tokens: 3, depth: 5}]"
)
CLOCKED = "virtual_clock: true, prefill_s: 0.5, token_s: 0.25"


def measured(run: object, variant: str | None = None) -> list[object]:
    trials = run.trials  # type: ignore[attr-defined]
    return [
        trial
        for trial in trials
        if trial.kind == "generate"
        and trial.phase == "measured"
        and variant in (None, trial.variant)
    ]


def test_a_run_measures_every_cell_and_says_how_sure_it_is(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """With known delays the medians are known: 0.5 s to the first token, 4 tokens/s after it."""
    path = make_scenario(
        f"threads: 1, {CLOCKED}",
        f"threads: 2, {CLOCKED}",
        workloads=TWO_WORKLOADS,
        measure="{warmup: {min: 1, max: 2}, repetitions: {min: 5, max: 5}, per_block: 1}",
    )
    run = run_fake(path)
    assert run.record.status == "finished"
    assert [(cell.status, cell.n) for cell in run.record.cells] == [("ok", 5)] * 4
    for cell in run.record.cells:
        rate = cell.metrics["decode_rate"]
        assert (rate.median, rate.ci_low, rate.ci_high) == pytest.approx((4.0, 4.0, 4.0))
        assert cell.metrics["prefill_s"].median == pytest.approx(0.5)
        assert cell.metrics["peak_rss_bytes"].median is not None
        assert cell.metrics["decode_energy_j"].median is not None or (
            cell.metrics["decode_energy_j"].reason
        )
        assert cell.flags == []


def test_prompts_have_exactly_the_asked_length(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """prompt_tokens, depth and generate_tokens are what the framework counted."""
    run = run_fake(make_scenario(workloads=TWO_WORKLOADS))
    (trial, *_) = [t for t in run.trials if t.workload == "long"]
    assert trial.tokens is not None
    assert trial.tokens.prompt_tokens == 40
    assert trial.tokens.depth_tokens == 5
    assert len(trial.tokens.generated_ids) == len(trial.tokens.token_ns) == 3
    assert run.record.workloads[1].prompt_tokens == 40


def test_all_variants_get_the_same_prompt(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """Same model, same ids: the generated tokens of both variants are equal."""
    run = run_fake(make_scenario("threads: 1", "threads: 2", workloads=TWO_WORKLOADS))
    made = {
        (trial.workload, tuple(trial.tokens.generated_ids)) for trial in run.trials if trial.tokens
    }
    assert len(made) == 2


def test_blocks_are_shuffled_and_hold_every_variant_once(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """Each block starts each variant once; the order differs between blocks."""
    path = make_scenario(
        "threads: [1, 2, 3]",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 6, max: 6}, per_block: 1}",
    )
    loads = [trial for trial in run_fake(path).trials if trial.kind == "load"]
    orders = [tuple(trial.variant for trial in loads if trial.block == block) for block in range(6)]
    assert all(len(order) == len(set(order)) == 3 for order in orders)
    assert len(set(orders)) > 1


def test_workloads_of_a_process_run_from_small_to_large(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A larger workload first would leave its memory to the smaller one's peak."""
    path = make_scenario(
        workloads="[{name: large, prompt_tokens: 90, generate_tokens: 9},"
        " {name: small, prompt: hello, generate_tokens: 4}]"
    )
    for block in (0, 1):
        trials = [trial for trial in run_fake(path).trials if trial.block == block]
        assert [trial.workload for trial in trials] == [None, *["small"] * 2, *["large"] * 2]


def test_without_interleaving_variants_run_one_after_the_other(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """interleave: false finishes a variant before the next begins."""
    path = make_scenario(
        "threads: [1, 2]",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 3, max: 3}, interleave: false}",
    )
    variants = [trial.variant for trial in run_fake(path).trials if trial.kind == "load"]
    assert variants == sorted(variants)


def test_noisy_cells_get_more_repetitions_and_a_flag(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A steady cell ends at the minimum; one with 40 % jitter goes on to the cap, marked."""
    path = make_scenario(
        f"threads: 1, {CLOCKED}",
        f"threads: 2, {CLOCKED}, jitter: 0.4",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 5, max: 9, ci_half_width: 0.001},"
        " per_block: 1}",
    )
    steady, noisy = run_fake(path).record.cells
    assert (steady.n, steady.flags) == (5, [])
    assert (noisy.n, noisy.flags) == (9, ["noisy"])


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ("fail: load", "framework", "refuse this model"),
        ("fail: crash_at_load", "crash", "SIGSEGV during load"),
        ("fail: crash, signal: SIGABRT", "crash", "SIGABRT during generate"),
        ("fail: exit", "crash", "left with status 7"),
        ("fail: refuse", "framework", "refuse this prompt"),
        ("fail: out_of_memory", "out_of_memory", "out of memory"),
        ("fail: count", "invalid_result", "3 tokens were made of 4"),
        ("fail: clock", "invalid_result", "go back"),
        ("fail: nan", "framework", "can't be sent"),
        ("fail: missing", "unavailable", "missing"),
    ],
)
def test_a_failing_variant_is_a_row_and_the_others_go_on(
    make_scenario: MakeScenario, run_fake: RunFake, options: str, kind: str, words: str
) -> None:
    """Whatever one variant does, its cell names the reason and its neighbour is measured."""
    run = run_fake(make_scenario(f"threads: 1, {options}", "threads: 2"))
    broken, healthy = run.record.cells
    assert (broken.status, broken.n, broken.metrics) == ("failed", 0, {})
    assert broken.failure is not None
    assert broken.failure.kind == kind
    assert words in broken.failure.message
    assert (healthy.status, healthy.n) == ("ok", 2)


def test_a_hang_costs_its_deadline_and_no_more(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A hanging variant is a time-out, tried twice and given up."""
    path = make_scenario(
        "fail: hang",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 5, max: 5}, timeout_s: 0.5}",
    )
    run = run_fake(path)
    assert [trial.failure.kind for trial in run.trials if trial.failure] == ["timeout"] * 2
    assert run.record.cells[0].status == "failed"


def test_a_crash_in_one_workload_spares_the_other(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """The other workload gets a process of its own; the crash's row names its log."""
    path = make_scenario("fail: crash, fail_at_token: 3", workloads=TWO_WORKLOADS)
    run = run_fake(path)
    short, long = run.record.cells
    assert (short.status, long.status) == ("failed", "ok")
    assert short.failure is not None
    assert short.failure.log is not None
    assert "about to die" in (run.path / short.failure.log).read_text()


def test_a_variant_that_fails_now_and_then_is_partial(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """From its third call on the process dies: what it did before counts, the failure shows."""
    path = make_scenario(
        "fail: crash, fail_from_call: 2",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 4, max: 4}, per_block: 2}",
    )
    (cell,) = run_fake(path).record.cells
    assert cell.status == "partial"
    assert cell.n == 4
    assert cell.n_failed >= 2


def test_the_time_budget_ends_the_run_and_says_so(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A spent budget leaves fewer repetitions, flagged as cut."""
    path = make_scenario(
        "token_s: 0.02",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 50, max: 50}, time_budget_s: 1}",
    )
    run = run_fake(path)
    (cell,) = run.record.cells
    assert run.record.stopped_by_budget
    assert cell.n < 50
    assert "cut_by_budget" in cell.flags


def test_a_conversion_is_made_once_and_recorded(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A second run finds the artifact; its record says what made it."""
    path = make_scenario("quantization: copy")
    first, second = run_fake(path), run_fake(path)
    for run in (first, second):
        artifact = run.record.variants[0].artifact
        assert artifact is not None
        assert artifact.made_by.startswith("fake 1")
    assert (first.path / "logs" / "convert-fake.log").exists()
    assert not (second.path / "logs" / "convert-fake.log").exists()


def test_a_prompt_that_can_not_be_made_fails_alone(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A chat template that refuses the prompt is a failed cell; other workloads are measured."""
    path = make_scenario(
        workloads="[{name: refused, prompt: refused, chat_template: true, generate_tokens: 2},"
        " {name: short, prompt: hello, chat_template: true, generate_tokens: 2}]"
    )
    refused, short = run_fake(path).record.cells
    assert (refused.status, short.status) == ("failed", "ok")
    assert refused.failure is not None
    assert refused.failure.kind == "model"
    assert "no such turn" in refused.failure.message


def test_memory_that_a_framework_takes_is_seen(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """64 MiB taken at load are in the anonymous peak, and not in the baseline before it."""
    path = make_scenario("allocate_mb: 64", "allocate_mb: 0")
    large, small = run_fake(path).record.cells
    anonymous = [cell.metrics["peak_anon_bytes"].median for cell in (large, small)]
    baseline = [cell.metrics["baseline_rss_bytes"].median for cell in (large, small)]
    assert anonymous[0] - anonymous[1] == pytest.approx(64 * 2**20, rel=0.05)
    assert baseline[0] == pytest.approx(baseline[1], rel=0.1)


def test_loading_is_a_phase_with_readings_of_its_own(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """64 MiB touched at load fault at least 16,384 pages in there, and hardly any afterwards."""
    run = run_fake(make_scenario("allocate_mb: 64"))
    faults = {trial.kind: trial.metrics["minor_faults"].value for trial in run.trials}
    assert faults["load"] >= 64 * 256
    assert faults["generate"] < 1000
    loads = [trial for trial in run.trials if trial.kind == "load"]
    assert all(trial.metrics["peak_pss_bytes"].value > 64 * 2**20 for trial in loads)
    # The cell's own medians are those of its generations.
    assert run.record.cells[0].metrics["minor_faults"].median < 1000


def test_a_sweep_names_its_best(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """A list of values is a variant each, and the report says which value was fastest."""
    path = make_scenario(
        "virtual_clock: true, token_s: [0.4, 0.1, 0.2]",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 5, max: 5}}",
    )
    run = run_fake(path)
    rates = [cell.metrics["decode_rate"].median for cell in run.record.cells]
    assert rates == pytest.approx([2.5, 10.0, 5.0])
    (best,) = sweeps(build_report_data(run))
    assert best.option == "token_s"
    assert [point.value for point in best.points if point.best] == ["0.1"]


def test_every_trial_is_a_row_of_the_frame(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """The frame has the documented columns, and failures are in it."""
    frame = run_fake(make_scenario("threads: 1, fail: refuse", "threads: 2")).to_frame()
    assert list(frame.columns) == [
        "runner", "engine", "engine_version", "variant", "quantization", "workload", "block",
        "repetition", "phase", "status", "metric", "value", "unit", "source", "reason",
    ]  # fmt: skip
    assert set(frame["status"]) == {"ok", "failed"}
    assert frame.query("status == 'failed'")["reason"].str.contains("refuse").any()


# Interruption ----------------------------------------------------------------------------------

SLOW = "token_s: 0.01"
MANY = "{warmup: {min: 1, max: 1}, repetitions: {min: 6, max: 6}, per_block: 2}"


def start(path: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "edgebench", "run", str(path), "--out", str(out)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"never said {words!r}")


@pytest.fixture
def killed(make_scenario: MakeScenario, tmp_path: Path) -> Path:
    """The folder of a run that was killed with SIGKILL in its second block."""
    process = start(make_scenario(SLOW, measure=MANY), tmp_path / "out")
    with process:
        until(process, "block 2")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (folder,) = (tmp_path / "out" / "fake").iterdir()
    return folder


def test_a_killed_run_can_be_read_and_reported(killed: Path) -> None:
    """kill -9 leaves every finished trial and a run that reports as unfinished."""
    run = read_run(killed)
    assert run.record.status == "running"
    assert len(measured(run)) >= 2
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "report", str(killed)], check=True, capture_output=True
    )
    assert b"report.html" in done.stdout


def test_a_killed_run_goes_on_where_it_was(killed: Path) -> None:
    """--resume adds what is missing, keeps what there was, even behind a half line."""
    before, created = read_run(killed).trials, read_run(killed).record.created_at
    with (killed / "trials.jsonl").open("ab") as file:
        file.write(b'{"schema_version":1,"kind":"gen')
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", "--resume", str(killed)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    after = read_run(killed)
    assert after.record.created_at == created
    assert after.trials[: len(before)] == before
    assert len(measured(after)) == 6
    assert after.damaged_lines == 0
    assert after.record.status == "finished"


@pytest.mark.parametrize(
    "moment", ["starting fake", "fetching tiny", "tokenizing", "block 1", "repetition 1", "block 3"]
)
def test_whenever_a_run_is_killed_it_can_be_read_and_finished(
    make_scenario: MakeScenario, tmp_path: Path, moment: str
) -> None:
    """SIGKILL while preparing, loading or measuring: report and --resume take what is there."""
    with start(make_scenario(SLOW, measure=MANY), tmp_path / "out") as process:
        until(process, moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (folder,) = (tmp_path / "out" / "fake").iterdir()
    for arguments in (["report", str(folder)], ["run", "--resume", str(folder)]):
        done = subprocess.run(
            [sys.executable, "-m", "edgebench", *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    run = read_run(folder)
    assert len(measured(run)) == 6
    assert [cell.status for cell in run.record.cells] == ["ok"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_exits_130_and_says_how_to_go_on(
    make_scenario: MakeScenario, tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM keep what is done, write the report and name the command."""
    with start(make_scenario(SLOW, measure=MANY), tmp_path / "out") as process:
        until(process, "block 2")
        process.send_signal(number)
        _, errors = process.communicate()
    (folder,) = (tmp_path / "out" / "fake").iterdir()
    assert process.returncode == 130
    assert f"edgebench run --resume {folder}" in errors
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert (folder / "report.html").exists()


def test_a_run_that_is_interrupted_before_anything_was_measured_says_only_that(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Nothing failed: it is not told that nothing could be run."""
    with start(make_scenario(SLOW, measure=MANY), tmp_path / "out") as process:
        until(process, "block 1")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert process.returncode == 130
    assert "edgebench: interrupted" in errors
    assert "nothing could be run" not in errors
    assert "choose" not in (output or "")


def test_a_run_is_not_resumed_with_another_model(killed: Path, tmp_path: Path) -> None:
    """Other weights under the same name would mix two models in one table: refused."""
    (tmp_path / "model.bin").write_bytes(b"other weights")
    run = read_run(killed)
    scenario = load_scenario(tmp_path / "fake.yaml", runners=runner_classes())
    settings = Settings(folder=killed, base=tmp_path, store=ModelStore(tmp_path / "store"))
    before = {path.name: path.read_bytes() for path in killed.glob("*.json*")}
    with pytest.raises(ResultError, match="frameworks or models changed"):
        execute(scenario, settings, resumed=run)
    assert {path.name: path.read_bytes() for path in killed.glob("*.json*")} == before


def test_two_runs_at_once_do_not_meet(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """Two processes with one scenario, one store and one output folder both finish."""
    path = make_scenario("quantization: copy", measure=MANY)
    with start(path, tmp_path / "out") as one, start(path, tmp_path / "out") as two:
        one.communicate()
        two.communicate()
    assert (one.returncode, two.returncode) == (0, 0)
    folders = list((tmp_path / "out" / "fake").iterdir())
    assert len(folders) == 2
    assert all(len(measured(read_run(folder))) == 6 for folder in folders)


# Power -----------------------------------------------------------------------------------------


class TenWatts:
    """A meter of a machine that always draws 10 W."""

    name = "test:constant"
    source = "observed"
    resolution_s = None

    def read_j(self) -> float:
        return time.perf_counter() * 10

    def close(self) -> None:
        """Nothing is open."""


def test_energy_is_measured_where_there_is_a_meter(
    make_scenario: MakeScenario, run_fake: RunFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a constant 10 W, idle and mean power are 10 W and energy is 10 J a second."""
    search = MeterSearch(meters=(TenWatts(),), refusals=())
    monkeypatch.setattr("edgebench.harness.board.find_meters", lambda **_settings: search)
    path = make_scenario(
        "prefill_s: 0.3, token_s: 0.05",
        workloads="[{name: short, prompt: hello, generate_tokens: 11}]",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}}",
    )
    (cell,) = run_fake(path).record.cells
    medians = {key: summary.median for key, summary in cell.metrics.items()}
    assert medians["idle_power_w"] == pytest.approx(10, rel=0.01)
    assert medians["mean_power_w"] == pytest.approx(10, rel=0.01)
    assert medians["prefill_energy_j"] == pytest.approx(10 * medians["ttft_s"], rel=0.02)
    assert medians["energy_per_token_j"] == pytest.approx(10 * medians["tpot_s"], rel=0.02)
    assert medians["rate_per_watt"] == pytest.approx(medians["decode_rate"] / 10, rel=0.02)


def test_cold_and_warm_loads_are_kept_apart(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """With cold_load, blocks take turns: each load is one of the two, the other is null."""
    path = make_scenario(
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 4, max: 4}, cold_load: true}"
    )
    loads = [trial.metrics for trial in run_fake(path).trials if trial.kind == "load"]
    kinds = [
        (metrics["load_s"].value is not None, metrics["load_cold_s"].value is not None)
        for metrics in loads
    ]
    assert kinds == [(True, False), (False, True)] * 2


def test_what_a_runner_prepares_is_no_part_of_a_load(
    make_scenario: MakeScenario, run_fake: RunFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made before, and a cold load finds neither it nor the model in memory."""
    evicted: list[str] = []
    monkeypatch.setattr(
        "edgebench.harness.board.evict", lambda path: evicted.append(path.read_text()) or ""
    )
    path = make_scenario(
        "prepares: true",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}, cold_load: true}",
    )
    run = run_fake(path)
    assert [trial.status for trial in run.trials if trial.kind == "load"] == ["ok", "ok"]
    assert len(evicted) == 2  # in the one cold load of two
    assert evicted[1] == "ready"


def test_a_variant_is_named_after_what_was_loaded(
    make_scenario: MakeScenario, run_fake: RunFake, tmp_path: Path
) -> None:
    """Where a load names another engine than its runner does; and it can be resumed."""
    path = make_scenario(
        "threads: 1",
        "says_engine: Other",
        measure="{warmup: {min: 1, max: 1}, repetitions: {min: 1, max: 1}}",
    )
    run = run_fake(path)
    own, other = run.record.variants
    assert (own.engine, own.engine_version, own.framework) == ("fake", "1", None)
    assert (other.engine, other.engine_version, other.framework) == ("Other", "2", "Other")
    frame = run.to_frame()
    assert set(frame[frame.variant == other.id].engine) == {"Other"}
    assert build_report_data(run).variant_ids == (own.id, "Other: source says_engine=Other")
    settings = Settings(folder=run.path, base=tmp_path, store=ModelStore(tmp_path / "store"))
    again = execute(load_scenario(path, runners=runner_classes()), settings, resumed=run)
    assert again.variants == run.record.variants
