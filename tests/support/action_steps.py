"""The steps of ``action.yml``, run as GitHub's runner runs them: bash, files for outputs."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
GH = Path(__file__).with_name("gh_stand_in.py")
BASH = shutil.which("bash") or "bash"


def action() -> Any:
    return YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))


@dataclass
class Job:
    """A job on a runner that has `python`, `edgebench` and, where asked for, `gh`.

    Attributes:
        home: an empty folder, in which the job's checkout is made.
        with_gh: whether there is a `gh`.
        outputs: of the steps so far, all under the one id that any step has.
    """

    home: Path
    with_gh: bool = True
    outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.checkout.mkdir(parents=True)
        (self.home / "temp").mkdir()
        programs = {"python": "", "edgebench": " -m edgebench", "gh": f" {GH}"}
        for name, arguments in programs.items():
            if name != "gh" or self.with_gh:
                self._program(name, f'exec "{sys.executable}"{arguments} "$@"')

    @property
    def checkout(self) -> Path:
        return self.home / "checkout"

    @property
    def summary(self) -> str:
        path = self.home / "summary"
        return path.read_text("utf-8") if path.exists() else ""

    def step(
        self, name: str, inputs: dict[str, str] | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one step with these inputs, and the defaults of the others."""
        described = action()
        (step,) = [each for each in described["runs"]["steps"] if each.get("name") == name]
        assert step["shell"] == "bash"
        values = {key: str(each.get("default", "")) for key, each in described["inputs"].items()}
        values |= inputs or {}

        def value(found: re.Match[str]) -> str:
            kind, key = found["kind"], found["key"]
            return values[key] if kind == "inputs" else self.outputs.get(key, "")

        expression = r"\$\{\{ (?P<kind>inputs|steps\.gate\.outputs)\.(?P<key>[\w-]+) \}\}"
        given = {key: re.sub(expression, value, str(each)) for key, each in step["env"].items()}
        outputs = self.home / "outputs"
        outputs.write_text("")
        done = subprocess.run(
            [BASH, "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            capture_output=True, text=True, check=False, cwd=self.checkout,
            env={
                "PATH": f"{self.home / 'bin'}:/usr/bin:/bin",
                "HOME": str(self.home),
                "NO_COLOR": "1",
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(outputs),
                "GITHUB_STEP_SUMMARY": str(self.home / "summary"),
                "GITHUB_PATH": str(self.home / "path"),
                "GITHUB_REPOSITORY": "o/r",
                "RUNNER_TEMP": str(self.home / "temp"),
                **{key: os.environ[key] for key in ("TMPDIR",) if key in os.environ},
                **given, **environment,
            },
        )  # fmt: skip
        pattern = r"^(\w+)<<(\w+)\n(.*?)\n\2$"
        for key, _, text in re.findall(pattern, outputs.read_text(), re.MULTILINE | re.DOTALL):
            self.outputs[key] = text
        return done

    def _program(self, name: str, line: str) -> None:
        path = self.home / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
