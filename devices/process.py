"""A process and its children, read from procfs through descriptors that stay open.

A descriptor belongs to the process it was opened for: once that has ended, reads fail, and a new
process with the same number is never taken for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from edgebench.devices.cpu import (
    Counters,
    StatCounters,
    parse_stat,
    parse_switches,
    ticks_to_seconds,
)
from edgebench.devices.files import parse_cpu_list, read_open_file
from edgebench.devices.memory import MemoryUse, parse_memory, parse_pss, sum_memory
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STATUS_BYTES = 1 << 14

_RESET_PEAK = b"5"  # proc(5), clear_refs: set the peak to the current size


class ProcessFiles:
    """The files of one process.

    Raises:
        OSError: from every method but `close`, where the process has ended.
    """

    def __init__(self, pid: int, procfs: Path) -> None:
        self.pid = pid
        self._folder = os.open(procfs / str(pid), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._status = self._open("status")
        except OSError:
            os.close(self._folder)
            raise

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._status)
        os.close(self._folder)

    def status(self) -> bytes:
        """The process's status, which is read many times."""
        # It is written in one piece, and is shorter than this: no second read to find its end,
        # for which the kernel would write it again.
        return os.pread(self._status, STATUS_BYTES, 0)

    def read(self, name: str) -> bytes:
        """One of its other files."""
        descriptor = self._open(name)
        try:
            return read_open_file(descriptor)
        finally:
            os.close(descriptor)

    def write(self, name: str, data: bytes) -> None:
        """Write to one of its files."""
        descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def threads(self) -> list[int]:
        """The numbers of its threads."""
        descriptor = os.open(
            "task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder
        )
        try:
            return [int(name) for name in os.listdir(descriptor)]  # noqa: PTH208 - a descriptor
        finally:
            os.close(descriptor)

    def _open(self, name: str) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)


