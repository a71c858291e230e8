"""The command line as a person meets it: exit statuses, messages, outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import MakeScenario


def test_a_run_that_worked_exits_0_and_names_its_files(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Status 0, a table within 80 columns, and the paths of the report."""
    done = edgebench("run", make_scenario(), "--out", tmp_path / "out")
    assert done.returncode == ExitStatus.DONE, done.stderr
    (folder,) = (tmp_path / "out" / "fake").iterdir()
    assert f"results  {folder}" in done.stdout
    assert done.stdout.splitlines()[-1] == f"choose   edgebench select {folder}"
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "trials.jsonl", "logs", "report.md", "report.html",
    }  # fmt: skip
    table = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, table)) <= 80
    assert "is no framework" in (folder / "report.md").read_text()
    assert "is no framework" in (folder / "report.html").read_text()


def test_some_failed_cells_exit_3(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """One variant of two failed: status 3, and its reason on standard error."""
    path = make_scenario("threads: 1", "threads: 2, fail: crash")
    done = edgebench("run", path, "--out", tmp_path / "out")
    assert done.returncode == ExitStatus.SOME_CELLS_FAILED
    assert "ended by SIGSEGV" in done.stderr


def test_nothing_that_could_be_run_exits_4(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """No cell has a result: status 4, and the reason."""
    done = edgebench("run", make_scenario("fail: load"), "--out", tmp_path / "out")
    assert done.returncode == ExitStatus.NOTHING_RAN
    assert "refuse this model" in done.stderr
    assert "nothing could be run" in done.stderr


def test_a_missing_model_exits_4_and_says_where_it_was_looked_for(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """A path that does not exist is named; there is no traceback."""
    path = make_scenario()
    (tmp_path / "model.bin").unlink()
    done = edgebench("run", path, "--out", tmp_path / "out")
    assert done.returncode == ExitStatus.NOTHING_RAN
    assert str(tmp_path / "model.bin") in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "name a SCENARIO"),
        (["run", "no-such-scenario"], "smollm2-135m"),
        (["run", "smollm2-135m", "--workloads", "chta"], "It has: chat, pp512-tg128, prose."),
        (["run", "smollm2-135m", "--runners", "ncnn"], "It has: llama.cpp, mnn, mediapipe, mlc."),
        (["run", "smollm2-135m", "--repetitions", "0"], "--repetitions"),
        (["run", "smollm2-135m", "--time-budget", "-1"], "--time-budget"),
        (["run", "smollm2-135m", "--frob"], "--frob"),
        (["run", "--resume", "/no/such/run"], "--resume"),
        (["report", "/no/such/run"], "/no/such/run"),
        (["dance"], "dance"),
    ],
)
def test_a_wrong_command_line_exits_2(arguments: list[str], words: str) -> None:
    """Status 2 and a message that names what is wrong or what there is."""
    done = edgebench(*arguments)
    assert done.returncode == ExitStatus.USAGE
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_scenario_exits_2_with_every_place(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """All problems at once, each with file, line and column."""
    path = make_scenario("thraeds: 2", "threads: 0")
    done = edgebench("run", path)
    assert done.returncode == ExitStatus.USAGE
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == [
        f"{path}:5:20",
        f"{path}:6:29",
    ]


def test_json_is_all_that_is_printed(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """--json gives one document on standard output and nothing on standard error."""
    scenario = make_scenario("says_engine: Other")
    done = edgebench("run", scenario, "--out", tmp_path / "out", "--json")
    shown = json.loads(done.stdout)
    assert shown["exit_status"] == 0
    # A script that reads the cells learns whose figures they are.
    assert shown["variants"] == [
        {
            "id": shown["cells"][0]["variant"],
            "runner": "fake",
            "quantization": "source",
            "engine": "Other",
            "engine_version": "2",
            "framework": "Other",
        }
    ]
    assert shown["cells"][0]["n"] == 2
    assert Path(shown["report"]["html"]).exists()
    assert done.stderr == ""


def test_the_users_configuration_names_an_interpreter(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """A runner's interpreter from config.toml is used, and stands in the results."""
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
    other.chmod(0o755)
    config = tmp_path / "own.toml"
    config.write_text(f'[runners.fake]\npython = "{other}"\n', encoding="utf-8")
    done = edgebench(
        "run", make_scenario(), "--out", tmp_path / "out", "--json", EDGEBENCH_CONFIG=str(config)
    )
    assert done.returncode == ExitStatus.DONE, done.stderr
    record = json.loads((Path(json.loads(done.stdout)["run_dir"]) / "run.json").read_text())
    assert record["variants"][0]["python"] == str(other)


def test_overrides_change_what_is_run(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """--workloads, --repetitions and --quick do what they say, and the results tell."""
    path = make_scenario(
        workloads="[{name: a, prompt: hi, generate_tokens: 40},"
        " {name: b, prompt_tokens: 300, generate_tokens: 3}]"
    )
    out = tmp_path / "out"
    done = edgebench("run", path, "--out", out, "--workloads", "b", "--repetitions", "3", "--json")
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["workload"], cell["n"]) == ("b", 3)
    done = edgebench("run", path, "--out", out, "--quick", "--json")
    shown = json.loads(done.stdout)
    assert [(cell["n"], cell["n_warmup"]) for cell in shown["cells"]] == [(2, 2), (2, 2)]
    record = json.loads((Path(shown["run_dir"]) / "run.json").read_text())
    assert record["quick"] is True
    assert [w["generate_tokens"] for w in record["workloads"]] == [16, 3]
    assert record["workloads"][1]["prompt_tokens"] == 64
    assert "quick" in (Path(shown["run_dir"]) / "report.md").read_text().lower()


def test_reports_are_written_again(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """`edgebench report --each` rebuilds what was deleted, for several runs."""
    for _ in range(2):
        edgebench("run", make_scenario(), "--out", tmp_path / "out")
    folders = sorted((tmp_path / "out" / "fake").iterdir())
    for folder in folders:
        (folder / "report.html").unlink()
    done = edgebench("report", "--each", *folders)
    assert done.returncode == 0
    assert all((folder / "report.html").exists() for folder in folders)


def test_runners_tells_what_is_there() -> None:
    """Each runner with its engine, abilities and, as JSON, the command that installs it."""
    done = edgebench("runners", "--json")
    found = {item["name"]: item for item in json.loads(done.stdout)}
    assert found["fake"]["installed"] is True
    assert found["llama.cpp"]["pip"] == "pip install 'edgebench[llama-cpp]'"
    assert "Q4_K_M" in found["llama.cpp"]["quantizations"]
    assert "takes token ids" in edgebench("runners").stdout


def test_runners_explains_the_options_of_one() -> None:
    """What each takes, what it is where unset, and what it does; a wrong name lists the right."""
    done = edgebench("runners", "fake")
    assert "llama.cpp" not in done.stdout
    words = " ".join(done.stdout.split())
    assert "threads int, at least 1; 1 where unset" in words
    assert "makes file, folder, nothing, half, refusal, crash; file where unset" in words
    assert "What converting makes. Shapes the artifact." in words
    assert max(map(len, done.stdout.splitlines())) <= 80
    wrong = edgebench("runners", "fakes")
    assert wrong.returncode == 2
    assert "there are llama.cpp, mnn, mediapipe, mlc, fake" in wrong.stderr


def test_doctor_examines_this_machine() -> None:
    """Findings for people and as JSON; looking for trouble is no failure."""
    done = edgebench("doctor", "--json")
    assert done.returncode == 0, done.stderr
    checks = json.loads(done.stdout)
    assert {check["status"] for check in checks} <= {"good", "note", "problem"}
    assert all(check["remedy"] for check in checks if check["status"] == "problem")
    assert max(map(len, edgebench("doctor").stdout.splitlines())) <= 80


def test_every_command_has_help() -> None:
    """The list of commands and each command's help can be shown, with the exit statuses."""
    shown = edgebench("--help").stdout
    for name in ("run", "validate", "verify", "report", "runners", "doctor", "models", "schema"):
        assert name in shown
        done = edgebench(name, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith(f"Usage: edgebench {name}")
    assert "130 interrupted" in edgebench("run", "--help").stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`edgebench schema run | head -1` ends quietly."""
    command = f"{sys.executable} -m edgebench schema run | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_what_was_finished(make_scenario: MakeScenario, small_disk: Path) -> None:
    """Results that no longer fit end the run with a message; every line there is whole."""
    measure = "{warmup: {min: 1, max: 1}, repetitions: {min: 2000, max: 2000}, per_block: 2000}"
    done = edgebench("run", make_scenario(measure=measure), "--out", small_disk)
    assert done.returncode == ExitStatus.NOTHING_RAN
    assert "No space left on device" in done.stderr
    assert "--resume" in done.stderr
    assert "Traceback" not in done.stderr
    (folder,) = (small_disk / "fake").iterdir()
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) > 10
    for line in lines:
        assert line.endswith(b"\n")
        json.loads(line)
