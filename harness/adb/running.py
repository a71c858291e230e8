"""Starts a tool on the device, reads what it prints as it comes, and ends it where it must end."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import selectors
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from edgebench.devices.agent_lines import Lines
from edgebench.harness.adb import diagnosis
from edgebench.harness.adb.tool import Line
from edgebench.harness.errors import (
    BoardError,
    BoardUnfitError,
    RunnerCrashedError,
    RunnerProtocolError,
    RunnerTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.adb.client import Adb
    from edgebench.harness.errors import RunnerError

WORD: Final = "EDGEBENCH_START"
"""In the environment of all that one start runs on the device: a word that no other start has."""
SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""
LATER_S: Final = 30.0
"""The device ends the tool by itself so much later than this machine would."""
LAST_S: Final = 10.0
"""Adb ends that soon after what it ran; else something on the device still holds its output."""
TAIL_LINES: Final = 20
MOST_LINE_BYTES: Final = 1 << 20
MOST_BYTES: Final = 16 << 20
"""What a benchmark tool prints at most; its results are some hundred bytes a repetition."""

_PEAK: Final = re.compile(r"^Max RSS \(KiB\): (\d{1,15})$")
_CPU: Final = re.compile(r"^(?:System|User) time \(s\): (\d{1,12}(?:\.\d{1,9})?)$")

END: Final = """\
for again in 1 2 3 4 5; do
  found=
  for each in /proc/[0-9]*; do
    [ -O "$each" ] || continue
    if cat "$each/environ" 2>/dev/null | tr '\\000' '\\n' | grep -q -x -F MARK; then
      kill -9 "${each#/proc/}" 2>/dev/null && found=1
    fi
  done
  [ -z "$found" ] && break
done
"""
"""Ends all that has a start's word in its environment, until a look finds nothing more.

A number of a process may be another's by now, and what a tool left running in the background has no
parent that tells whose it is; the environment is inherited by all.
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A tool on the device.

    Attributes:
        folder: where it lies, with its libraries.
        name: its file's.
        abi: what the device runs.
        helpers: programs of the device that a measurement can use: ``time`` and ``timeout``.
    """

    folder: str
    name: str
    abi: str
    helpers: frozenset[str]

    def script(self, arguments: Sequence[str], limit_s: float, marks: Marks) -> str:
        """What the device's shell is to run.

        The inner shell tells how the tool ended. ``time -v`` reads the kernel's accounting of it
        afterwards, so that nothing of ours runs beside it.
        """
        folder = shlex.quote(self.folder)
        limit = ""
        if "timeout" in self.helpers:
            limit = f"toybox timeout -s KILL {limit_s + LATER_S:.0f} "
        inner = f'{limit}{shlex.join([self.path, *arguments])}; printf "\\n{marks.exit}%s\\n" "$?"'
        clocked = "toybox time -v " if "time" in self.helpers else ""
        return (
            f"cd {folder} && export LD_LIBRARY_PATH={folder} && export {WORD}={marks.word} && "
            f'{clocked}sh -c {shlex.quote(inner)} </dev/null; printf "\\n{marks.over}\\n"'
        )

    def usage_script(self) -> str:
        """The same for what it tells of its options."""
        folder = shlex.quote(self.folder)
        limit = "toybox timeout -s KILL 15 " if "timeout" in self.helpers else ""
        words = shlex.join([self.path, "--help"])
        return f"cd {folder} && LD_LIBRARY_PATH={folder} {limit}{words} </dev/null 2>&1"

    @property
    def path(self) -> str:
        """Of its file on the device."""
        return f"{self.folder}/{self.name}"


@dataclass(frozen=True, slots=True)
class Marks:
    """Lines of ours among those of a tool, which can't know the word that is in them."""

    word: str

    @property
    def exit(self) -> str:
        """Before the status that the tool left with."""
        return f"edgebench {self.word}: exit "

    @property
    def over(self) -> str:
        """When all of the start is over."""
        return f"edgebench {self.word}: over"


@dataclass(frozen=True, slots=True)
class Ended:
    """A tool that ended well.

    Attributes:
        lines: all that it printed.
        begun_ns, ended_ns: by this machine's clock.
        peak_rss_bytes: the kernel's own figure; None where the device can't tell it.
        cpu_s: user and system time of the whole process; None likewise.
    """

    lines: tuple[Line, ...]
    begun_ns: int
    ended_ns: int
    peak_rss_bytes: int | None
    cpu_s: float | None


