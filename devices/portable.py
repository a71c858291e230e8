"""A process tree where there is no procfs (macOS, Windows): what psutil can say, and no more."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from edgebench.devices.cpu import Counters
from edgebench.devices.memory import MemoryUse, sum_memory
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    import psutil

_LINUX_ONLY = "this system does not say; it is read on Linux"


class PsutilTree:
    """The same as `edgebench.devices.process.ProcessTree`, through psutil.

    Raises:
        ProcessLookupError: the root does not exist.
    """

    rss_method = "psutil.memory_info().rss"

    def __init__(self, pid: int) -> None:
        import psutil  # noqa: PLC0415 - Linux needs none

        self._gone = psutil.Error
        try:
            self._root = psutil.Process(pid)
        except self._gone as error:
            msg = f"no process {pid}"
            raise ProcessLookupError(msg) from error
        self._children: list[psutil.Process] = []
        self.refresh()

    def close(self) -> None:
        """Nothing is kept open."""

    def refresh(self) -> None:
        """Look for children that were born or ended."""
        try:
            self._children = self._root.children(recursive=True)
        except self._gone:
            self._children = []

    def snapshot(self) -> MemoryUse | None:
        """The tree's memory now; here it is read at once."""
        return self.memory()

    @staticmethod
    def memory_in(snapshot: MemoryUse) -> MemoryUse | None:
        """What `snapshot` gave."""
        return snapshot

    def memory(self) -> MemoryUse | None:
        """The sum over the tree, or None once the root has ended."""
        root = self._memory_of(self._root)
        if root is None:
            return None
        children = (self._memory_of(child) for child in self._children)
        return sum_memory((root, *(use for use in children if use is not None)))

    def reset_peak(self) -> str | None:
        """Windows keeps a peak, which can't be reset."""
        return "psutil can't reset it"

    def pss(self) -> Reading:
        """Only Linux has it."""
        return Reading.missing("this system keeps no proportional set size")

    def counters(self) -> Counters | None:
        """CPU time so far, or None once the root has ended."""
        total_s = 0.0
        try:
            times = self._root.cpu_times()
        except self._gone:
            return None
        total_s += times.user + times.system + times.children_user + times.children_system
        for child in self._children:
            with contextlib.suppress(self._gone):  # it has ended
                times = child.cpu_times()
                total_s += times.user + times.system + times.children_user + times.children_system
        return Counters(total_s, None, None, method="psutil.cpu_times()", missing=_LINUX_ONLY)

    def affinity(self) -> tuple[int, ...]:
        """None are named, because clocks can't be read by CPU here."""
        return ()

    def _memory_of(self, process: psutil.Process) -> MemoryUse | None:
        try:
            info = process.memory_info()
        except self._gone:
            return None
        if info.rss == 0:
            return None  # ended, and not yet collected
        return MemoryUse(info.rss, None, None, None, getattr(info, "peak_wset", None))
