"""Whole runs with tasks, by the fake runner: their own processes, their own figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.execute import execute
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario, RunFake

    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.run import Run

TASK = "{name: summary, task: text-summarizer, prompt: one two three four}"
BOTH = f"[{{name: short, prompt: hello, generate_tokens: 4}}, {TASK}]"
CLOCKED = "virtual_clock: true, token_s: 0.25, task_s: 1.5"
TOKEN_KEYS = {"decode_rate", "ttft_s", "prefill_rate", "load_s"}
TASK_KEYS = {"task_latency_s", "task_output_characters", "task_load_s"}

TASKLESS = """\
import dataclasses

from edgebench.runners.fake import FakeRunner


class Taskless(FakeRunner):
    def describe(self):
        described = super().describe()
        capabilities = dataclasses.replace(described.capabilities, tasks=())
        return dataclasses.replace(described, capabilities=capabilities)
"""


def cells(run: Run) -> dict[str, Cell]:
    return {cell.workload: cell for cell in run.record.cells}


def test_a_task_has_the_time_of_the_whole_and_no_token_rate(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """1.5 s on the fake's own clock are 1.5 s; what is measured of tokens stands elsewhere."""
    measure = "{warmup: {min: 1, max: 2}, repetitions: {min: 5, max: 5}}"
    run = run_fake(make_scenario(CLOCKED, workloads=BOTH, measure=measure))
    summary, short = cells(run)["summary"], cells(run)["short"]
    assert (summary.status, summary.n) == ("ok", 5)
    assert summary.metrics["task_latency_s"].median == pytest.approx(1.5)
    assert summary.metrics["task_latency_s"].source == "observed"
    assert summary.metrics["task_output_characters"].median == len("one two three")
    assert summary.metrics["peak_rss_bytes"].median is not None
    assert not TOKEN_KEYS & set(summary.metrics)
    assert set(short.metrics) >= TOKEN_KEYS
    assert not TASK_KEYS & set(short.metrics)


