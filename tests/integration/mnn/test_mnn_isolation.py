"""Running and converting with MNN starts no pip, no other process and no connection.

Two nets: Python's own audit events name what was tried, and the kernel kills the process at the
system call, whoever makes it, MNN's compiled code included. ``MNN.tools``, which runs pip when it
is imported, is caught by both.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

LIMIT_S = 120
WATCHED = (
    "subprocess.Popen",
    "os.system",
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.sendto",
    "urllib.Request",
)

WORK = """
from edgebench.runners.base import (
    ConvertRequest, GenerateRequest, LoadRequest, ScoreRequest, to_wire,
)
from edgebench.runners.mnn import MnnRunner
from edgebench.runners.worker import Worker

worker = Worker(MnnRunner())
def ask(method, request=None):
    params = to_wire(request) if request is not None else {}
    answer = worker.answer({"id": 1, "method": method, "params": params})
    assert "error" not in answer, answer
ask("probe")
ask("convert", ConvertRequest(source, "int8", artifact, {"block_size": 32}))
ask("load", LoadRequest(artifact, 64, {"threads": 2}))
ask("generate", GenerateRequest([3, 4, 5], 4))
ask("score", ScoreRequest([3, 4, 5]))
ask("unload")
"""
TOOLS = "import MNN.tools.mnnconvert"
"""What must not happen, to see that it would be noticed."""

# A filter for Linux's seccomp: a thread may be started, a process not, nor a program or a
# connection. Instructions are (code, jump if true, jump if false, operand).
KERNEL = """
import ctypes, struct
numbers = {
    "x86_64": dict(clone=56, clone3=435, forbidden=[57, 58, 59, 322, 42]),
    "aarch64": dict(clone=220, clone3=435, forbidden=[221, 281, 203]),
}[machine]
LOAD, EQUAL, HAS, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, KILL, NO_SUCH_CALL, THREAD = 0x7FFF0000, 0x80000000, 0x00050000 | 38, 0x10000
program = [(LOAD, 0, 0, 0)]
program += [(EQUAL, 0, 1, numbers["clone3"]), (RETURN, 0, 0, NO_SUCH_CALL)]
program += [(EQUAL, 0, 4, numbers["clone"]), (LOAD, 0, 0, 16), (HAS, 1, 0, THREAD)]
program += [(RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)]
for number in numbers["forbidden"]:
    program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, KILL)]
program += [(RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges, which a filter asks for
installed = libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(code))), 0, 0)
if installed != 0:
    print("NO FILTER", flush=True)
    os._exit(0)
"""

DRIVER = """
import json, os, sys
source, artifact, machine, watched = json.loads(sys.argv[1])
def hook(event, arguments):
    if event in watched:
        print("AUDIT", event, arguments[:2], flush=True)
        raise PermissionError(event)  # it is not done, whoever tried it
sys.addaudithook(hook)
"""


def run(
    body: str, source: Path, place: Path, watched: tuple[str, ...] = WATCHED
) -> tuple[int, str]:
    """Run the driver with `body`; its exit status and what it printed."""
    tools = place / "bin"
    tools.mkdir(parents=True)
    called = place / "called"
    for name in ("pip", "pip3", "python", "python3"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} $* >> {called}\n", "utf-8")
        (tools / name).chmod(0o755)
    values = json.dumps([str(source), str(place / "artifact"), platform.machine(), watched])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER + body + "\nsys.stdout.flush(); os._exit(0)", values],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    programs = called.read_text("utf-8") if called.exists() else ""
    return done.returncode, done.stdout + "".join(f"CALLED {line}" for line in [programs] if line)


def filtered(body: str, source: Path, place: Path) -> tuple[int, str]:
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("a kernel filter is written for Linux on x86-64 and ARM64 only")
    status, said = run(KERNEL + body, source, place, watched=())
    if "NO FILTER" in said:
        pytest.skip("this machine does not allow a process to filter its system calls")
    return status, said


def test_nothing_is_started_and_nobody_called(tiny: Any, tmp_path: Path) -> None:
    """From the probe to the scores, Python sees no process, no connection and no pip."""
    status, said = run(WORK, tiny.source, tmp_path / "place")
    assert status == 0, said
    assert "AUDIT" not in said
    assert "CALLED" not in said


def test_the_kernel_sees_nothing_either(tiny: Any, tmp_path: Path) -> None:
    """MNN's compiled code could do what Python has no event for; the kernel would end it."""
    status, said = filtered(WORK, tiny.source, tmp_path / "place")
    assert status == 0, said


def test_both_nets_catch_mnns_own_tools(tiny: Any, tmp_path: Path) -> None:
    """Importing them runs pip: this is what the tests above would show if we did."""
    _, said = run(TOOLS, tiny.source, tmp_path / "audit")
    assert "AUDIT os.system (b'pip install" in said
    status, said = filtered(TOOLS, tiny.source, tmp_path / "kernel")
    assert status == -signal.SIGSYS, said


def test_the_files_are_written_where_asked_and_nowhere_else(tiny: Any, tmp_path: Path) -> None:
    """The working folder holds the artifact and what the test put there."""
    place = tmp_path / "place"
    status, said = run(WORK, tiny.source, place)
    assert status == 0, said
    assert {path.name for path in place.iterdir()} == {"artifact", "bin"}
