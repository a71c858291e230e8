"""How much of the CPUs other processes took, from the kernel's own account of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.devices.cpu import ticks_to_seconds
from edgebench.devices.files import read_text
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

METHOD = "/proc/stat without the process tree's own time"
LEAST_S = 0.5
"""The kernel counts in ticks of 10 ms or so: over less time than this it says too little."""

# Fields of the line "cpu" (proc(5)); guest times, behind these, are within user and nice.
_IDLE, _IOWAIT, _STEAL, _COUNTED = 3, 4, 7, 8


@dataclass(frozen=True, slots=True)
class Busy:
    """Ticks of some CPUs since the machine started.

    Attributes:
        busy: neither idle nor stolen by a host.
        total: all of them.
        cpus: how many CPUs they are summed over.
    """

    busy: int
    total: int
    cpus: int


def read_busy(procfs: Path, cpus: Sequence[int] = ()) -> Busy | None:
    """The counters now, or None where the kernel does not show them.

    Args:
        procfs: where procfs is mounted.
        cpus: those to look at; none for all.
    """
    lines = [line.split() for line in (read_text(procfs / "stat") or "").splitlines()]
    wanted = {f"cpu{number}" for number in cpus}
    found = [
        [int(part) for part in line[1 : _COUNTED + 1]]
        for line in lines
        if line
        and line[0].startswith("cpu")
        and (line[0] in wanted if wanted else line[0] != "cpu")
    ]
    if not found or any(len(fields) < _COUNTED for fields in found):
        return None
    fields = [sum(column) for column in zip(*found, strict=True)]
    total = sum(fields)
    idle = fields[_IDLE] + fields[_IOWAIT] + fields[_STEAL]
    return Busy(total - idle, total, len(found))


def others_cpus(before: Busy | None, after: Busy | None, own: Reading) -> Reading:
    """How many CPUs all other processes kept busy, on average: 1 is one whole CPU.

    Args:
        before: the counters at one end.
        after: those at the other.
        own: CPU time of the watched process tree in between, in seconds.
    """
    if before is None or after is None:
        return Reading.missing("this system does not tell how busy its CPUs are", method=METHOD)
    if own.value is None:
        return Reading.missing(own.reason or "its own CPU time is not known", method=METHOD)
    elapsed = ticks_to_seconds(after.total - before.total) / after.cpus
    if elapsed < LEAST_S:
        return Reading.missing(
            f"less than {LEAST_S:g} s, in which the kernel counts too few ticks", method=METHOD
        )
    others = ticks_to_seconds(after.busy - before.busy) - own.value
    return Reading(max(0.0, others / elapsed), method=METHOD)
