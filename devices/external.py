"""A meter of the user's own: a command that prints ``seconds,watts``, a line for each reading.

The protocol is in docs/power.md. Energy is power by time of our own clock: from one arrival of
lines to the next. The seconds are of the meter's clock, which need not be ours, may start anywhere
and may run wrong; of lines that arrive together they only say when between two arrivals each was.
"""

from __future__ import annotations

import errno
import math
import re
import shlex
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING, Literal

from edgebench.devices.pieces import Pieces
from edgebench.devices.points import Points
from edgebench.devices.proof import Refusal
from edgebench.devices.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.window import EnergyPoint

KIND = "external"
NS = 1e9
START_S = 10.0
"""How long the first readings may take."""
PROOF_READINGS = 3
"""And as many arrivals: what came together does not tell how often lines come."""
PROOF_S = 2.0
"""How long readings have to come before anything is told from them: so long it takes to see that
they come in clumps, or that its clock is wrong."""
SILENT_S = 5.0
"""A meter that says nothing for so long, or for ten of its own intervals, says nothing."""
GARBAGE_LIMIT = 20
"""Lines in a row that are no readings, after which nothing more is believed."""
MOST_W = 100_000.0
LATE_S = 2.0
"""By how much lines may arrive more or less late than others, and `WRONG` of the time."""
WRONG = 0.05
"""Share by which the meter's clock may be fast or slow. The energy does not depend on it, but what
is further off counts no seconds."""
RATE_S = 2.0
"""Over how long the two clocks are held against each other, at least."""
RECENT_S = 10.0
RECENT_ARRIVALS = 20
"""Over how long the greatest gap is looked for, and over how many arrivals at least."""
TOGETHER_S = 0.02
"""Lines that follow each other so closely may have waited for each other."""
LINE_BYTES = 4096
MOST_STAMP_S = 1.0

_LINE = re.compile(rb"\s*([^\s,]+)\s*,\s*([^\s,]+)\s*")


@dataclass(frozen=True, slots=True)
class Line:
    """One reading: when it arrived by our clock, and what it says."""

    arrived_s: float
    seconds: float
    watts: float


