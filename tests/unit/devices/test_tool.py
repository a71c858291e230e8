"""Programs that run beside a measurement: they are heard, and nothing of them stays."""

from __future__ import annotations

import threading
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
    tool = Tool(["/bin/sh", "-c", "yes 0,12.5 | head -n 200"], heard.take, heard.end)

    assert heard.await_end() == "sh ended with status 0"
    tool.close()


def test_program_that_can_not_be_started() -> None:
    """The system's own error comes through."""
    heard = Heard()

    with pytest.raises(FileNotFoundError):
        Tool(["/absent/meter"], heard.take, heard.end)
