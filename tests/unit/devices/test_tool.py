"""Programs that run beside a measurement: they are heard, and nothing of them stays."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edgebench.devices.tool import Tool


class Heard:
    """What a program said, and why it ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.text = b""
        self.reason: str | None = None

    def take(self, piece: bytes) -> None:
        with self._changed:
            self.text += piece
            self._changed.notify_all()

    def end(self, reason: str) -> None:
        with self._changed:
            self.reason = reason
            self._changed.notify_all()

    def await_line(self) -> str:
        with self._changed:
            assert self._changed.wait_for(lambda: b"\n" in self.text, 30)
            return self.text.decode().strip()

    def await_end(self) -> str | None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.reason is not None, 30)
            return self.reason


def is_running(pid: int) -> bool:
    """Whether there is such a process; one that has ended and that nobody asked about is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_children_end_with_the_program() -> None:
    """What a program started ends too, so that a pipe in a script leaves nothing behind."""
    heard = Heard()
    script = "tail -f /dev/null & echo $$ $!; wait"
    tool = Tool(["/bin/sh", "-c", script], heard.take, heard.end)
    program, child = (int(pid) for pid in heard.await_line().split())
    assert is_running(child)

    tool.close()
    tool.close()

    assert not is_running(program)
    assert not is_running(child)
    assert heard.reason is None  # it did what it was told


def test_program_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ignores the polite signal is ended all the same."""
    monkeypatch.setattr("edgebench.devices.tool.END_S", 0.2)
    heard = Heard()
    tool = Tool(
        ["/bin/sh", "-c", "trap '' TERM; echo $$; while :; do read -r _ < /dev/zero; done"],
        heard.take,
        heard.end,
    )
    pid = int(heard.await_line())

    tool.close()

    assert not is_running(pid)


def test_last_words_are_the_reason() -> None:
    """A program that ends by itself is quoted, in one line."""
    heard = Heard()
    tool = Tool(["/bin/sh", "-c", "echo no; echo meter >&2; exit 3"], heard.take, heard.end)

    assert heard.await_end() == "sh ended with status 3: no meter"
    tool.close()


def test_readings_are_no_last_words() -> None:
    """A program that told a lot and then ends is not quoted: those were readings."""
    heard = Heard()
    script = "yes 0,12.5 | head -n 2000; exit 4"
    tool = Tool(["/bin/sh", "-c", script], heard.take, heard.end, lambda line: b"," in line)

    assert heard.await_end() == "sh ended with status 4"
    tool.close()


def test_program_that_can_not_be_started() -> None:
    """The system's own error comes through."""
    heard = Heard()

    with pytest.raises(FileNotFoundError):
        Tool(["/absent/meter"], heard.take, heard.end)


ABSENT_MINDED = "trap '' TERM; while :; do read -r _ < /dev/zero; done"
STUBBORN = "trap '' TERM PIPE; echo $$; while :; do echo 0,1 2>/dev/null; sleep 0.01; done"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given more than a moment to end by itself."""
    monkeypatch.setattr("edgebench.devices.tool.END_S", 0.2)


def test_children_end_with_a_program_that_ended_by_itself() -> None:
    """A child in the background that nobody waits for does not outlive its parent."""
    heard = Heard()
    tool = Tool(["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], heard.take, heard.end)
    child = int(heard.await_line())

    assert heard.await_end() is not None
    assert not is_running(child)
    tool.close()


@pytest.mark.usefixtures("hasty")
def test_child_that_does_not_listen_is_killed() -> None:
    """The program obeys, its child does not: both are gone."""
    heard = Heard()
    script = f'/bin/sh -c "{ABSENT_MINDED}" & echo $! ; wait'
    tool = Tool(["/bin/sh", "-c", script], heard.take, heard.end)
    child = int(heard.await_line())

    tool.close()

    assert not is_running(child)


@pytest.mark.usefixtures("hasty")
def test_program_that_prints_on_is_killed() -> None:
    """One that ignores the signal, and that nobody reads any more, is ended all the same."""
    heard = Heard()
    tool = Tool(["/bin/sh", "-c", STUBBORN], heard.take, heard.end)
    pid = int(heard.await_line().split()[0])

    tool.close()

    assert not is_running(pid)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it is found in procfs")
def test_child_in_a_session_of_its_own_ends_too() -> None:
    """What left the program's group is found by what it inherited."""
    heard = Heard()
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        print(os.getpid(), flush=True)\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(600)\n"
    )
    tool = Tool([sys.executable, "-c", code], heard.take, heard.end)
    child = int(heard.await_line())

    tool.close()

    assert not is_running(child)


def test_program_ends_when_its_reader_is_killed() -> None:
    """Where this process gets no time to tidy up, a silent program is ended all the same."""
    code = (
        "import os, time\n"
        "from edgebench.devices.tool import Tool\n"
        "def take(piece):\n"
        "    os.write(1, piece)\n"
        "tool = Tool(['/bin/sh', '-c', 'echo $$; exec sleep 600'], take, print)\n"
        "time.sleep(600)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert is_running(pid)
        host.kill()

    deadline_s = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not is_running(pid)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it is found in procfs")
def test_child_in_a_session_of_its_own_ends_when_its_reader_is_killed() -> None:
    """What left the group is ended by the guard too, though nothing of this process is left."""
    inner = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    print(os.getpid(), flush=True)\n"
        "time.sleep(600)\n"
    )
    code = (
        "import os, sys, time\n"
        "from edgebench.devices.tool import Tool\n"
        "program = [sys.executable, '-c', sys.argv[1]]\n"
        "tool = Tool(program, lambda piece: os.write(1, piece), print)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, inner]
    host = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert is_running(pid)
        host.kill()

    deadline_s = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not is_running(pid)


def test_readings_before_the_end_are_not_quoted() -> None:
    """Of what a program said, only what is no reading is its complaint."""
    heard = Heard()
    tool = Tool(
        ["/bin/sh", "-c", "echo 0.0,12; echo unplugged; echo 0.1,12; exit 3"],
        heard.take,
        heard.end,
        is_reading=lambda line: b"," in line,
    )

    assert heard.await_end() == "sh ended with status 3: unplugged"
    tool.close()


def test_last_words_after_many_readings_are_kept() -> None:
    """Why a meter died stands at the end of what it said, however much came before."""
    heard = Heard()
    script = "echo warming up; yes 0,12.5 | head -n 2000; echo port is gone >&2; exit 3"
    tool = Tool(["/bin/sh", "-c", script], heard.take, heard.end, lambda line: b"," in line)

    assert heard.await_end() == "sh ended with status 3: port is gone"
    tool.close()


def test_long_last_words_are_cut_at_their_begin() -> None:
    """The last line of a traceback says what happened; the others are left out."""
    heard = Heard()
    script = "yes in a file called x | head -n 90; echo ValueError: no port; exit 1"
    tool = Tool(["/bin/sh", "-c", script], heard.take, heard.end)

    said = heard.await_end() or ""
    assert said.startswith("sh ended with status 1: ... ")
    assert said.endswith("called x ValueError: no port")
    assert len(said) < 440
    tool.close()