class Stream:
    """What the lines of the command add up to.

    Args:
        clock: nanoseconds, when a line arrives.

    Attributes:
        readings: how many there were.
        has_power: whether one was above 0 W.
        arrivals: how many times there were some; those that came together count once.
        garbage: lines that were none.
        stopped: why no more is believed; None while all is well.
        changed: guards all, and is notified of each line.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.readings = 0
        self.has_power = False
        self.arrivals = 0
        self.garbage = 0
        self.stopped: str | None = None
        self.changed = threading.Condition()
        self._clock = clock
        self._joules = 0.0
        self._last: Line | None = None
        # Those that came together, after the one up to which the energy is counted.
        self._counted: Line | None = None
        self._waiting: list[Line] = []
        self._recent: deque[Line] = deque()  # the last line of each arrival
        self._first: Line | None = None
        self._greatest_gap_s = 0.0
        self._limit_s = SILENT_S
        self._offsets = (math.inf, -math.inf)
        self._garbage_in_a_row = 0
        self._stamp_s = math.inf  # the smallest step of its clock that was seen
        self._points = Points()
        self._pieces = Pieces(b"\n", LINE_BYTES)

    @property
    def loose_bytes(self) -> int:
        """How much came since the last line's end."""
        return self._pieces.loose_bytes

    def feed(self, piece: bytes) -> None:
        """A piece of the command's output, as it came."""
        for line in self._pieces.feed(piece):
            self.take(line)

    def take(self, line: bytes) -> None:
        """One line of the command's output."""
        now_ns = self._clock()
        text = line.strip()
        if not text or text.startswith(b"#"):
            return
        with self.changed:
            if self.stopped is None:
                self._take(text, now_ns / NS)
            self.changed.notify_all()

    def stop(self, reason: str) -> None:
        """Believe nothing more."""
        with self.changed:
            self.stopped = self.stopped or reason
            self.changed.notify_all()

    def joules(self) -> float:
        """The energy up to the last arrival. Raises `OSError` where there is none to be had."""
        with self.changed:
            self._check()
            return self._joules

    def points_from(self, t_ns: int) -> Sequence[EnergyPoint]:
        """The energy at each line's own time: see `PointMeter`."""
        with self.changed:
            self._check()
            return self._points.since(t_ns)

    def wait_past(self, t_ns: int, limit_s: float) -> None:
        """Until a line is later than `t_ns`, and nothing more can belong to it."""

        def has_come() -> bool:
            last = self._last
            return self.stopped is not None or (last is not None and last.arrived_s * NS > t_ns)

        with self.changed:
            if self.changed.wait_for(has_come, limit_s):
                self.changed.wait_for(lambda: not self._waiting, TOGETHER_S)

    def _check(self) -> None:
        """Count what has come. Raises `OSError` where that is not to be believed, or too old."""
        now_s = self._clock() / NS
        self._count(now_s)
        if self.stopped is not None:
            raise OSError(errno.EIO, self.stopped)
        if self._last is not None and now_s - self._last.arrived_s > self._limit_s:
            said = f"{self.loose_bytes} bytes and no line" if self.loose_bytes else "nothing"
            raise OSError(errno.ETIMEDOUT, f"it has printed {said} for {self._limit_s:.0f} s")

    def proven(self) -> bool:
        """Whether there were readings for long enough, and often enough, to know how they come."""
        first, last = self._first, self._last
        return (
            first is not None
            and last is not None
            and self.arrivals + bool(self._waiting) >= PROOF_READINGS
            and last.arrived_s - first.arrived_s >= PROOF_S
        )

    def interval_s(self) -> float:
        """The greatest of the recent gaps between arrivals, by our clock; also of the present one.

        What is shorter may be a gap as well as not: no energy of it is known.
        """
        with self.changed:
            now_s = self._clock() / NS
            self._count(now_s)
            present_s = now_s - self._last.arrived_s if self._last is not None else 0.0
            silent = present_s > self._limit_s
            return max(self._greatest_gap_s, 0.0 if silent else present_s)

    def _take(self, text: bytes, now_s: float) -> None:
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
        line = Line(now_s, *reading)
        self._count(now_s)
        wrong = self._wrong(line)
        if wrong:
            self.stopped = wrong
            return
        if self._last is None:
            self._first = line
        elif line.seconds > self._last.seconds:
            self._stamp_s = min(self._stamp_s, line.seconds - self._last.seconds)
        self._waiting.append(line)
        self._last = line
        self.has_power = self.has_power or line.watts > 0
        self.readings += 1

    def _count(self, now_s: float) -> None:
        """Add what came together, once nothing more can belong to it."""
        came = self._waiting
        if not came or now_s - came[0].arrived_s < TOGETHER_S:
            return
        before, last = self._counted, came[-1]
        # Before the first arrival there is no time that it could be of.
        if before is None:
            self._points.add(round(last.arrived_s * NS), 0.0)
        else:
            took_s, earlier = last.arrived_s - before.arrived_s, before
            for line, share in zip(came, _shares(before, came), strict=True):
                self._joules += (
                    (earlier.watts + line.watts) / 2 * (share.end - share.begin) * took_s
                )
                t_ns = round((before.arrived_s + share.end * took_s) * NS)
                self._points.add(t_ns, self._joules, took_s)
                earlier = line
        self._counted, self._waiting = last, []
        self.arrivals += 1
        self._recent.append(last)
        while (
            len(self._recent) > RECENT_ARRIVALS + 1
            and self._recent[1].arrived_s < last.arrived_s - RECENT_S
        ):
            self._recent.popleft()
        gaps = [two.arrived_s - one.arrived_s for one, two in pairwise(self._recent)]
        if gaps:
            self._limit_s = max(SILENT_S, 10 * median(gaps))
            # A silence is no gap: the counter itself tells it.
            known = [each for each in gaps if each <= self._limit_s]
            self._greatest_gap_s = max(known, default=0.0)

    def _wrong(self, line: Line) -> str | None:
        """Why a reading is not to be believed, nor any after it."""
        seconds, watts, last = line.seconds, line.watts, self._last
        if not (math.isfinite(seconds) and math.isfinite(watts)):
            return f"it printed {seconds:g},{watts:g}, which is no power"
        if not 0 <= watts <= MOST_W:
            return f"it printed {watts:g} W; power is from 0 to {MOST_W:g} W"
        if last is not None and seconds < last.seconds:
            return f"its clock went back from {last.seconds:g} s to {seconds:g} s"
        return self._off_beat(line)

    def _off_beat(self, line: Line) -> str | None:
        """Why its seconds are none of ours: a line waited in a buffer, or the clock runs wrong."""
        offset = line.arrived_s - line.seconds
        low, high = min(self._offsets[0], offset), max(self._offsets[1], offset)
        self._offsets = (low, high)
        if self._first is None:
            return None
        rate = self._rate(line)
        if rate is not None:
            return f"its clock runs {_times(rate)} times as fast as this machine's"
        apart_s, since = high - low, self._first
        if apart_s <= LATE_S + self._whole_s() + (line.seconds - since.seconds) * WRONG:
            return None
        ours_s = line.arrived_s - since.arrived_s
        # What is late has not come for a while; where no line was missed, the clock is at fault.
        if ours_s > TOGETHER_S and self._gap_s(line) < apart_s / 2:
            rate = (line.seconds - since.seconds) / ours_s
            return f"its clock runs {_times(rate)} times as fast as this machine's"
        return (
            f"its lines arrive up to {apart_s:.0f} s late, by its own clock: let it print "
            "each line at once (python -u, stdbuf -oL)"
        )

    def _gap_s(self, line: Line) -> float:
        """The greatest recent gap, that before this line among them."""
        before = self._counted or self._first or line
        return max(self._greatest_gap_s, line.arrived_s - before.arrived_s)

    def _whole_s(self) -> float:
        """What its clock does not tell: no more than a second, which is what ``date +%s`` tells."""
        return min(self._stamp_s, MOST_STAMP_S)

    def _rate(self, line: Line) -> float | None:
        """Its seconds in one of ours, of late; None where that is 1, or can't be told."""
        since = self._recent[0] if self._recent else line
        ours_s, its_s = line.arrived_s - since.arrived_s, line.seconds - since.seconds
        # Of lines that come in clumps, one too few or too many at either end; of a clock that tells
        # whole seconds only, one of these.
        tolerated_s = WRONG * ours_s + 2 * self._gap_s(line) + self._whole_s()
        if ours_s < RATE_S or abs(its_s - ours_s) <= tolerated_s:
            return None
        return its_s / ours_s


