"""The process in which TVM runs: what is loaded into it, what it starts, and its threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
from tiny_models import VOCABULARY

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

IDS = [int(token) for token in np.random.default_rng(5).integers(2, VOCABULARY, 200)]

PROMPT = IDS[:30]


def test_only_tvms_runtime_is_in_the_process(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Its compiler, and PyTorch, which tvm_ffi imports, would stand in the memory that is told."""
    with open_model(tiny.artifact) as each:
        maps = Path(f"/proc/{each.session.pid}/maps")
        if not maps.exists():
            pytest.skip("there is no /proc here")
        files = {Path(line.split()[-1]).name for line in maps.read_text("utf-8").splitlines()}
    assert "libtvm_runtime.so" in files
    assert not {name for name in files if "tvm_compiler" in name or "torch" in name}


WATCHED = ("subprocess", "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "socket")

RUN = """
import sys

def watch(event, _):
    if event.startswith({watched!r}):
        raise SystemExit(f"tried {{event}}")

sys.addaudithook(watch)
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest
from edgebench.runners.mlc import MlcRunner

runner = MlcRunner()
runner.describe()
request = LoadRequest({artifact!r}, 64, {{"threads": 2}})
runner.prepare(request)
runner.load(request)
print(*runner.generate(GenerateRequest({prompt!r}, 4)).token_ids)
runner.score(ScoreRequest({prompt!r}))
runner.close()
if {bad!r}:
    import subprocess
    subprocess.run(["true"])
"""


@pytest.mark.parametrize("bad", [False, True])
def test_running_starts_no_process_and_no_connection(tiny: Any, bad: bool) -> None:
    """By Python's own audit events, which see it where something does."""
    names = {"watched": WATCHED, "artifact": str(tiny.artifact), "prompt": PROMPT, "bad": bad}
    command = [sys.executable, "-c", RUN.format(**names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == [str(token) for token in tiny.greedy(PROMPT, 4)]
    assert done.returncode == int(bad), done.stderr
    assert ("tried subprocess.Popen" in done.stderr) is bad


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="takes two CPUs")
def test_threads_are_as_many_as_asked_for_and_bound_to_no_cpu(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """TVM would bind them, beyond the CPUs that the process may use, as soon as it is asked."""
    cpus = psutil.Process().cpu_affinity()
    assert cpus is not None
    for count in (1, 2, 3):
        with open_model(tiny.artifact, threads=count) as each:
            assert each.model.effective_options["threads"] == count
            assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)
            assert psutil.Process(each.session.pid).cpu_affinity() == cpus
            assert thread_cpus(each.session.pid) == [cpus] * len(thread_cpus(each.session.pid))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="takes two CPUs")
def test_threads_can_be_bound(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Then the second one has one CPU for itself."""
    with open_model(tiny.artifact, threads=2, thread_binding=True) as each:
        assert each.model.effective_options["thread_binding"] is True
        assert [1] in thread_cpus(each.session.pid)


def thread_cpus(pid: int) -> list[list[int]]:
    """The CPUs that each thread of a process may use."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [sorted(os.sched_getaffinity(int(task.name))) for task in tasks]
