"""A meter of the user's own: a command that prints ``seconds,watts``, a line for each reading.

The protocol is in docs/power.md. The seconds are of the meter's own clock, which need not be ours
and may start anywhere; they only say how far apart readings are. A reading is placed on our clock
by when its line arrives.
"""

from __future__ import annotations

import errno
import math
import re
import shlex
import threading
import time
import weakref
from dataclasses import dataclass, field
from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING, Literal

from edgebench.devices.proof import Refusal
from edgebench.devices.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

KIND = "external"
NS = 1e9
START_S = 10.0
"""How long the first readings may take."""
PROOF_READINGS = 3
SILENT_S = 5.0
"""A meter that says nothing for so long, or for ten of its own intervals, says nothing."""
GARBAGE_LIMIT = 20
"""Lines in a row that are no readings, after which nothing more is believed."""
MOST_W = 100_000.0
LATE_S = 2.0
"""By how much lines may arrive more or less late than others, and a hundredth of the time."""
LINE_BYTES = 4096

_LINE = re.compile(rb"\s*([^\s,]+)\s*,\s*([^\s,]+)\s*")


@dataclass
class Stream:
    """What the lines of the command add up to.

    Attributes:
        clock: nanoseconds, when a line arrives.
        readings: how many there were.
        garbage: lines that were none.
        stopped: why no more is believed; None while all is well.
        interval_s: between readings, the median of the first ones.
    """

    clock: Callable[[], int]
    readings: int = 0
    garbage: int = 0
    stopped: str | None = None
    interval_s: float = 0.0
    changed: threading.Condition = field(default_factory=threading.Condition)
    _joules: float = 0.0
    _arrived_ns: int = 0
    _last: tuple[float, float] | None = None
    _intervals: list[float] = field(default_factory=list)
    _garbage_in_a_row: int = 0
    _offsets: tuple[float, float] | None = None
    _first_s: float = 0.0
    _rest: bytes = b""

    def feed(self, piece: bytes) -> None:
        """A piece of the command's output, as it came."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        # What has no end is no line.
        self._rest = self._rest[-LINE_BYTES:]
        for line in lines:
            self.take(line)

    def take(self, line: bytes) -> None:
        """One line of the command's output."""
        now_ns = self.clock()
        text = line.strip()
        if not text or text.startswith(b"#"):
            return
        with self.changed:
            if self.stopped is None:
                self._take(text, now_ns)
            self.changed.notify_all()

    def stop(self, reason: str) -> None:
        """Believe nothing more."""
        with self.changed:
            self.stopped = self.stopped or reason
            self.changed.notify_all()

    def joules(self) -> float:
        """The energy up to the last reading. Raises `OSError` where there is none to be had."""
        with self.changed:
            silent_s = (self.clock() - self._arrived_ns) / NS
            limit_s = max(SILENT_S, 10 * self.interval_s)
            if self.stopped is not None:
                raise OSError(errno.EIO, self.stopped)
            if silent_s > limit_s:
                raise OSError(errno.ETIMEDOUT, f"it has printed nothing for {limit_s:.0f} s")
            return self._joules

    def _take(self, text: bytes, now_ns: int) -> None:
        reading = _parse(text)
        if reading is None:
            self.garbage += 1
            self._garbage_in_a_row += 1
            if self._garbage_in_a_row >= GARBAGE_LIMIT:
                self.stopped = (
                    f"{GARBAGE_LIMIT} lines in a row are not 'seconds,watts'; the last is "
                    f"{_shown(text)}"
                )
            return
        self._garbage_in_a_row = 0
        seconds, watts = reading
        wrong = self._wrong(seconds, watts, now_ns)
        if wrong:
            self.stopped = wrong
            return
        if self._last is not None:
            passed_s = seconds - self._last[0]
            self._joules += passed_s * (watts + self._last[1]) / 2
            if len(self._intervals) < GARBAGE_LIMIT and passed_s:
                self._intervals.append(passed_s)
                self.interval_s = median(self._intervals)
        self._last = (seconds, watts)
        self._arrived_ns = now_ns
        self.readings += 1

    def _wrong(self, seconds: float, watts: float, now_ns: int) -> str | None:
        """Why a reading is not to be believed, nor any after it."""
        if not (math.isfinite(seconds) and math.isfinite(watts)):
            return f"it printed {seconds:g},{watts:g}, which is no power"
        if not 0 <= watts <= MOST_W:
            return f"it printed {watts:g} W; power is from 0 to {MOST_W:g} W"
        if self._last is not None and seconds < self._last[0]:
            return f"its clock went back from {self._last[0]:g} s to {seconds:g} s"
        # A line that waits in a buffer arrives late: its energy would be of another moment.
        offset = now_ns / NS - seconds
        if self._offsets is None:
            self._offsets, self._first_s = (offset, offset), seconds
        low, high = min(self._offsets[0], offset), max(self._offsets[1], offset)
        self._offsets = (low, high)
        if high - low > LATE_S + (seconds - self._first_s) / 100:
            return (
                f"its lines arrive up to {high - low:.0f} s late, by its own clock: let it print "
                "each line at once (python -u, stdbuf -oL)"
            )
        return None


