"""``edgebench baseline``, ``export`` and ``import``: as their users have them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench, outside_ci
from sample_run import sample

from edgebench import read_run
from edgebench.harness.compare.model import FACTS
from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from pathlib import Path

SPEED_TESTS = """
import pytest

@pytest.mark.parametrize("size", [10, 100])
def test_sorting(benchmark, size):
    benchmark.pedantic(sorted, args=(list(range(size)),), rounds=7, iterations=2)

@pytest.mark.benchmark(group="sums")
def test_sum(benchmark):
    benchmark.pedantic(sum, args=(range(100),), rounds=150)
"""

SCENARIO = """
schema_version: 1
name: two-cells
model: {name: fake, source: "path:model.bin"}
variants:
  - runner: fake
    quantization: source
    name: one
    token_s: 0.01
    jitter: 0.02
    virtual_clock: true
workloads:
  - {name: short, prompt: Hello, generate_tokens: 8}
measure: {repetitions: {min: 5, max: 5}, warmup: {min: 1, max: 1}}
"""

FINGERPRINT = sample().record().machine.fingerprint


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run of eight cells, one of which crashed."""
    return sample(blocks=5).write(tmp_path / "run")


@pytest.fixture
def baselines(run_dir: Path, tmp_path: Path) -> Path:
    """A folder with that run's baseline."""
    done = edgebench("baseline", "save", run_dir, cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    return tmp_path / "baselines"


def refused(status: ExitStatus, *arguments: str | Path, cwd: Path) -> str:
    """What a command says that must not work."""
    done = edgebench(*arguments, cwd=cwd)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def test_a_run_is_saved_by_its_scenario_and_its_machine(run_dir: Path, tmp_path: Path) -> None:
    """The path, the cells, the machine, and what comes next."""
    done = edgebench("baseline", "save", run_dir, cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    path = f"baselines/smollm2-135m/{FINGERPRINT}.json"
    assert (tmp_path / path).is_file()
    assert f"saved    {path} (" in done.stdout
    assert "10 cells, repetitions: 10" in done.stdout
    assert "edgebench gate --baseline baselines/smollm2-135m --candidate RUN_DIR" in done.stdout
    assert "replaced" not in done.stdout


def test_a_replaced_baseline_is_said(baselines: Path, tmp_path: Path) -> None:
    """By the date and the commit of what it was of; the file is the newer run's then."""
    commit = {"sha": "0123456789abcdef", "branch": "main"}
    later = sample(
        blocks=5,
        changes={"id": "later", "created_at": "2025-02-01T09:30:00Z", "commit": commit},
    ).write(tmp_path / "later")
    done = edgebench("baseline", "save", later, cwd=tmp_path)
    assert "replaced the one of 2025-01-14 10:15 UTC" in done.stdout
    done = edgebench("baseline", "save", tmp_path / "run", cwd=tmp_path)
    assert "replaced the one of 2025-02-01 09:30 UTC, commit 0123456789 on main" in done.stdout


def test_several_runs_are_one_baseline(run_dir: Path, tmp_path: Path) -> None:
    """With the repetitions of all, under the name that is asked for."""
    other = sample(
        blocks=5, seed=2, changes={"id": "other", "created_at": "2025-01-15T10:15:00Z"}
    ).write(tmp_path / "other")
    done = edgebench(
        "baseline", "save", run_dir, other, "--name", "both", "--dir", "b", cwd=tmp_path
    )
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "repetitions: 20" in done.stdout
    shown = edgebench("baseline", "show", "both", "--dir", "b", "--json", cwd=tmp_path)
    assert [each["id"] for each in json.loads(shown.stdout)["runs"]] == [
        "20250114T101500Z-3f9c2a",
        "other",
    ]


def test_what_is_no_measurement_is_not_saved(run_dir: Path, tmp_path: Path) -> None:
    """A quick look, a run without repetitions, two machines, no run at all, no name."""
    quick = sample(blocks=1, changes={"quick": True}).write(tmp_path / "quick")
    said = refused(ExitStatus.USAGE, "baseline", "save", quick, cwd=tmp_path)
    assert "quick look" in said
    assert "without --quick" in said
    empty = sample(blocks=0).write(tmp_path / "empty")
    said = refused(ExitStatus.USAGE, "baseline", "save", empty, cwd=tmp_path)
    assert "no measured repetition" in said
    machine = sample().record().machine.model_copy(update={"fingerprint": "another"})
    other = sample(blocks=1, changes={"id": "other", "machine": machine}).write(tmp_path / "other")
    said = refused(ExitStatus.NOT_COMPARABLE, "baseline", "save", run_dir, other, cwd=tmp_path)
    assert "different machines" in said
    said = refused(ExitStatus.USAGE, "baseline", "save", "nowhere", cwd=tmp_path)
    assert "nowhere does not exist" in said
    for name in ("../up", ""):
        said = refused(ExitStatus.USAGE, "baseline", "save", run_dir, "--name", name, cwd=tmp_path)
        assert "a baseline's name can't be" in said
    assert not (tmp_path / "baselines").exists()


def test_a_file_that_can_not_be_read_is_not_replaced(
    baselines: Path, run_dir: Path, tmp_path: Path
) -> None:
    """Damaged, or of a newer edgebench: it may be all that there is."""
    (path,) = baselines.rglob("*.json")
    path.write_text("{")
    said = refused(ExitStatus.NOT_COMPARABLE, "baseline", "save", run_dir, cwd=tmp_path)
    assert "It is not replaced." in said
    assert "Remove it first" in said
    assert path.read_text() == "{"


def test_baselines_are_listed_with_those_that_are_damaged(baselines: Path, tmp_path: Path) -> None:
    """Each in a row of at most 80 columns; the damaged one with its problem."""
    damaged = baselines / "smollm2-135m" / "damaged.json"
    damaged.write_text("{")
    done = edgebench("baseline", "list", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "smollm2-135m" in done.stdout
    assert "AMD EPYC 9B14" in done.stdout
    assert "2025-01-14" in done.stdout
    assert "None is of this machine" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "damaged.json can't be used: it is cut off or damaged" in done.stderr
    found = json.loads(edgebench("baseline", "list", "--json", cwd=tmp_path).stdout)
    assert [each["name"] for each in found["baselines"]] == ["smollm2-135m"]
    assert found["baselines"][0]["cells"] == 10
    assert found["baselines"][0]["repetitions"] == {"fewest": 10, "most": 10}
    assert [each["path"] for each in found["damaged"]] == ["baselines/smollm2-135m/damaged.json"]
    done = edgebench("baseline", "list", "--dir", "elsewhere", cwd=tmp_path)
    assert "There are no baselines in elsewhere" in done.stdout


def test_a_baseline_is_shown_by_name_or_by_file(baselines: Path, tmp_path: Path) -> None:
    """Medians with intervals and counts, at 80 columns; the crashed cell with what it said."""
    by_name = edgebench("baseline", "show", "smollm2-135m", cwd=tmp_path)
    assert by_name.returncode == ExitStatus.DONE, by_name.stderr
    (path,) = baselines.rglob("*.json")
    by_file = edgebench("baseline", "show", path.relative_to(tmp_path), cwd=tmp_path)
    assert by_file.stdout == by_name.stdout
    assert max(map(len, by_name.stdout.splitlines())) <= 80
    assert re.search(r"decode +[0-9.]+ tokens/s +\[[0-9.]+, [0-9.]+\] +n=10", by_name.stdout)
    assert "failed: The runner's process ended while it generated." in by_name.stdout
    chosen = edgebench("baseline", "show", "smollm2-135m", "--metric", "itl_p9?_s", cwd=tmp_path)
    assert "gap p95" in chosen.stdout
    assert "decode" not in chosen.stdout


def test_a_baseline_that_is_not_there_is_named(baselines: Path, tmp_path: Path) -> None:
    """With the names of those that are; exit status 5."""
    said = refused(ExitStatus.NOT_COMPARABLE, "baseline", "show", "other", cwd=tmp_path)
    assert "no baseline 'other'" in said
    assert "baselines holds smollm2-135m." in said


def test_what_was_measured_is_what_was_saved(
    baselines: Path, run_dir: Path, tmp_path: Path
) -> None:
    """The medians of a baseline are those of the run's own summary, to six digits."""
    shown = edgebench("baseline", "show", "smollm2-135m", "--json", cwd=tmp_path)
    cells = {
        (each["variant"], each["workload"]): each for each in json.loads(shown.stdout)["cells"]
    }
    reported = edgebench("report", run_dir, "--format", "json", cwd=tmp_path)
    assert reported.returncode == ExitStatus.DONE, reported.stderr
    report = json.loads((run_dir / "report.json").read_text(encoding="utf-8"))
    compared = 0
    for cell in report["cells"]:
        metrics = cells[cell["variant"], cell["workload"]]["metrics"]
        for key in (metrics.keys() & cell["metrics"].keys()) - FACTS:
            want, found = cell["metrics"][key], metrics[key]
            assert found["n"] == want["n"]
            for name in ("median", "ci_low", "ci_high"):
                if want[name] is None:
                    assert found[name] is None
                else:
                    assert found[name] == pytest.approx(want[name], rel=1e-5)
            compared += found["n"] > 0
    assert compared > 100


def test_two_exports_are_compared_by_pytest_benchmark(tmp_path: Path) -> None:
    """Of two real runs; each cell stands beside itself, with the medians that edgebench has."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "model.bin").write_bytes(b"x")
    for out in ("first", "second"):
        done = edgebench("run", "scenario.yaml", "--out", out, cwd=tmp_path)
        assert done.returncode == ExitStatus.DONE, done.stderr
        (folder,) = (tmp_path / out / "two-cells").iterdir()
        done = edgebench(
            "export", folder, "--format", "pytest-benchmark", "--metric", "ttft_s",
            "--metric", "tpot_s", "--out", f"{out}.json", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == ExitStatus.DONE, done.stderr
    frame = read_run(folder).to_frame().query("phase == 'measured' and workload == 'short'")
    known = frame[(frame.metric == "tpot_s") & (frame.variant == "one")].value.median()
    compared = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", "first.json", "second.json",
         "--columns", "median,rounds", "--sort", "name", "--csv", "both.csv"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    assert "benchmark 'short/ttft_s': 2 tests" in compared.stdout
    assert "benchmark 'short/tpot_s': 2 tests" in compared.stdout
    assert "one/short[tpot_s] (first)" in compared.stdout
    assert "one/short[tpot_s] (secon)" in compared.stdout or "(second)" in compared.stdout
    assert f"{1000 * known:.4f}" in compared.stdout  # ms


def test_what_is_exported_comes_back_by_import(run_dir: Path, tmp_path: Path) -> None:
    """As a baseline that holds the same times, and is compared with the run."""
    done = edgebench("export", run_dir, "--format", "pytest-benchmark", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    (tmp_path / "times.json").write_text(done.stdout, encoding="utf-8")
    imported = edgebench(
        "import", "times.json", "--format", "pytest-benchmark", "--name", "times", cwd=tmp_path
    )
    assert imported.returncode == ExitStatus.DONE, imported.stderr
    assert "10 cells" in imported.stdout
    shown = edgebench("baseline", "show", "times", cwd=tmp_path)
    assert re.search(r"TTFT +\d+ ms +\[\d+, \d+\] +n=10", shown.stdout)


def test_no_time_can_be_exported_as_another(run_dir: Path, tmp_path: Path) -> None:
    """A rate, a metric that is not there, a folder that is none."""
    export = ("export", run_dir, "--format", "pytest-benchmark")
    said = refused(ExitStatus.USAGE, *export, "--metric", "decode_rate", cwd=tmp_path)
    assert "decode_rate is no time" in said
    assert "tpot_s" in said
    said = refused(ExitStatus.USAGE, *export, "--metric", "typo", cwd=tmp_path)
    assert "no metric 'typo'" in said
    said = refused(
        ExitStatus.USAGE, "export", "nowhere", "--format", "pytest-benchmark", cwd=tmp_path
    )
    assert "nowhere does not exist" in said


def test_a_real_pytest_benchmark_run_is_imported(tmp_path: Path) -> None:
    """Its tests are cells; two of its files are compared; one without samples says so."""
    (tmp_path / "test_speed.py").write_text(SPEED_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    for name in ("first", "second"):
        done = subprocess.run(
            [*command, f"--benchmark-json={name}.json", "--benchmark-autosave"],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=outside_ci(),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
    imported = edgebench(
        "import", "first.json", "--format", "pytest-benchmark", "--name", "speed", cwd=tmp_path
    )
    assert imported.returncode == ExitStatus.DONE, imported.stderr
    assert "3 cells, repetitions: 7–75" in imported.stdout
    shown = edgebench("baseline", "show", "speed", cwd=tmp_path).stdout
    assert "test_sorting[10] / test_speed.py" in shown
    assert "test_sum / sums" in shown
    compared = edgebench("compare", "baselines/speed", "second.json", cwd=tmp_path)
    assert compared.returncode == ExitStatus.DONE, compared.stderr
    assert "test_sorting[100] / test_speed.py" in compared.stdout
    saved = next((tmp_path / ".benchmarks").rglob("*.json"))
    said = refused(
        ExitStatus.NOT_COMPARABLE, "import", saved, "--format", "pytest-benchmark", cwd=tmp_path
    )
    assert "--benchmark-save-data" in said


def test_what_can_not_be_imported_is_said(tmp_path: Path) -> None:
    """No file, another file, another format."""
    (tmp_path / "other.json").write_text("{}")
    importing = ("--format", "pytest-benchmark")
    said = refused(ExitStatus.NOT_COMPARABLE, "import", "none.json", *importing, cwd=tmp_path)
    assert "There is no file none.json" in said
    said = refused(ExitStatus.NOT_COMPARABLE, "import", "other.json", *importing, cwd=tmp_path)
    assert "not a file of pytest-benchmark" in said
    said = refused(ExitStatus.USAGE, "import", "other.json", "--format", "csv", cwd=tmp_path)
    assert "'csv' is not 'pytest-benchmark'" in said