class ProcessTree:
    """A process with all its descendants.

    Args:
        pid: the tree's root.
        procfs: where procfs is mounted.

    Raises:
        OSError: the root does not exist.
    """

    rss_method = "VmRSS"

    def __init__(self, pid: int, procfs: Path) -> None:
        self._procfs = procfs
        self._root = ProcessFiles(pid, procfs)
        self._descendants: dict[int, ProcessFiles] = {}
        self.refresh()

    def close(self) -> None:
        """Close all descriptors."""
        for process in self._processes():
            process.close()
        self._descendants.clear()

    def refresh(self) -> None:
        """Look for children that were born or ended."""
        found: set[int] = set()
        pending = [self._root]
        children_of = self._children_lookup()
        while pending:
            for pid in children_of(pending.pop()):
                if pid in found or pid == self._root.pid:
                    continue
                child = self._descendants.get(pid) or self._open(pid)
                if child is not None:
                    found.add(pid)
                    self._descendants[pid] = child
                    pending.append(child)
        for pid in self._descendants.keys() - found:
            self._descendants.pop(pid).close()

    def snapshot(self) -> tuple[bytes, ...] | None:
        """The status of each process, unread, the root's first; None once the root has ended."""
        try:
            root = self._root.status()
        except OSError:
            return None
        if not self._descendants:
            return (root,)
        children = (_status_of(process) for process in self._descendants.values())
        return (root, *(status for status in children if status is not None))

    @staticmethod
    def memory_in(snapshot: tuple[bytes, ...]) -> MemoryUse | None:
        """The sum over the tree in a snapshot, or None where the root had ended."""
        root, *children = (parse_memory(status) for status in snapshot)
        if root is None or not children:
            return root
        return sum_memory((root, *(use for use in children if use is not None)))

    def memory(self) -> MemoryUse | None:
        """The sum over the tree now, or None once the root has ended."""
        snapshot = self.snapshot()
        return self.memory_in(snapshot) if snapshot is not None else None

    def reset_peak(self) -> str | None:
        """Let the peak start from the current size; returns why that is not possible, or None."""
        for process in self._processes():
            try:
                process.write("clear_refs", _RESET_PEAK)
            except OSError as error:
                return f"clear_refs: {error.strerror}"
        return None

    def pss(self) -> Reading:
        """The proportional set size in bytes; walks the page tables, so milliseconds."""
        method = "Pss of smaps_rollup"
        total = 0
        for process in self._processes():
            try:
                value = parse_pss(process.read("smaps_rollup"))
            except ProcessLookupError:
                value = None
            except OSError as error:
                return Reading.missing(f"smaps_rollup: {error.strerror}", method=method)
            if value is not None:
                total += value
            elif process is self._root:
                return Reading.missing("the process has ended", method=method)
        return Reading(total, method=method)

    def counters(self) -> Counters | None:
        """CPU time, faults and switches so far, or None once the root has ended."""
        root = _stat_of(self._root)
        if root is None:
            return None
        children = (_stat_of(process) for process in self._descendants.values())
        stats = [root, *(stat for stat in children if stat is not None)]
        switches: dict[int, tuple[int, int]] = {}
        for process in self._processes():
            switches.update(_switches_of(process))
        return Counters(
            cpu_time_s=ticks_to_seconds(sum(stat.cpu_ticks for stat in stats)),
            minor_faults=sum(stat.minor_faults for stat in stats),
            major_faults=sum(stat.major_faults for stat in stats),
            switches=switches,
            missing="the kernel keeps no count of the threads' context switches",
        )

    def affinity(self) -> tuple[int, ...]:
        """The CPUs that the root may use, or none where that can't be read."""
        try:
            status = self._root.status()
        except OSError:
            return ()
        _, found, rest = status.partition(b"\nCpus_allowed_list:")
        return parse_cpu_list(rest.partition(b"\n")[0].decode()) if found else ()

    def _processes(self) -> Iterator[ProcessFiles]:
        yield self._root
        yield from self._descendants.values()

    def _open(self, pid: int) -> ProcessFiles | None:
        try:
            return ProcessFiles(pid, self._procfs)
        except OSError:
            return None  # it ended since it was listed

    def _children_lookup(self) -> Callable[[ProcessFiles], list[int]]:
        # Kernels without CONFIG_PROC_CHILDREN lack the file that lists them.
        pid = self._root.pid
        if (self._procfs / f"{pid}/task/{pid}/children").exists():
            return _children_of
        parents = _children_by_parent(self._procfs)
        return lambda process: parents.get(process.pid, [])


def _status_of(process: ProcessFiles) -> bytes | None:
    try:
        return process.status()
    except OSError:
        return None  # it has ended


def _stat_of(process: ProcessFiles) -> StatCounters | None:
    try:
        return parse_stat(process.read("stat"))
    except OSError:
        return None  # it has ended


def _switches_of(process: ProcessFiles) -> dict[int, tuple[int, int]]:
    switches: dict[int, tuple[int, int]] = {}
    try:
        threads = process.threads()
    except OSError:
        return switches  # it has ended
    for thread in threads:
        try:
            counts = parse_switches(process.read(f"task/{thread}/status"))
        except OSError:
            continue  # this thread has ended
        if counts is not None:
            switches[thread] = counts
    return switches


def _children_of(process: ProcessFiles) -> list[int]:
    children: list[int] = []
    try:
        threads = process.threads()
    except OSError:
        return children  # it has ended
    for thread in threads:
        try:
            children.extend(int(pid) for pid in process.read(f"task/{thread}/children").split())
        except OSError:
            continue  # this thread has ended; its children moved to another one
    return children


def _children_by_parent(procfs: Path) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in procfs.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            stat = (entry / "stat").read_bytes()
        except OSError:
            continue  # it has ended
        parent = int(stat[stat.rindex(b")") + 2 :].split(maxsplit=2)[1])
        children.setdefault(parent, []).append(int(entry.name))
    return children
