"""Two runs in the same blocks: who is measured when, what each folder holds, going on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.harness.execute import Planned, execute_interleaved
from edgebench.harness.records import Settings
from edgebench.harness.results.model import Interleaved
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import MakeScenario

    from edgebench.harness.observer import Standing
    from edgebench.harness.results.run import Run
    from edgebench.harness.results.trial import Trial

CLOCKED = "virtual_clock: true, prefill_s: 0.5, token_s: 0.25"
SEVEN = "{warmup: {min: 1, max: 1}, repetitions: {min: 7, max: 7}, timeout_s: 20}"
UNEVEN = "{warmup: {min: 1, max: 1}, repetitions: {min: 3, max: 12}, timeout_s: 20}"


class Pair:
    """Runs two scenario files in the same blocks, in this process."""

    def __init__(self, tmp_path: Path) -> None:
        self._out = tmp_path / "results"
        self._store = ModelStore(tmp_path / "store")

    def planned(self, baseline: Path, candidate: Path) -> list[Planned]:
        planned = []
        for side, other, path in (
            ("baseline", "candidate", baseline),
            ("candidate", "baseline", candidate),
        ):
            interleaved = Interleaved(
                session="one", side=side, partner=f"run-{other}", difference="this"
            )  # fmt: skip
            settings = Settings(
                folder=self._out / f"run-{side}",
                base=path.parent,
                store=self._store,
                interleaved=interleaved,
            )
            planned.append(Planned(load_scenario(path, runners=runner_classes()), settings))
        return planned

    def run(self, baseline: Path, candidate: Path) -> tuple[Run, Run]:
        first, second = self.planned(baseline, candidate)
        execute_interleaved(first, second)
        return read_run(first.settings.folder), read_run(second.settings.folder)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def in_time(runs: Sequence[Run]) -> list[tuple[int, str, str]]:
    """Block, side and variant of every load, in the order in which they were made."""
    loads = [
        (trial.started_at, trial.block, run.record.interleaved.side, trial.variant)
        for run in runs
        for trial in run.trials
        if trial.kind == "load" and run.record.interleaved
    ]
    return [(block, side, variant) for _, block, side, variant in sorted(loads)]


def counted(run: Run) -> dict[str, int]:
    return {cell.variant: cell.n for cell in run.record.cells}


def test_both_sides_are_in_every_block_one_directly_after_the_other(
    make_scenario: MakeScenario, pair: Pair
) -> None:
    """Each block has each variant twice in a row, once a side, in an order that changes."""
    path = make_scenario(f"threads: [1, 2], {CLOCKED}", measure=SEVEN)
    runs = pair.run(path, path)
    loads = in_time(runs)
    assert [block for block, _, _ in loads] == sorted(block for block, _, _ in loads)
    orders: set[tuple[str, ...]] = set()
    for block, group in groupby(loads, key=lambda load: load[0]):
        seats = [(side, variant) for _, side, variant in group]
        assert len(seats) == len(set(seats)) == 4, block
        for place in (seats[:2], seats[2:]):
            assert place[0][1] == place[1][1], "the sides of a variant are neighbours"
            orders.add(tuple(side for side, _ in place))
    assert orders == {("baseline", "candidate"), ("candidate", "baseline")}


def test_each_side_is_an_ordinary_run_that_names_the_other(
    make_scenario: MakeScenario, pair: Pair
) -> None:
    """Two finished folders with a session in common and a whole record each."""
    baseline, candidate = pair.run(
        make_scenario("token_s: 0.2, virtual_clock: true", name="old"),
        make_scenario("token_s: 0.3, virtual_clock: true", name="new"),
    )
    for run, side, other in (
        (baseline, "baseline", candidate),
        (candidate, "candidate", baseline),
    ):
        assert run.record.status == "finished"
        assert run.record.id == run.path.name == f"run-{side}"
        found = run.record.interleaved
        assert found is not None
        assert (found.session, found.side, found.partner) == ("one", side, other.path.name)
        assert {cell.status for cell in run.record.cells} == {"ok"}
        accounting = run.record.accounting
        assert accounting is not None
        # What the other side took is not among what this one can't explain.
        assert accounting.wall_s < 0.75 * sum(
            each.record.accounting.wall_s for each in (run, other) if each.record.accounting
        )
    rates = [run.record.cells[0].metrics["decode_rate"].median for run in (baseline, candidate)]
    assert rates == pytest.approx([1 / 0.2, 1 / 0.3])


def test_a_settled_side_goes_on_until_the_other_is_settled_too(
    make_scenario: MakeScenario, pair: Pair
) -> None:
    """A steady side against one with 40 % jitter: as many repetitions, in the same blocks."""
    steady = make_scenario(CLOCKED, measure=UNEVEN, name="steady")
    shaky = make_scenario(f"{CLOCKED}, jitter: 0.4", measure=UNEVEN, name="shaky")
    baseline, candidate = pair.run(steady, shaky)
    blocks = [
        [trial.block for trial in run.trials if trial.phase == "measured" and trial.workload]
        for run in (baseline, candidate)
    ]
    assert blocks[0] == blocks[1] == list(range(12))


def test_a_lost_side_leaves_the_other_with_the_least_repetitions(
    make_scenario: MakeScenario, pair: Pair
) -> None:
    """What crashes twice is given up; alone the other has nothing to be compared with."""
    good = make_scenario(f"{CLOCKED}, jitter: 0.4", measure=UNEVEN, name="good")
    dead = make_scenario(f"{CLOCKED}, fail: crash", measure=UNEVEN, name="dead")
    baseline, candidate = pair.run(good, dead)
    assert list(counted(baseline).values()) == [3]
    (cell,) = candidate.record.cells
    assert (cell.status, cell.n_failed) == ("failed", 2)


def test_a_side_that_can_not_even_start_is_told_and_the_other_is_measured(
    make_scenario: MakeScenario, pair: Pair
) -> None:
    """An interpreter without the framework on one side: rows with the reason, no crash."""
    good = make_scenario("threads: 1", measure=UNEVEN, name="good")
    none = make_scenario("python: /no/such/python", measure=UNEVEN, name="none")
    baseline, candidate = pair.run(none, good)
    assert [cell.status for cell in baseline.record.cells] == ["failed"]
    assert list(counted(candidate).values()) == [3]


def test_one_time_budget_serves_both(
    make_scenario: MakeScenario, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it ends, both have stopped; a block that was begun is left as it is."""
    path = make_scenario(measure="{repetitions: {min: 50, max: 50}, time_budget_s: 30}")
    now = iter(range(0, 100_000, 1))
    planned = pair.planned(path, path)
    first, second = (
        replace(each, settings=replace(each.settings, monotonic=lambda: float(next(now))))
        for each in planned
    )
    execute_interleaved(first, second)
    runs = [read_run(each.settings.folder) for each in (first, second)]
    assert [run.record.stopped_by_budget for run in runs] == [True, True]
    counts = [run.record.cells[0].n for run in runs]
    assert abs(counts[0] - counts[1]) <= 1
    assert counts[0] < 50


