"""Energy from sources that only tell power: watts, read again and again, become a counter.

A thread of its own reads the source all the time, because the counter's readers come when they
like: 20 times a second in a window, and only twice around an idle time. What lies between two
readings is a straight line (a trapezoid's area). A hole in the readings is not bridged: the energy
in it is not known, and the counter says so. The counter is exact at the readings' own times, and
those are what a window is made of.
"""

from __future__ import annotations

import math
import statistics
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from edgebench.devices.points import Points
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.window import EnergyPoint

NS = 1e9
MOST_WATTS = 10_000.0
"""More is no edge device but a broken sensor or a wrong unit."""
GAP_INTERVALS = 10
"""Readings that may be missing in a row before the energy is unknown. A busy board's scheduler
may well let a thread wait for several."""
_SILENT_PART = 0.8  # of the longest gap; so that no hole passes between two reads of the counter


class NotMeasuringError(OSError):
    """The source answers, but not with what this machine draws: no reading may be bridged."""


class GaugeMeter:
    """A cumulative counter of joules out of readings in watts.

    Args:
        name: such as ``hwmon:VDD_IN``.
        clock: nanoseconds, monotonic; the clock of the readings' times.
        longest_gap_s: between two readings; where it is longer, the energy is unknown.
        resolution_s: how often the source has something new to say, in seconds.
        averages: whether a reading is the mean since the one before it, not the power of a moment.
        start: called before the first reading of the counter, to make readings come.
        stop: called by `close`.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(
        self,
        name: str,
        clock: Callable[[], int],
        *,
        longest_gap_s: float,
        resolution_s: float,
        averages: bool = False,
        start: Callable[[], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.resolution_s = resolution_s
        self._clock = clock
        self._longest_gap_s = longest_gap_s
        self._averages = averages
        self._start = start
        self._stop = stop
        self._changed = threading.Condition()  # guards all below; notified of each reading
        self._points = Points()
        self._last: tuple[int, float] | None = None
        self._joules = 0.0
        self._told_j = 0.0
        self._hole: str | None = None
        self._failure: str | None = None
        self._is_measuring = True

    def add(self, t_ns: int, value: float) -> None:
        """Take one reading, in watts.

        One that is not later than the last, or can't be, is left out.
        """
        watts = value
        with self._changed:
            self._changed.notify_all()
            why = implausible(watts)
            if why is not None:
                self._failure = why
                return
            if self._last is None:
                self._begin_anew(t_ns, watts)
                return
            if not self._is_measuring:
                self._hole = self._failure
                self._begin_anew(t_ns, watts)
                return
            last_ns, last_w = self._last
            took_s = (t_ns - last_ns) / NS
            if took_s <= 0:
                return
            if took_s > self._longest_gap_s:
                self._hole = f"it said nothing for {took_s:.1f} s, so the energy is not known"
                self._begin_anew(t_ns, watts)
                return
            mean_w = watts if self._averages else (last_w + watts) / 2
            self._joules += mean_w * took_s
            self._last, self._failure = (t_ns, watts), None
            self._points.add(t_ns, self._joules)

    def fail(self, reason: str, *, measures: bool = True) -> None:
        """Say that there was no reading.

        Args:
            reason: what the counter says once the gap is too long.
            measures: False where the source no longer tells what the machine draws; then the
                counter says so at once.
        """
        with self._changed:
            self._changed.notify_all()
            self._failure = reason
            self._is_measuring = self._is_measuring and measures

    def read_j(self) -> float:
        """Joules since the first reading; never less than before.

        Between two readings the power is taken to be the last one's.

        Raises:
            OSError: the source says nothing, or nothing that can be, or it was silent for too
                long since the counter was read last; the text says which. After a silence the
                counter goes on from there.
        """
        self._start_once()
        with self._changed:
            last_w, silent_s = self._check()
            self._told_j = max(self._told_j, self._joules + last_w * silent_s)
            return self._told_j

    def points_from(self, t_ns: int) -> Sequence[EnergyPoint]:
        """The counter at the readings' own times: see `PointMeter`."""
        self._start_once()
        with self._changed:
            self._check()
            return self._points.since(t_ns)

    def wait_past(self, t_ns: int, limit_s: float) -> None:
        """Until a reading is later than `t_ns`, or the source no longer measures."""
        with self._changed:
            self._changed.wait_for(
                # One reading that failed is not the last.
                lambda: not self._is_measuring or (self._last is not None and self._last[0] > t_ns),
                limit_s,
            )

    def close(self) -> None:
        """End what makes readings come."""
        self._start = None
        if self._stop is not None:
            stop, self._stop = self._stop, None
            stop()

    def _start_once(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            start()

    def _check(self) -> tuple[float, float]:
        """Watts and age of the last reading. Raises `OSError` where that is no measure of now."""
        hole, self._hole = self._hole, None
        if hole is not None:
            raise OSError(hole)
        if self._last is None or not self._is_measuring:
            raise OSError(self._failure or "it has said nothing yet")
        last_ns, last_w = self._last
        silent_s = max(0.0, (self._clock() - last_ns) / NS)
        if silent_s > self._longest_gap_s * _SILENT_PART:
            raise OSError(self._failure or f"it has said nothing for {silent_s:.1f} s")
        return last_w, silent_s

    def _begin_anew(self, t_ns: int, watts: float) -> None:
        self._points.clear()
        self._joules = max(self._joules, self._told_j)
        self._points.add(t_ns, self._joules)
        self._last, self._failure, self._is_measuring = (t_ns, watts), None, True


def implausible(watts: float) -> str | None:
    """Why this can't be what a machine draws; None where it can."""
    if not math.isfinite(watts):
        return "it says what is no number"
    if watts < 0:
        return f"it says {watts:.6g} W, and no machine draws less than nothing"
    if watts > MOST_WATTS:
        return f"it says {watts:.6g} W, which can't be"
    return None


def reason_of(error: OSError) -> str:
    """A sentence's part for an error of the system or of our own."""
    return error.strerror or str(error) or "it can't be read"


def change_interval(
    read: Callable[[], object],
    clock: Callable[[], int],
    *,
    limit_s: float,
    changes: int = 4,
    rest: Callable[[], object] | None = None,
) -> float | None:
    """How often a source has something new to say: the proof that it measures at all.

    Without `rest` the reading is work, which keeps a CPU busy, so that there is something to see.

    Args:
        read: reads the source.
        clock: nanoseconds.
        limit_s: gives up after so many seconds.
        changes: this many are enough.
        rest: called between two readings.

    Returns:
        The median of the seconds between two changes; `limit_s` where only one was seen; None
        where the source said the same all the time.

    Raises:
        OSError: the source can't be read.
    """
    begin_ns = clock()
    value = read()
    changed_ns: list[int] = []
    while len(changed_ns) < changes and (now_ns := clock()) - begin_ns < limit_s * NS:
        if rest is not None:
            rest()
        if (newer := read()) != value:
            value = newer
            changed_ns.append(now_ns)
    if not changed_ns:
        return None
    steps = [later - earlier for earlier, later in pairwise(changed_ns)]
    return statistics.median(steps) / NS if steps else limit_s


def prove(
    name: str,
    read: Callable[[], float],
    clock: Callable[[], int],
    *,
    limit_s: float,
    rest: Callable[[], object] | None = None,
    changes: int = 4,
    is_power: bool = True,
    allow: str | None = None,
) -> float | Refusal:
    """How often a source changes, in seconds, or why it is not to be trusted.

    Args:
        name: of the meter.
        read: reads the source.
        clock: nanoseconds.
        limit_s: as in `change_interval`.
        rest: as in `change_interval`.
        changes: as in `change_interval`.
        is_power: whether it is watts; a counter of joules may hold any number.
        allow: the command that lets this user read it.
    """
    try:
        interval_s = change_interval(read, clock, limit_s=limit_s, changes=changes, rest=rest)
        value = read()
    except PermissionError as error:
        return Refusal(f"{name}: this user may not read {error.filename}", allow)
    except OSError as error:
        return Refusal(f"{name}: it can't be read ({reason_of(error)})")
    why = implausible(value) if is_power else None
    if why is not None:
        return Refusal(f"{name}: {why}")
    if interval_s is None:
        return Refusal(f"{name}: it said the same for {limit_s:g} s, so it measures nothing")
    return interval_s
