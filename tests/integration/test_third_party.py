"""Packages: a runner shipped by somebody else, and what edgebench's own wheel holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.install

ROOT = Path(__file__).parents[2]

SCENARIO = """\
schema_version: 1
name: third-party
model: {name: countdown, source: 'path:model.bin'}
variants: [{runner: countdown, threads: [1, 2]}]
workloads: [{name: down, prompt: Hello, generate_tokens: 5}]
measure: {warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}}
"""


def pip(*arguments: str | Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check",
         *map(str, arguments)],
        check=True,
    )  # fmt: skip


def test_the_runner_of_the_documentation_is_installed_and_runs(tmp_path: Path) -> None:
    """What docs/adding-a-runner.md shows is a real package whose runner is found and measured."""
    package, site = tmp_path / "package", tmp_path / "site"
    package.mkdir()
    page = (ROOT / "docs" / "adding-a-runner.md").read_text("utf-8")
    for text in re.findall(r"```\w+\n(.*?)```", page, flags=re.DOTALL):
        name = text.partition("\n")[0].removeprefix("# ")
        (package / name).write_text(text, encoding="utf-8")
    pip("install", "--no-deps", "--target", site, package)
    (tmp_path / "model.bin").write_bytes(b"10")
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(site)}

    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", "scenario.yaml", "--json"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [(cell["variant"], cell["n"]) for cell in shown["cells"]] == [
        ("countdown source threads=1", 2),
        ("countdown source threads=2", 2),
    ]
    trials = (tmp_path / shown["run_dir"] / "trials.jsonl").read_text().splitlines()
    made = [json.loads(line)["tokens"]["generated_ids"] for line in trials[1:2]]
    assert made == [[10, 9, 8, 7, 6]]  # "o" is 111, and 111 % 100 = 11

    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "runners"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Countdown 1.0" in done.stdout


def test_the_wheel_holds_all_that_is_read_at_run_time(tmp_path: Path) -> None:
    """Templates, texts, scenarios and the type marker are in the wheel; tests are not."""
    pip("wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (
        ("harness", "texts/*"),
        ("reports", "templates/*"),
        ("scenarios", "*.yaml"),
    ):
        for path in (ROOT / folder).glob(pattern):
            assert f"edgebench/{path.relative_to(ROOT).as_posix()}" in names, path
    assert "edgebench/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "harness/"))]