class Interrupting:
    """Presses Ctrl-C after some trials."""

    def __init__(self, after: int) -> None:
        self._left = after

    def finished(self, trial: Trial, standing: Standing) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt

    def __getattr__(self, name: str) -> object:
        return lambda *_: None


def test_an_interrupted_pair_is_readable_and_goes_on(
    make_scenario: MakeScenario, pair: Pair, tmp_path: Path
) -> None:
    """Both sides say interrupted; resumed by either of them, both finish as they were begun."""
    path = make_scenario(f"threads: 1, {CLOCKED}", measure=SEVEN)
    first, second = pair.planned(path, path)
    named = [
        replace(each, settings=replace(each.settings, scenario_path=path.resolve()))
        for each in (first, second)
    ]
    with pytest.raises(KeyboardInterrupt):
        execute_interleaved(*named, Interrupting(after=11))  # type: ignore[arg-type]
    folders = [each.settings.folder for each in named]
    begun = [read_run(folder) for folder in folders]
    assert [run.record.status for run in begun] == ["interrupted", "interrupted"]

    done = edgebench("run", "--resume", folders[0], "--format", "md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = [read_run(folder) for folder in folders]
    assert [run.record.status for run in runs] == ["finished", "finished"]
    # What was cut off has no counterpart, and is made up for.
    measured = [
        {t.block for t in run.trials if t.phase == "measured" and t.workload} for run in runs
    ]
    assert len(measured[0] & measured[1]) == 7
    assert [run.record.interleaved for run in runs] == [run.record.interleaved for run in begun]
    assert all(
        run.trials[: len(old.trials)] == old.trials for run, old in zip(runs, begun, strict=True)
    )

    shutil.rmtree(folders[1])
    done = edgebench("run", "--resume", folders[0], cwd=tmp_path)
    assert done.returncode == 5
    assert "which is not there" in done.stderr


# The command line ---------------------------------------------------------------------------------


def test_against_writes_two_runs_and_compares_them(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """With known delays the change is known: 0.2 s a token against 0.25 s is a fifth slower."""
    path = make_scenario(f"threads: 1, {CLOCKED}", measure=SEVEN)
    done = edgebench("run", path, "--against", "token_s=0.2", "--format", "md", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "baseline · fake source threads=1" in done.stderr
    assert "differs    token_s: 0.2 → 0.25" in done.stdout
    (decode,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["decode"]]
    assert "-20" in decode
    assert decode.endswith("worse")
    assert max(map(len, done.stdout.split("report  ")[0].splitlines())) <= 80
    folders = sorted((tmp_path / "results" / "fake").iterdir())
    assert [folder.name.rpartition("-")[2] for folder in folders] == ["baseline", "candidate"]
    assert all((folder / "report.md").is_file() for folder in folders)
    shown = folders[1].relative_to(tmp_path)
    assert f"edgebench gate --candidate {shown}" in done.stdout
    assert read_run(folders[0]).record.interleaved.difference == "token_s=0.2"  # type: ignore[union-attr]

    gate = edgebench("gate", "--candidate", shown, cwd=tmp_path)
    assert gate.returncode == 1, gate.stdout + gate.stderr


def test_json_holds_both_runs_and_their_comparison(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """One object on standard output, and nothing else, for a script."""
    path = make_scenario(CLOCKED, measure=SEVEN)
    other = make_scenario("virtual_clock: true, token_s: 0.5", measure=SEVEN, name="other")
    done = edgebench(
        "run", path, "--against", other, "--format", "md", "--json", "--repetitions", "7",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["difference"] == f"the scenario {other}"
    for side in ("baseline", "candidate"):
        assert shown[side]["cells"][0]["n"] == 7
        assert (tmp_path / shown[side]["run_dir"] / "run.json").is_file()
    rates = [shown[side]["cells"][0]["metrics"]["decode_rate"]["median"] for side in
             ("baseline", "candidate")]  # fmt: skip
    assert rates == pytest.approx([2.0, 4.0])
    assert shown["comparison"]
    assert shown["not_compared"] is None


@pytest.mark.parametrize(
    ("given", "blocks"), [([], 10), (["--repetitions", "3"], 3), (["--quick"], 2)]
)
def test_there_are_ten_repetitions_unless_the_command_line_says_otherwise(
    make_scenario: MakeScenario, tmp_path: Path, given: list[str], blocks: int
) -> None:
    """A scenario of one repetition is measured ten times on each side, and that is told."""
    path = make_scenario(CLOCKED)
    done = edgebench(
        "run", path, "--against", "token_s=0.2", "--format", "md", "--json", *given, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert ("at least 10 repetitions" in done.stderr) is not bool(given)
    shown = json.loads(done.stdout)
    assert {shown[side]["cells"][0]["n"] for side in ("baseline", "candidate")} == {blocks}


@pytest.mark.parametrize("against", [["--against", "token_s=0.2"], []])
def test_of_a_folder_that_can_not_be_made_nothing_is_said_to_stand_in_it(
    make_scenario: MakeScenario, tmp_path: Path, against: list[str]
) -> None:
    """The message is what went wrong, and not where results are that do not exist."""
    path = make_scenario(CLOCKED)
    done = edgebench("run", path, *against, "--out", "model.bin/results", cwd=tmp_path)
    assert done.returncode != 0
    assert "model.bin" in done.stderr
    assert "what there is" not in done.stderr
    assert "Traceback" not in done.stderr


def test_another_interpreter_runs_the_baseline(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """The folder of a virtual environment is enough; the record names both interpreters."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "old"], check=True)
    path = make_scenario(CLOCKED)
    done = edgebench(
        "run", path, "--against", f"python={tmp_path / 'old'}", "--format", "md", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    pythons = [
        read_run(tmp_path / shown[side]["run_dir"]).record.variants[0].python
        for side in ("baseline", "candidate")
    ]
    assert pythons == [str(tmp_path / "old" / "bin" / "python"), sys.executable]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "treads=2"], "did you mean 'threads'"),
        (["--against", "nothing.yaml"], "there is no scenario 'nothing.yaml'"),
        (["--against", "fake.yaml", "--against", "threads=2"], "either one file or several"),
        (["--against", "fake.yaml"], "both sides are the same"),
        (["--against", "model=path:model.bin"], "both sides are the same"),
        (["--against", "threads=2", "--resume", "."], "as it was begun"),
    ],
)
def test_wrong_use_ends_before_anything_runs(
    make_scenario: MakeScenario, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """Status 2, one message, no folder, no traceback."""
    scenario = [] if "--resume" in arguments else [make_scenario()]
    done = edgebench("run", *scenario, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
