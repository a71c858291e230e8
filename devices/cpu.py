"""CPU time, page faults and context switches of a process tree, as differences of counters."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

# Fields of /proc/PID/stat (proc(5)) after the name, counted from 0 at the state.
_MINOR, _CHILD_MINOR, _MAJOR, _CHILD_MAJOR = 7, 8, 9, 10
_USER, _SYSTEM, _CHILD_USER, _CHILD_SYSTEM = 11, 12, 13, 14

STAT_METHOD = "/proc/PID/stat"
SWITCHES_METHOD = "/proc/PID/task/*/status, threads alive at the end"


@dataclass(frozen=True, slots=True)
class StatCounters:
    """Counters of one process since it started.

    Attributes:
        own_ticks: user and system time in clock ticks.
        cpu_ticks: the same, with that of the children that it has collected.
        minor_faults: those of its collected children included.
        major_faults: the same.
    """

    own_ticks: int
    cpu_ticks: int
    minor_faults: int
    major_faults: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of a process tree at one moment.

    Attributes:
        cpu_time_s: user and system time.
        minor_faults: page faults served from memory, or None where they can't be read.
        major_faults: page faults that had to read a file.
        switches: (voluntary, involuntary) context switches by thread.
        method: what `cpu_time_s` and the faults were read from.
        missing: why the fields that are None (or the empty `switches`) can't be read.
    """

    cpu_time_s: float
    minor_faults: int | None
    major_faults: int | None
    switches: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    method: str = STAT_METHOD
    missing: str = "the kernel does not say"


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What a process tree used between two moments."""

    cpu_time: Reading
    minor_faults: Reading
    major_faults: Reading
    voluntary_switches: Reading
    involuntary_switches: Reading

    @classmethod
    def missing(cls, reason: str) -> CpuUse:
        """Nothing was read, and why."""
        none = Reading.missing(reason)
        return cls(none, none, none, none, none)


def parse_stat(stat: bytes) -> StatCounters:
    """The counters of ``/proc/PID/stat``; a name with brackets and spaces does no harm."""
    fields = stat[stat.rindex(b")") + 2 :].split()
    own_ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    return StatCounters(
        own_ticks=own_ticks,
        cpu_ticks=own_ticks + int(fields[_CHILD_USER]) + int(fields[_CHILD_SYSTEM]),
        minor_faults=int(fields[_MINOR]) + int(fields[_CHILD_MINOR]),
        major_faults=int(fields[_MAJOR]) + int(fields[_CHILD_MAJOR]),
    )


def parse_switches(status: bytes) -> tuple[int, int] | None:
    """Voluntary and involuntary context switches of one thread's status file."""
    voluntary = _count_field(status, b"\nvoluntary_ctxt_switches:")
    involuntary = _count_field(status, b"\nnonvoluntary_ctxt_switches:")
    if voluntary is None or involuntary is None:
        return None
    return voluntary, involuntary


def ticks_to_seconds(ticks: int) -> float:
    """The kernel's clock ticks in seconds."""
    return ticks / os.sysconf("SC_CLK_TCK")


def use_between(begin: Counters, end: Counters) -> CpuUse:
    """What was used from `begin` to `end`.

    Children that ended in between are counted through their parent. Where a process left the tree
    without being collected by it, the difference may be negative: then it is no reading.
    """
    voluntary, involuntary = _switches_between(begin, end)
    return CpuUse(
        cpu_time=_difference(begin.cpu_time_s, end.cpu_time_s, end),
        minor_faults=_difference(begin.minor_faults, end.minor_faults, end),
        major_faults=_difference(begin.major_faults, end.major_faults, end),
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
    )


def _difference(begin: float | None, end: float | None, counters: Counters) -> Reading:
    if begin is None or end is None:
        return Reading.missing(counters.missing, method=counters.method)
    if end < begin:
        return Reading.missing(
            "a child process ended without being collected by its parent", method=counters.method
        )
    return Reading(end - begin, method=counters.method)


def _switches_between(begin: Counters, end: Counters) -> tuple[Reading, Reading]:
    if not end.switches:
        none = Reading.missing(end.missing, method=SWITCHES_METHOD)
        return none, none
    # A thread's count goes with it, so a difference of sums would count it as negative.
    voluntary = involuntary = 0
    for thread, (thread_voluntary, thread_involuntary) in end.switches.items():
        before_voluntary, before_involuntary = begin.switches.get(thread, (0, 0))
        voluntary += thread_voluntary - before_voluntary
        involuntary += thread_involuntary - before_involuntary
    return (
        Reading(voluntary, method=SWITCHES_METHOD),
        Reading(involuntary, method=SWITCHES_METHOD),
    )


def _count_field(data: bytes, key: bytes) -> int | None:
    start = data.find(key)
    if start < 0:
        return None
    start += len(key)
    end = data.find(b"\n", start)
    return int(data[start : end if end >= 0 else len(data)])
