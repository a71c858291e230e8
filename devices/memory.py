"""What the kernel counts as a process's memory, from ``/proc/PID/status`` and ``smaps_rollup``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

KIB = 1024


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Resident memory of one process, or the sum over several.

    Attributes:
        rss_bytes: all that is in memory and mapped, shared pages included.
        anon_bytes: the part that no file backs (heap, stacks).
        file_bytes: the part that files back (mapped weights, libraries).
        shared_bytes: the part in shared memory (tmpfs, System V).
        peak_rss_bytes: the greatest `rss_bytes` since the process started or the peak was reset;
            None for a sum, because the processes' peaks need not be at one moment.
        processes: how many processes were summed.
    """

    rss_bytes: int
    anon_bytes: int | None
    file_bytes: int | None
    shared_bytes: int | None
    peak_rss_bytes: int | None
    processes: int = 1


def parse_memory(status: bytes) -> MemoryUse | None:
    """The memory lines of ``/proc/PID/status``.

    Args:
        status: the file's content.

    Returns:
        None for a process that has none any more: one that ended and waits to be collected, or a
        thread of the kernel.
    """
    rss = _kib_field(status, b"\nVmRSS:")
    if rss is None:
        return None
    return MemoryUse(
        rss_bytes=rss,
        anon_bytes=_kib_field(status, b"\nRssAnon:"),
        file_bytes=_kib_field(status, b"\nRssFile:"),
        shared_bytes=_kib_field(status, b"\nRssShmem:"),
        peak_rss_bytes=_kib_field(status, b"\nVmHWM:"),
    )


def sum_memory(uses: Iterable[MemoryUse]) -> MemoryUse | None:
    """The sum over the processes of a tree, or None where there is none."""
    all_uses = tuple(uses)
    if len(all_uses) <= 1:
        return all_uses[0] if all_uses else None
    return MemoryUse(
        rss_bytes=sum(use.rss_bytes for use in all_uses),
        anon_bytes=_sum_known(use.anon_bytes for use in all_uses),
        file_bytes=_sum_known(use.file_bytes for use in all_uses),
        shared_bytes=_sum_known(use.shared_bytes for use in all_uses),
        peak_rss_bytes=None,
        processes=sum(use.processes for use in all_uses),
    )


def parse_pss(rollup: bytes) -> int | None:
    """The proportional set size in bytes from ``/proc/PID/smaps_rollup``."""
    return _kib_field(rollup, b"\nPss:")


def _sum_known(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _kib_field(data: bytes, key: bytes) -> int | None:
    """The value in bytes of a line such as ``VmRSS:  1740 kB``.

    `key` starts with the line's end before it: a process may call itself ``VmRSS:``, but the
    kernel escapes line ends in names.
    """
    start = data.find(key)
    if start < 0:
        return None
    start += len(key)
    return int(data[start : data.index(b"kB", start)]) * KIB