class ExternalMeter:
    """The energy that a command's readings add up to, by trapezoids.

    Args:
        command: split like a shell does; no shell runs it.
        clock: nanoseconds.

    Raises:
        OSError: the command can't be started.
        ValueError: a quotation mark is not closed, or it is empty.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(self, command: str, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        words = shlex.split(command)
        if not words:
            msg = "it is empty"
            raise ValueError(msg)
        program = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePath(words[0]).name)
        self.name = f"{KIND}:{program[:40]}"
        self.stream = Stream(clock)
        tool = Tool(words, self.stream.feed, self.stream.stop)
        # Also when nobody closes it: at the latest when this process ends.
        self._end = weakref.finalize(self, _end, tool, self.stream)

    @property
    def resolution_s(self) -> float:
        """Seconds between readings."""
        return self.stream.interval_s

    def read_j(self) -> float:
        """Joules since the first reading.

        Raises:
            OSError: the command has ended, says nothing, or says what can't be.
        """
        return self.stream.joules()

    def close(self) -> None:
        """End the command, and what it started."""
        self._end()


def find_external(
    command: str, clock: Callable[[], int], *, start_s: float = START_S
) -> ExternalMeter | Refusal:
    """The meter of a command once it has proved itself, or why it can't be used.

    Args:
        command: what prints the readings.
        clock: nanoseconds.
        start_s: how long the first readings may take.
    """
    try:
        meter = ExternalMeter(command, clock)
    except ValueError as error:
        return Refusal(
            f"{KIND}: the command can't be read: {str(error).lower()}", "see docs/power.md"
        )
    except OSError as error:
        what = shlex.split(command)[0]
        return Refusal(f"{KIND}: {what} can't be started ({error.strerror})", "see docs/power.md")
    stream = meter.stream
    with stream.changed:
        stream.changed.wait_for(
            lambda: stream.readings >= PROOF_READINGS or stream.stopped is not None, start_s
        )
    why = _not_proven(meter, start_s)
    if why is None:
        return meter
    meter.close()
    return Refusal(f"{meter.name}: {why}")


def _not_proven(meter: ExternalMeter, start_s: float) -> str | None:
    stream = meter.stream
    if stream.stopped is None and stream.readings < PROOF_READINGS:
        other = f", and {stream.garbage} other lines" if stream.garbage else ""
        return f"it printed {stream.readings} readings in {start_s:g} s{other}"
    try:
        joules = meter.read_j()
    except OSError as error:
        return error.strerror
    return None if joules else "it prints 0 W only, or never another time"


def _parse(text: bytes) -> tuple[float, float] | None:
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    try:
        return float(match[1]), float(match[2])
    except ValueError:
        return None


def _end(tool: Tool, stream: Stream) -> None:
    stream.stop("it was closed")
    tool.close()


def _shown(text: bytes) -> str:
    line = text.decode("utf-8", "replace")[:80]
    return repr("".join(each if each.isprintable() else "?" for each in line))
