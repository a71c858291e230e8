"""Starts a tool on the device, reads what it prints as it comes, and ends it where it must end."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from edgebench.harness.adb import diagnosis
from edgebench.harness.adb.tool import Line
from edgebench.harness.errors import (
    BoardError,
    BoardUnfitError,
    RunnerCrashedError,
    RunnerTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.adb.client import Adb

PID: Final = "edgebench: pid "
EXIT: Final = "edgebench: exit "
OVER: Final = "edgebench: over"
SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""
LATER_S: Final = 30.0
"""The device ends the tool by itself so much later than this machine would."""
TAIL_LINES: Final = 20

_PEAK: Final = re.compile(r"^Max RSS \(KiB\): (\d+)", re.MULTILINE)
_CPU: Final = re.compile(r"^(?:System|User) time \(s\): ([\d.]+)", re.MULTILINE)

KILL: Final = """\
ends() {
  for child in $(pgrep -P $1); do ends $child; done
  kill -9 $1 2>/dev/null
}
ends %s
"""
"""Ends a process and all below it; the shell's own variable `$1` is each call's own."""


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

    def script(self, arguments: Sequence[str], limit_s: float) -> str:
        """What the device's shell is to run.

        The inner shell tells how the tool ended. ``time -v`` reads the kernel's accounting of it
        afterwards, so that nothing of ours runs beside it.
        """
        folder = shlex.quote(self.folder)
        limit = ""
        if "timeout" in self.helpers:
            limit = f"toybox timeout -s KILL {limit_s + LATER_S:.0f} "
        inner = (
            f"{limit}{shlex.join([self.path, *arguments])} & "
            f'printf "\\n{PID}%s\\n" "$!"; wait "$!"; printf "\\n{EXIT}%s\\n" "$?"'
        )
        clocked = "toybox time -v " if "time" in self.helpers else ""
        return (
            f"cd {folder} && export LD_LIBRARY_PATH={folder} && "
            f'{clocked}sh -c {shlex.quote(inner)} </dev/null; printf "\\n{OVER}\\n"'
        )

    @property
    def path(self) -> str:
        """Of its file on the device."""
        return f"{self.folder}/{self.name}"


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
        self._lines: list[Line] = []
        self.pid: int | None = None
        self._noted = False

    def wait(self, arguments: Sequence[str], limit_s: float) -> Ended:
        """Run it to its end.

        Raises:
            RunnerTimeoutError: it took longer than `limit_s`, and was ended.
            RunnerCrashedError: it ended by a signal or with a status that is not 0.
            BoardUnfitError: the device can't start it.
            BoardLinkError: the link to the device broke.
        """
        script = self._program.script(arguments, limit_s)
        self._log.write(f"edgebench: {shlex.join([self._program.name, *arguments])}\n".encode())
        begun_ns = time.perf_counter_ns()
        process = subprocess.Popen(
            self._adb.shell_words(script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is ours: the tool is ended by its number
        )
        try:
            self._read(process, time.monotonic() + limit_s, limit_s)
        finally:
            over = self._says(OVER)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            self._log.flush()
            if not over:
                self.end()
        if not over:
            raise diagnosis.link_broken(self._adb.serial, self._last_words())
        self._check()
        return self._ended(begun_ns)

    def end(self) -> None:
        """End the tool on the device, if it can be reached."""
        if self.pid is not None:
            with contextlib.suppress(BoardError):
                end_process(self._adb, self.pid, self._program.path)
                self.pid = None

    def tail(self) -> str:
        """The last lines that it printed."""
        return "\n".join(line.text for line in self._own_lines()[-TAIL_LINES:])

    def _read(self, process: subprocess.Popen[bytes], deadline: float, limit_s: float) -> None:
        assert process.stdout is not None
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not self._says(OVER):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    msg = f"{self._program.name} did not end within {limit_s:g} s on the device"
                    raise RunnerTimeoutError(
                        msg, remedy="Raise measure.timeout_s if the device is only slow."
                    )
                data = os.read(process.stdout.fileno(), 1 << 16)
                self._log.write(data)
                *whole, rest = (rest + data).split(b"\n")
                if not data and rest:
                    whole, rest = [rest], b""
                self._lines += [
                    Line(line.decode("utf-8", "replace").rstrip("\r")) for line in whole
                ]
                self._note_pid()
                if not data:
                    return

    def _note_pid(self) -> None:
        if not self._noted:
            for line in self._lines:
                if line.text.startswith(PID):
                    number = line.text.removeprefix(PID).strip()
                    self.pid = int(number) if number.isdecimal() else None
                    self._noted = True

    def _says(self, mark: str) -> bool:
        return any(line.text.startswith(mark) for line in self._lines[-3:])

    def _check(self) -> None:
        """Raise what the tool's end means."""
        name, printed = self._program.name, "\n".join(line.text for line in self._lines)
        statuses = [
            line.text.removeprefix(EXIT) for line in self._lines if line.text.startswith(EXIT)
        ]
        code = int(statuses[-1]) if statuses and statuses[-1].strip().isdecimal() else None
        if code == 0:
            return
        if unfit := diagnosis.cannot_start(name, printed, self._program.abi):
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
        printed = "\n".join(line.text for line in self._lines)
        peak, cpu = _PEAK.findall(printed), _CPU.findall(printed)
        return Ended(
            lines=tuple(self._own_lines()),
            begun_ns=begun_ns,
            ended_ns=self._lines[-1].t_ns,
            peak_rss_bytes=int(peak[-1]) * 1024 if peak else None,
            cpu_s=sum(map(float, cpu[-2:])) if len(cpu) > 1 else None,
        )

    def _own_lines(self) -> list[Line]:
        """Those of the tool: without ours, and without what `time` said of it."""
        marks = (PID, EXIT, OVER)
        ours = next((at for at, line in enumerate(self._lines) if line.text.startswith(EXIT)), None)
        return [line for line in self._lines[:ours] if not line.text.startswith(marks)]

    def _last_words(self) -> str:
        """What adb itself said at the end."""
        found = [line.text for line in self._lines if re.match(r"(adb|error)\b", line.text)]
        return found[-1] if found else ""


def end_process(adb: Adb, pid: int, path: str) -> None:
    """End a tool on the device, and all that it started.

    Args:
        adb: the device.
        pid: its number, or that of the program that watches its time.
        path: of its file, which its command line has: the number may be another's by now.

    Raises:
        BoardError: the device can't be reached.
    """
    ours = f"grep -q -F {shlex.quote(path)} /proc/{pid}/cmdline 2>/dev/null"
    adb.shell(f"if {ours}; then\n{KILL % pid}fi")
