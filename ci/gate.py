"""What the GitHub action does: run a scenario where one is named, then the gate.

All that it needs comes in environment variables that ``action.yml`` sets, never as text of a
command, so that no input can become one. The standard library is enough. A gate that fails does
not end it with a failure: the status goes to ``$GITHUB_OUTPUT``, and the action ends with it after
the report was uploaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

DONE, REGRESSION, USAGE, SOME_CELLS_FAILED, NOTHING_RAN, NOT_COMPARABLE = range(6)


def main() -> int:
    """Run and gate; the status stands in the outputs."""
    out = Path(tempfile.mkdtemp(prefix="edgebench-", dir=os.environ.get("RUNNER_TEMP")))
    status, candidate = _candidate(out)
    if candidate is not None:
        status = _gate(candidate, out)
    markdown = out / "gate.md"
    _write_output("status", str(status))
    _write_output("report", str(out))
    _write_output("candidate", "" if candidate is None else str(candidate))
    _write_output("markdown", str(markdown) if markdown.exists() else "")
    return DONE


def _candidate(out: Path) -> tuple[int, Path | None]:
    """The run to judge, made or as named; else why there is none, as an exit status."""
    scenario, candidate = _read("SCENARIO"), _read("CANDIDATE")
    if bool(scenario) == bool(candidate):
        _say("name either a scenario to run or a candidate, the folder of a run, and not both")
        return USAGE, None
    if candidate:
        return DONE, Path(candidate)
    for line in _lines("BASELINE"):
        if not Path(line).exists():
            why = (
                f"there is no baseline {line}, so nothing was measured; `edgebench baseline save` "
                "makes one, on the machine that gates"
            )
            _say(why)
            _comment_on(out, scenario, why)
            return NOT_COMPARABLE, None
    results = out / "results"
    status = _edgebench(
        "run",
        scenario,
        "--out",
        str(results),
        *_each("--against", "AGAINST"),
        *_each("--repetitions", "REPETITIONS"),
    )
    found = _candidates(results)
    if status == REGRESSION:
        # Only a gate finds one; a run that ends so broke down.
        status = NOTHING_RAN
    # Cells that failed are the gate's to judge.
    if status not in {DONE, SOME_CELLS_FAILED} or not found:
        return status or USAGE, None
    return status, found[-1]


def _comment_on(out: Path, scenario: str, why: str) -> None:
    """What takes the place of an earlier gate's comment, which would go on to say `passed`."""
    name = Path(scenario).stem
    if Path(scenario).is_file():
        # As the scenario's format has it, a name needs no quotes and no escapes.
        text = Path(scenario).read_text("utf-8")
        found = re.search(r"^name:\s*[\"']?([\w.-]+)", text, re.MULTILINE)
        name = found[1] if found else name
    head = f"<!-- edgebench-gate: {name} -->\n### edgebench gate could not compare: {name}"
    code = why.replace("`", "'")
    (out / "gate.md").write_text(f"{head}\n\n`{code}`\n", encoding="utf-8")


def _candidates(results: Path) -> list[Path]:
    """The folders of runs that are not the baseline of an interleaved one, oldest first."""
    found = []
    for path in sorted(results.glob("*/*/run.json"), key=lambda path: path.stat().st_mtime):
        record = json.loads(path.read_text("utf-8"))
        if (record.get("interleaved") or {}).get("side") != "baseline":
            found.append(path.parent)
    return found


def _gate(candidate: Path, out: Path) -> int:
    across = ["--across-machines"] if _read("ACROSS_MACHINES") == "true" else []
    return _edgebench(
        "gate",
        *_each("--baseline", "BASELINE"),
        "--candidate",
        str(candidate),
        *_each("--policy", "POLICY"),
        *across,
        "--github",
        "--markdown",
        str(out / "gate.md"),
        "--junit",
        str(out / "gate.xml"),
        "--json",
        str(out / "gate.json"),
    )


def _each(option: str, name: str) -> list[str]:
    """The option once for each line of the variable that is not empty."""
    return [text for line in _lines(name) for text in (option, line)]


def _lines(name: str) -> list[str]:
    stripped = (line.strip() for line in _read(name).splitlines())
    return [line for line in stripped if line]


def _edgebench(*arguments: str) -> int:
    command = [_read("COMMAND") or "edgebench", *arguments]
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        _say(f"{command[0]} can't be started: {error.strerror}")
        return USAGE


def _read(name: str) -> str:
    return os.environ.get(f"EDGEBENCH_ACTION_{name}", "").strip()


def _write_output(name: str, value: str) -> None:
    """An output of the step; a delimiter that nobody can guess keeps a value from adding others."""
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        mark = uuid.uuid4().hex
        with Path(path).open("a", encoding="utf-8") as outputs:
            outputs.write(f"{name}<<{mark}\n{value}\n{mark}\n")


def _say(message: str) -> None:
    sys.stdout.write(f"::error title=edgebench::{message.replace('%', '%25')}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
