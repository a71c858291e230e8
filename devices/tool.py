"""A program that runs beside a measurement and goes on telling; its own thread reads it.

Nothing of it should outlive this process. It has a process group of its own, and an environment
variable that all it starts inherits, so that also what left the group is found (on Linux). A
small shell beside it waits for this process to be gone, however it goes, and ends the same. What
left the group and has an environment without that variable too (`setsid env -i …`) is not found.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

END_S = 2.0
"""How long the program has to end by itself."""
STEP_S = 0.02
MARK = "EDGEBENCH_TOOL"
PROCFS = Path("/proc")
_READ_SIZE = 1 << 16
_COMPLAINT_SIZE = 400  # characters
_KEPT_SIZE = 4096  # bytes of the last that it said, readings among it

# `read` comes back when the other end of the pipe is gone; a line says that all is done.
_GUARD = """\
end() {
    kill "-$1" "-$group"
    for each in $(grep -lsF "$mark" "$procfs"/[0-9]*/environ); do
        each=${each%/environ}
        kill "-$1" "${each##*/}"
    done
}
group=$1 seconds=$2 mark=$3 procfs=$4
read -r done && exit
end TERM; sleep "$seconds"; end KILL
"""


class Tool:
    """A running program, in a process group of its own.

    Args:
        arguments: the program and its arguments; no shell is involved.
        take: gets the output piece by piece, as it comes, in the reading thread.
        ended: called once, in the reading thread, with the reason, when the output is over.
        is_reading: whether a line of the output is what it is asked for, and no complaint.

    Raises:
        OSError: the program can't be started.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        take: Callable[[bytes], object],
        ended: Callable[[str], object],
        is_reading: Callable[[bytes], bool] = lambda _line: False,
    ) -> None:
        self._name = os.path.basename(arguments[0])  # noqa: PTH119 - a name as the user writes it
        self._mark = secrets.token_hex(16)
        self._process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C", MARK: self._mark},
        )
        self._guard = _guard(self._process.pid, self._mark)
        self._take = take
        self._ended = ended
        self._is_reading = is_reading
        self._said = b""
        self._closing = False
        self._ending = threading.Lock()  # one at a time, as the group's number is free afterwards
        self._thread = threading.Thread(target=self._read, name=f"edgebench-{self._name}")
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        """End the program and all that it started."""
        self._closing = True
        self._end()
        # What it can't end (another user's, by sudo) ends when nobody listens.
        self._thread.join(END_S)

    def _read(self) -> None:
        output = self._process.stdout
        if output is None:  # never: a pipe was asked for
            return
        with output:
            while not self._closing and (piece := os.read(output.fileno(), _READ_SIZE)):
                self._hear(piece)
                self._take(piece)
        if not self._closing:
            by_itself = _ends_soon(self._process.pid)
            self._end()
            status = self._process.returncode
            if not by_itself or status is None:
                self._ended(f"{self._name} closed its output")
            else:
                self._ended(f"{self._name} ended{self._how(status)}")

    def _hear(self, piece: bytes) -> None:
        """Keep the last that it said: that is where a program says why it ends."""
        self._said += piece
        if len(self._said) > _KEPT_SIZE:
            # From a line's begin on, or part of a reading would be taken for words.
            kept = self._said[-_KEPT_SIZE:]
            self._said = kept.partition(b"\n")[2] or kept

    def _how(self, status: int) -> str:
        how = f" with status {status}" if status >= 0 else f" by signal {-status}"
        lines = [each for each in self._said.splitlines() if not self._is_reading(each)]
        words = " ".join(b" ".join(lines).decode("utf-8", "replace").split())
        if len(words) > _COMPLAINT_SIZE:
            last = words[-_COMPLAINT_SIZE:]
            words = f"... {last.partition(' ')[2] or last}"
        return f"{how}: {words}" if words else how

    def _end(self) -> None:
        """End the group and what left it: politely, then not; then let its number go."""
        with self._ending:
            if self._process.returncode is not None:
                return  # its number may be another program's by now
            self._signal(signal.SIGTERM)
            self._await_gone()
            # Also where all seems gone: without procfs nobody knows what else is in the group.
            self._signal(signal.SIGKILL)
            self._await_gone()
            _let_go(self._guard)
            # Another user's program that does not end is not waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
        for pid in _marked(self._mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _await_gone(self) -> None:
        _in_time(lambda: _has_ended(self._process.pid) and not _marked(self._mark), END_S)


def _guard(group: int, mark: str) -> subprocess.Popen[bytes] | None:
    """A shell that ends the group, and what has the mark, when this process is gone.

    None where there is no shell.
    """
    given = (str(group), str(round(END_S)), f"{MARK}={mark}", str(PROCFS))
    with contextlib.suppress(OSError):
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "edgebench-guard", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None


def _let_go(guard: subprocess.Popen[bytes] | None) -> None:
    if guard is None:
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        guard.communicate(b"done\n", timeout=END_S)


def _ends_soon(pid: int) -> bool:
    """A program that has closed its output is about to end: its status is worth a moment."""
    return _in_time(lambda: _has_ended(pid), END_S)


def _in_time(is_so: Callable[[], bool], seconds: float) -> bool:
    until_s = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until_s:
            return False
        time.sleep(STEP_S)
    return True


def _has_ended(pid: int) -> bool:
    """Whether a child has ended; it stays to be waited for, so its number remains its own."""
    try:
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return _state(pid) == "Z"
    except ChildProcessError:
        return True


def _state(pid: int) -> str:
    """A process's state in one letter, where there is no `os.waitid`; empty if it is gone."""
    command = ["ps", "-o", "state=", "-p", str(pid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return said.strip()[:1] or "Z"


def _marked(mark: str) -> list[int]:
    """The processes that have the mark; an ended one, and one of another user, has none to read."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    with contextlib.suppress(OSError):
        for folder in PROCFS.iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
    return found
