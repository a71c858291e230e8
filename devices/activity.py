"""What the machine is busy with: counters now, so that two looks give shares."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.devices.cpu import parse_stat
from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.machine import cpu_folders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STEAL = 7  # field of the line "cpu" in /proc/stat, counted from user time
_COUNTED_TWICE = 8  # guest times, from here on, are within user and nice


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """A process's name and the clock ticks that it has used."""

    name: str
    ticks: int


@dataclass(frozen=True, slots=True)
class Activity:
    """Counters at one moment.

    Attributes:
        processes: by number, without this one.
        total_ticks: of all CPUs, idle ones included.
        stolen_ticks: when this machine wanted to run and its host ran others.
        throttled: grows whenever a CPU is slowed for heat; None where that is not counted.
    """

    processes: Mapping[int, ProcessTime]
    total_ticks: int
    stolen_ticks: int
    throttled: int | None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another process that used the CPU."""

    pid: int
    name: str
    share: float  # of one CPU


def read_activity(procfs: Path, sysfs: Path) -> Activity:
    """The counters now."""
    fields = [int(part) for part in _cpu_line(procfs)]
    return Activity(
        processes=_process_times(procfs),
        total_ticks=sum(fields[:_COUNTED_TWICE]),
        stolen_ticks=fields[_STEAL] if len(fields) > _STEAL else 0,
        throttled=_throttle_count(sysfs),
    )


def neighbours_between(before: Activity, after: Activity, cpus: int) -> list[Neighbour]:
    """The processes that ran in between, the busiest first."""
    elapsed = (after.total_ticks - before.total_ticks) / max(cpus, 1)
    if elapsed <= 0:
        return []
    found: list[Neighbour] = []
    for pid, now in after.processes.items():
        earlier = before.processes.get(pid)
        ticks = now.ticks - (earlier.ticks if earlier is not None else 0)
        if ticks > 0:
            found.append(Neighbour(pid, now.name, ticks / elapsed))
    return sorted(found, key=lambda neighbour: -neighbour.share)


def stolen_share(before: Activity, after: Activity) -> float:
    """The part of all CPU time in between that the host gave to others."""
    total = after.total_ticks - before.total_ticks
    return (after.stolen_ticks - before.stolen_ticks) / total if total > 0 else 0.0


def _cpu_line(procfs: Path) -> list[str]:
    first, _, _ = (read_text(procfs / "stat") or "").partition("\n")
    return first.split()[1:]


def _process_times(procfs: Path) -> dict[int, ProcessTime]:
    times: dict[int, ProcessTime] = {}
    for entry in list_folder(procfs):
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        stat = read_text(entry / "stat")
        if stat is None:
            continue  # it has ended
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        times[int(entry.name)] = ProcessTime(name, parse_stat(stat.encode()).own_ticks)
    return times


def _throttle_count(sysfs: Path) -> int | None:
    counts = [
        count
        for folder in cpu_folders(sysfs)
        for name in ("core_throttle_count", "package_throttle_count")
        if (count := read_int(folder / "thermal_throttle" / name)) is not None
    ]
    # CPUs of one package repeat its count: the sum tells whether it grew, not how often it was.
    return sum(counts) if counts else None