class Run:
    """One start of a tool.

    Args:
        adb: the device.
        program: the tool.
        log: takes all that it prints.
    """

    def __init__(self, adb: Adb, program: Program, log: IO[bytes]) -> None:
        self._adb = adb
        self._program = program
        self._log = log
        self._marks = Marks(secrets.token_hex(8))
        self._lines: list[Line] = []
        self._bytes = 0
        self._over = False
        self.left: str | None = None
        """The word of what may still run on the device, since it could not be reached."""

    def wait(self, arguments: Sequence[str], limit_s: float) -> Ended:
        """Run it to its end; nothing that it started is left, whatever happens.

        Raises:
            RunnerTimeoutError: it took longer than `limit_s`, and was ended.
            RunnerCrashedError: it ended by a signal or with a status that is not 0, or left
                something running.
            RunnerProtocolError: it printed without an end, and was ended.
            BoardUnfitError: the device can't start it.
            BoardLinkError: the link to the device broke.
        """
        script = self._program.script(arguments, limit_s, self._marks)
        self._log.write(f"edgebench: {shlex.join([self._program.name, *arguments])}\n".encode())
        begun_ns = time.perf_counter_ns()
        try:
            self._start(script, limit_s)
        finally:
            self._log.flush()
            self._end()
        if not self._over:
            raise diagnosis.link_broken(self._adb.serial, self._last_words())
        self._check()
        return self._ended(begun_ns)

    def tail(self) -> str:
        """The last lines that it printed."""
        return "\n".join(line.text for line in self._own_lines()[-TAIL_LINES:])

    def _start(self, script: str, limit_s: float) -> None:
        process = subprocess.Popen(
            self._adb.shell_words(script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is ours: the tool is ended by its word
        )
        try:
            self._read(process, time.monotonic() + limit_s, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def _end(self) -> None:
        """End what is left of it on the device, if that can be reached."""
        self.left = self._marks.word
        with contextlib.suppress(BoardError):
            end_start(self._adb, self.left)
            self.left = None

    def _read(self, process: subprocess.Popen[bytes], deadline: float, limit_s: float) -> None:
        """All that it prints, to the end of adb itself."""
        assert process.stdout is not None
        lines = Lines(MOST_LINE_BYTES)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    raise self._late(limit_s)
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    self._take(lines.last())
                    return
                self._log.write(data)
                self._bytes += len(data)
                if self._bytes > MOST_BYTES:
                    msg = f"{self._program.name} printed more than {MOST_BYTES >> 20} MiB"
                    raise RunnerProtocolError(msg, remedy="No benchmark tool prints that much.")
                for line in lines.feed(data):
                    self._take(line)
                if self._over:
                    deadline = min(deadline, time.monotonic() + LAST_S)

    def _take(self, line: bytes) -> None:
        if line:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            # A tool writes its progress over itself.
            for part in text.split("\r"):
                self._over = self._over or part == self._marks.over
                self._lines.append(Line(part))

    def _late(self, limit_s: float) -> RunnerError:
        name = self._program.name
        if self._over:
            msg = f"{name} ended and left something running on the device, which was ended"
            return RunnerCrashedError(
                msg, log_tail=self.tail(), remedy="It would be measured beside what comes next."
            )
        msg = f"{name} did not end within {limit_s:g} s on the device"
        return RunnerTimeoutError(msg, remedy="Raise measure.timeout_s if the device is only slow.")

    def _check(self) -> None:
        """Raise what the tool's end means."""
        name, at = self._program.name, self._exit_at()
        printed = "\n".join(line.text for line in self._lines[:at])
        status = "" if at is None else self._lines[at].text.removeprefix(self._marks.exit)
        code = int(status) if re.fullmatch(r"[0-9]{1,3}", status) else None
        if code == 0:
            return
        if unfit := diagnosis.cannot_start(name, printed, self._program.abi, code):
            raise unfit
        if code is None:
            msg = f"{name} can't be started on the device: {diagnosis.one_line(self.tail())[-300:]}"
            raise BoardUnfitError(msg, remedy="Was the folder on the device removed meanwhile?")
        if code > SIGNALLED:
            number = code - SIGNALLED
            try:
                ended_by = signal.Signals(number).name
            except ValueError:
                ended_by = f"signal {number}"
            msg_0 = f"{name} was ended by {ended_by} on the device"
            raise RunnerCrashedError(
                msg_0,
                signal=ended_by,
                log_tail=self.tail(),
                remedy="Android ends what takes too much memory."
                if number == signal.SIGKILL
                else None,
            )
        last = diagnosis.one_line(next(reversed(self.tail().splitlines()), ""))[:200]
        msg_0 = f"{name} left with status {code} on the device{f': {last}' if last else ''}"
        raise RunnerCrashedError(
            msg_0,
            exit_code=code,
            log_tail=self.tail(),
        )

    def _ended(self, begun_ns: int) -> Ended:
        # Of `time` alone: what the tool itself prints stands before its end.
        at = self._exit_at()
        assert at is not None
        after = [line.text for line in self._lines[at:]]
        peak = [found[1] for text in after if (found := _PEAK.match(text))]
        cpu = [found[1] for text in after if (found := _CPU.match(text))]
        return Ended(
            lines=tuple(self._own_lines()),
            begun_ns=begun_ns,
            ended_ns=self._lines[-1].t_ns,
            peak_rss_bytes=int(peak[-1]) * 1024 if peak and int(peak[-1]) else None,
            cpu_s=sum(map(float, cpu)) if len(cpu) == 2 else None,  # noqa: PLR2004 - both kinds
        )

    def _exit_at(self) -> int | None:
        mark = self._marks.exit
        return next((at for at, line in enumerate(self._lines) if line.text.startswith(mark)), None)

    def _own_lines(self) -> list[Line]:
        """Those of the tool: without ours, and without what `time` said of it."""
        return [line for line in self._lines[: self._exit_at()] if line.text != self._marks.over]

    def _last_words(self) -> str:
        """What adb itself said at the end."""
        found = [line.text for line in self._lines if re.match(r"(adb|error)\b", line.text)]
        return found[-1] if found else ""


def end_start(adb: Adb, word: str) -> None:
    """End all that one start of a tool left on the device.

    Args:
        adb: the device.
        word: that of the start.

    Raises:
        BoardError: the device can't be reached.
    """
    adb.shell(END.replace("MARK", f"{WORD}={word}"))