def test_the_result_of_each_repetition_is_kept(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """What was made in the measured time can be read afterwards."""
    run = run_fake(make_scenario(CLOCKED, workloads=f"[{TASK}]"))
    trials = [trial for trial in run.trials if trial.kind == "task"]
    assert trials
    assert {trial.output.text for trial in trials if trial.output} == {"one two three"}
    assert all(trial.tokens is None for trial in trials)


def test_tasks_run_in_a_process_that_does_nothing_else(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A task's memory is not that of a model which had made tokens in the same process before."""
    run = run_fake(make_scenario("allocate_mb: 30", workloads=BOTH))
    kinds = [trial.kind for trial in run.trials if trial.block == 0]
    assert kinds == ["load", "generate", "generate", "task_load", "task", "task"]
    assert sorted(path.name for path in (run.path / "logs").glob("*block0*")) == [
        "fake-source-allocate_mb-30-block0-1.log",
        "fake-source-allocate_mb-30-block0.log",
    ]


def test_the_record_says_what_ran_the_task(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """Engine and version of a task are its own, with the options that it says it used."""
    run = run_fake(make_scenario(CLOCKED, workloads=BOTH))
    (variant,) = run.record.variants
    engine = variant.tasks["text-summarizer"]
    assert (engine.engine, engine.engine_version) == ("fake summarizer", "1")
    assert engine.build == {"embedded engine": "fake 1"}
    assert engine.effective_options == {"mode": "the first words"}
    assert "mode" not in variant.effective_options
    (_, workload) = run.record.workloads
    assert (workload.task, workload.generate_tokens) == ("text-summarizer", None)
    assert workload.prompt_text == "one two three four"


@pytest.mark.parametrize(
    ("fail", "kind", "says"),
    [
        ("refuse", "framework", "told to refuse"),
        ("crash", "crash", "ended"),
        ("clock", "invalid_result", "time stamps go back"),
        ("empty", "invalid_result", "empty text"),
        ("out_of_memory", "out_of_memory", "out of memory"),
    ],
)
def test_a_task_that_fails_costs_its_own_cell_only(
    make_scenario: MakeScenario, run_fake: RunFake, fail: str, kind: str, says: str
) -> None:
    """Whatever goes wrong in a task is a row with its reason; the other variant has its figures."""
    run = run_fake(make_scenario(f"{CLOCKED}, fail: {fail}", CLOCKED, workloads=f"[{TASK}]"))
    failed, good = run.record.cells
    assert (failed.status, good.status) == ("failed", "ok")
    assert failed.failure is not None
    assert failed.failure.kind == kind
    assert says in failed.failure.message
    assert run.record.status == "finished"


def test_a_task_that_can_not_be_loaded_leaves_the_tokens_alone(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """A load of a task that fails gives up the tasks, and nothing that makes tokens."""
    run = run_fake(make_scenario(f"{CLOCKED}, fail: empty", workloads=BOTH))
    assert {name: cell.status for name, cell in cells(run).items()} == {
        "short": "ok",
        "summary": "failed",
    }


def test_a_runner_without_the_task_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    """Its tokens are measured, its task is unsupported, and the exit status tells that."""
    site = tmp_path / "site"
    facts = site / "taskless-1.dist-info"
    facts.mkdir(parents=True)
    (site / "taskless.py").write_text(TASKLESS, encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: taskless\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[edgebench.runners]\ntaskless = taskless:Taskless\n")
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / "s.yaml").write_text(
        "schema_version: 1\nname: s\nmodel: {name: m, source: 'path:model.bin'}\n"
        f"variants: [{{runner: taskless}}, {{runner: fake}}]\nworkloads: {BOTH}\n"
        "measure: {warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", "s.yaml", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    shown = json.loads(done.stdout)["cells"]
    assert [(c["variant"], c["workload"], c["status"]) for c in shown] == [
        ("taskless source", "short", "ok"),
        ("taskless source", "summary", "failed"),
        ("fake source", "short", "ok"),
        ("fake source", "summary", "ok"),
    ]
    failure = shown[1]["failure"]
    assert failure["kind"] == "unsupported"
    assert failure["message"] == "taskless has no task text-summarizer"


def test_a_run_of_tasks_is_taken_up_where_it_stopped(
    make_scenario: MakeScenario, run_fake: RunFake, tmp_path: Path
) -> None:
    """What was measured of a task counts; only what is missing is run."""
    path = make_scenario(CLOCKED, workloads=f"[{TASK}]")
    run = run_fake(path)
    (run.path / "run.json").write_text(
        run.record.model_copy(update={"status": "interrupted"}).model_dump_json()
    )
    scenario = load_scenario(path, runners=runner_classes())
    settings = Settings(folder=run.path, base=path.parent, store=ModelStore(tmp_path / "store"))
    execute(scenario, settings, resumed=read_run(run.path))
    again = read_run(run.path)
    assert len(again.trials) == len(run.trials)
    assert again.record.cells == run.record.cells


def test_verifying_leaves_tasks_out(make_scenario: MakeScenario, run_fake: RunFake) -> None:
    """A scenario with a task can be verified: only what makes tokens is asked to."""
    path = make_scenario(CLOCKED, workloads=BOTH)
    path.write_text(path.read_text() + "verify: true\n")
    run = run_fake(path)
    assert [cell.status for cell in run.record.cells] == ["ok", "ok"]
    (variant,) = run.record.variants
    assert variant.sameness is not None  # the fake's file is no model, which is what it says
    assert variant.sameness.verdict == "failed"


def test_the_list_of_runners_tells_what_runs_their_tasks() -> None:
    """The task's engine and version are asked of the runner, and shown beside its own."""
    command = [sys.executable, "-m", "edgebench", "runners", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {status["name"]: status["tasks"] for status in json.loads(done.stdout)}
    assert found["fake"] == {"text-summarizer": "fake summarizer 1, embedded engine fake 1"}
    assert found["llama.cpp"] == {}


def test_a_scenario_with_a_task_is_shown_before_it_is_run(make_scenario: MakeScenario) -> None:
    """What would be run names the task, and no number of tokens for it."""
    path = make_scenario(workloads=BOTH)
    command = [sys.executable, "-m", "edgebench", "validate", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.lstrip().startswith("summary ")]
    assert " ".join(line.split()) == "summary text-summarizer of “one two three four” – –"


def test_the_terminal_shows_a_tasks_latency_and_its_table(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """While it runs a person sees seconds, and at its end a table of tasks in 80 columns."""
    path = make_scenario(CLOCKED, workloads=BOTH)
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", str(path)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "  summary: repetition 2, median 1.50 s" in done.stderr
    assert "  short: repetition 2, median 4.00 token/s" in done.stderr
    before, _, after = done.stdout.partition("\ntask ")
    assert "decode" in before
    assert "summary" not in before
    assert "latency" in after
    assert "1.50" in after
    table = after.partition("report")[0]
    assert max(map(len, table.splitlines())) <= 80