class ExternalMeter:
    """The energy that a command's readings add up to, by our clock.

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
        tool = Tool(words, self.stream.feed, self.stream.stop, is_reading)
        # Also when nobody closes it: at the latest when this process ends.
        self._end = weakref.finalize(self, _end, tool, self.stream)

    @property
    def resolution_s(self) -> float:
        """The greatest of the recent gaps between arrivals, in seconds."""
        return self.stream.interval_s()

    def read_j(self) -> float:
        """Joules since the first arrival.

        Raises:
            OSError: the command has ended, says nothing, or says what can't be.
        """
        return self.stream.joules()

    def points_from(self, t_ns: int) -> Sequence[EnergyPoint]:
        """The same at the readings' own times: see `PointMeter`."""
        return self.stream.points_from(t_ns)

    def wait_past(self, t_ns: int, limit_s: float) -> None:
        """Until there is a reading after `t_ns`: see `PointMeter`."""
        self.stream.wait_past(t_ns, limit_s)

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
        if stream.readings >= PROOF_READINGS:
            stream.changed.wait_for(lambda: stream.proven() or stream.stopped is not None, start_s)
    why = _not_proven(meter, start_s)
    if why is None:
        return meter
    meter.close()
    return Refusal(f"{meter.name}: {why}")


def _not_proven(meter: ExternalMeter, start_s: float) -> str | None:
    stream = meter.stream
    if stream.stopped is None and stream.readings < PROOF_READINGS:
        other = f", and {stream.garbage} other lines" if stream.garbage else ""
        if stream.loose_bytes:
            other += f", and {stream.loose_bytes} bytes without a line's end"
        return f"it printed {stream.readings} readings in {start_s:g} s{other}"
    try:
        joules = meter.read_j()
    except OSError as error:
        return error.strerror
    if not stream.proven() and stream.has_power:
        return (
            f"its {stream.readings} readings came at {stream.arrivals} times only: that is no pace"
        )
    return None if joules else "it prints 0 W only"


def _times(rate: float) -> str:
    return f"{rate:.3g}" if rate < 100 else f"{rate:.0f}"  # noqa: PLR2004 - no 1e+03


@dataclass(frozen=True, slots=True)
class _Share:
    """The part of the time between two arrivals that passed up to a line: from 0 to 1."""

    begin: float
    end: float


def _shares(before: Line, came: list[Line]) -> list[_Share]:
    """When each line was by the meter's own seconds; evenly spread where these hardly go on."""
    seconds = [before.seconds, *(each.seconds for each in came)]
    passed_s = seconds[-1] - seconds[0]
    still = sum(later <= earlier for earlier, later in pairwise(seconds))
    if passed_s <= 0 or still > len(came) / 2:
        ends = [at / len(came) for at in range(len(seconds))]
    else:
        ends = [(each - seconds[0]) / passed_s for each in seconds]
    return [_Share(one, two) for one, two in pairwise(ends)]


def is_reading(line: bytes) -> bool:
    """Whether a line is one of numbers, of a comment, or empty: nothing that has to be told."""
    text = line.strip()
    return not text or text.startswith(b"#") or _parse(text) is not None


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
