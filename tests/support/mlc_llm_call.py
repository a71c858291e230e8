"""Calling edgebench's code where ``mlc_llm`` is the stand-in of tests/support/mlc_llm_stand_in.

In a process of its own, whose interpreter finds the stand-in: threads that fail, and a module of
MLC's name, must not stay in the tests' own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAND_IN = Path(__file__).parent / "mlc_llm_stand_in"
VERSION = "0.20.dev7"
LIMIT_S = 60

HEAD = """
import json, sys
from pathlib import Path
from edgebench.runners.base import ConvertRequest, GenerateRequest, LoadedModel, RunnerFailure
given = json.loads(sys.argv[1])
answer = None
try:
{work}
except RunnerFailure as failure:
    answer = {{"failed": str(failure), "reason": failure.reason}}
print("ANSWER" + json.dumps(answer), flush=True)
import os
os._exit(0)  # as a runner's process ends, whatever threads are left
"""


@dataclass(frozen=True)
class Answer:
    """What the code left in ``answer``, and what the process wrote besides."""

    value: Any
    log: str


def call(work: str, *, path: str = str(STAND_IN), more: Any = None, **given: Any) -> Answer:
    """Run Python code that may use ``given`` and is to set ``answer``.

    Args:
        work: the code; a RunnerFailure becomes ``{"failed": …, "reason": …}``.
        path: what is put before the interpreter's own packages.
        more: additions to the environment.
        given: what JSON can hold.
    """
    lines = "".join(f"    {line}\n" for line in work.strip().splitlines())
    environment = {**os.environ, "PYTHONPATH": path, **(more or {})}
    done = subprocess.run(
        [sys.executable, "-c", HEAD.format(work=lines), json.dumps(given)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    log = done.stdout + done.stderr
    assert (done.returncode, len(told)) == (0, 1), log
    return Answer(json.loads(told[0].removeprefix("ANSWER")), log)
