"""CPU clocks: cpufreq where the kernel has it, ``/proc/cpuinfo`` otherwise."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from edgebench.devices.files import read_open_file
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CPUFREQ_METHOD = "scaling_cur_freq"
CPUINFO_METHOD = "cpu MHz of /proc/cpuinfo"


class ClockReader:
    """Reads the present clocks of some CPUs, again and again.

    Args:
        cpus: the CPUs to read.
        procfs: where procfs is mounted.
        sysfs: where sysfs is mounted.
    """

    def __init__(self, cpus: Sequence[int], procfs: Path, sysfs: Path) -> None:
        self.cpus = tuple(cpus)
        self._cpufreq = _open_cpufreq(self.cpus, sysfs)
        self._cpuinfo = None if self._cpufreq else _open_or_none(procfs / "cpuinfo")

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._cpufreq:
            os.close(descriptor)
        if self._cpuinfo is not None:
            os.close(self._cpuinfo)
        self._cpufreq, self._cpuinfo = [], None

    def read_hz(self) -> tuple[float, ...]:
        """The clock of each CPU that has one; nothing where none can be read."""
        if self._cpuinfo is not None:
            return parse_cpuinfo_clocks(read_open_file(self._cpuinfo), self.cpus)
        clocks: list[float] = []
        for descriptor in self._cpufreq:
            try:
                clocks.append(int(read_open_file(descriptor)) * 1e3)
            except (OSError, ValueError):
                continue  # this CPU is offline; "<unknown>" is what some drivers say then
        return tuple(clocks)

    def mean(self, samples: Sequence[tuple[float, ...]]) -> Reading:
        """The mean clock in Hz over samples of `read_hz` and CPUs."""
        if not self.cpus:
            return Reading.missing("the CPUs that the process may use are not known")
        clocks = [clock for sample in samples for clock in sample]
        if not self._cpufreq and self._cpuinfo is None:
            return Reading.missing("neither cpufreq nor /proc/cpuinfo can be read")
        method = CPUFREQ_METHOD if self._cpufreq else CPUINFO_METHOD
        if not clocks:
            return Reading.missing("the kernel reports no CPU clock", method=method)
        if not self._cpufreq and len(set(clocks)) == 1:
            # Without a driver for clocks, and in virtual machines always, it is the nominal one.
            return Reading.missing("/proc/cpuinfo reports a constant", method=method)
        return Reading(sum(clocks) / len(clocks), method=method)


def parse_cpuinfo_clocks(cpuinfo: bytes, cpus: Sequence[int]) -> tuple[float, ...]:
    """The ``cpu MHz`` of the given processors, in Hz."""
    wanted = set(cpus)
    clocks: list[float] = []
    processor = -1
    for line in cpuinfo.splitlines():
        if line.startswith(b"processor"):
            processor = int(line.partition(b":")[2])
        elif line.startswith(b"cpu MHz") and processor in wanted:
            clocks.append(float(line.partition(b":")[2]) * 1e6)
    return tuple(clocks)


def _open_cpufreq(cpus: Sequence[int], sysfs: Path) -> list[int]:
    opened: list[int] = []
    for cpu in cpus:
        descriptor = _open_or_none(sysfs / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        if descriptor is not None:
            opened.append(descriptor)
    return opened


def _open_or_none(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
