"""Takes the readings of one window; the thread that asks for them is in `monitor`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from edgebench.devices.clock import ClockReader
from edgebench.devices.counter_log import CounterLog
from edgebench.devices.cpu import Counters, CpuUse, use_between
from edgebench.devices.others import Busy, others_cpus, read_busy
from edgebench.devices.portable import PsutilTree
from edgebench.devices.process import ProcessTree
from edgebench.devices.reading import Reading
from edgebench.devices.thermal import find_sensors, maximum, read_hottest_celsius
from edgebench.devices.window import Level, Sample, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.devices.memory import MemoryUse
    from edgebench.devices.power import PowerMeter

ENDED = "the process has ended"


class Tree(Protocol):
    """A process tree on this system; None means that its root has ended."""

    @property
    def rss_method(self) -> str:
        """What a sample of memory is read from."""

    def refresh(self) -> None:
        """Look for children that were born or ended."""

    def snapshot(self) -> Any | None:  # noqa: ANN401 - each tree's own, for `memory_in`
        """The tree's memory now, as raw as it can be had."""

    def memory_in(self, snapshot: Any) -> MemoryUse | None:  # noqa: ANN401
        """What a snapshot says."""

    def memory(self) -> MemoryUse | None:
        """The tree's memory now."""

    def reset_peak(self) -> str | None:
        """Let the peak start from now; returns why that is not possible, or None."""

    def pss(self) -> Reading:
        """Proportional set size in bytes."""

    def counters(self) -> Counters | None:
        """The tree's counters now."""

    def affinity(self) -> tuple[int, ...]:
        """The CPUs that the root may use, where known."""

    def close(self) -> None:
        """Free what was opened."""


def open_tree(pid: int, procfs: Path) -> Tree | None:
    """The tree of a process, or None where there is no such process."""
    try:
        # Only Linux has procfs; a test may take it away.
        return ProcessTree(pid, procfs) if (procfs / "stat").exists() else PsutilTree(pid)
    except OSError:
        return None


@dataclass
class _Open:
    """A window that has begun."""

    peak_not_reset: str | None
    counters: Counters | None
    busy: Busy | None = None
    begin_ns: int = 0
    # Read while the framework works, understood afterwards: what a sample costs, it pays.
    snapshots: list[tuple[int, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    greatest: Sample | None = None
    last_peak: int | None = None
    processes: int = 0
    ended: bool = False
    clocks: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)
    temperatures: list[Level] = field(default_factory=list)
    energy: list[CounterLog] = field(default_factory=list)


class Collector:
    """Reads memory, CPU counters, clocks, temperature and energy of a process tree.

    It is used by one thread at a time.

    Args:
        pid: the tree's root.
        meters: the energy meters.
        no_meter_reason: why there is none.
        procfs: where procfs is mounted.
        sysfs: where sysfs is mounted.
        clock: nanoseconds.
    """

    def __init__(
        self,
        pid: int,
        *,
        meters: Sequence[PowerMeter],
        no_meter_reason: str,
        procfs: Path,
        sysfs: Path,
        clock: Callable[[], int],
    ) -> None:
        self._meters = tuple(meters)
        self._no_meter_reason = no_meter_reason
        self._procfs = procfs
        self._sysfs = sysfs
        self._clock = clock
        self._tree = open_tree(pid, procfs)
        self._sensors = find_sensors(sysfs)
        self._clocks = ClockReader((), procfs, sysfs)
        self._window: _Open | None = None

    @property
    def is_open(self) -> bool:
        """Whether a window has begun and not ended."""
        return self._window is not None

    def close(self) -> None:
        """Close all files."""
        self._window = None
        self._clocks.close()
        if self._tree is not None:
            self._tree.close()
            self._tree = None

    def current_rss(self) -> Reading:
        """The tree's resident memory now, in bytes."""
        if self._tree is not None:
            self._tree.refresh()
        use = self._tree.memory() if self._tree is not None else None
        if self._tree is None or use is None:
            return Reading.missing(ENDED)
        return Reading(use.rss_bytes, method=_summed(self._tree.rss_method, use.processes))

    def begin(self) -> None:
        """Open a window; one that was open is dropped."""
        tree = self._tree
        if tree is not None:
            tree.refresh()
            self._follow_affinity(tree.affinity())
        window = _Open(
            peak_not_reset=tree.reset_peak() if tree is not None else ENDED,
            counters=tree.counters() if tree is not None else None,
            busy=read_busy(self._procfs, self._clocks.cpus),
            energy=[CounterLog(each, self._clock) for each in self._meters],
        )
        self._window = window
        self._read_slow(window)
        # The window starts after the slow readings, so that they are not in it.
        window.begin_ns = self._clock()
        _read_energy(window)
        self._read_memory(window)

    def tick(self, *, slow: bool) -> None:
        """Take one more sample.

        Args:
            slow: also look for new children and read clocks and temperature.
        """
        window = self._window
        if window is None:
            return
        if slow:
            if self._tree is not None:
                self._tree.refresh()
            self._read_slow(window)
            for each in window.energy:
                each.note_resolution()
        _read_energy(window)
        self._read_memory(window)

    def end(self) -> Window:
        """Close the window.

        Raises:
            RuntimeError: none is open.
        """
        window = self._window
        if window is None:
            msg = "no window is open: begin() comes before end()"
            raise RuntimeError(msg)
        self._window = None
        self._read_memory(window)
        _read_energy(window)
        end_ns = self._clock()
        self._understand(window)
        tree = self._tree
        if tree is not None:
            tree.refresh()
        busy = read_busy(self._procfs, self._clocks.cpus)
        after = tree.counters() if tree is not None else None
        used = (
            use_between(window.counters, after)
            if window.counters is not None and after is not None
            else CpuUse.missing(ENDED)
        )
        self._read_slow(window)
        for each in window.energy:
            each.settle(end_ns)
        return Window(
            begin_ns=window.begin_ns,
            end_ns=end_ns,
            samples=tuple(window.samples),
            peak_rss=self._peak(window),
            peak_anon=_at_peak("RssAnon", window, _anon),
            peak_file=_at_peak("RssFile", window, _file),
            peak_shared=_at_peak("RssShmem", window, _shared),
            pss=tree.pss() if tree is not None else Reading.missing(ENDED),
            cpu_time=used.cpu_time,
            minor_faults=used.minor_faults,
            major_faults=used.major_faults,
            voluntary_switches=used.voluntary_switches,
            involuntary_switches=used.involuntary_switches,
            others=others_cpus(window.busy, busy, used.cpu_time),
            clock=self._clocks.mean([hz for _t_ns, hz in window.clocks]),
            temperature=maximum(self._sensors, [each.value for each in window.temperatures]),
            energy=tuple(each.trace() for each in window.energy),
            energy_reason=None if self._meters else self._no_meter_reason,
            temperatures=tuple(window.temperatures),
            clocks=tuple(Level(t_ns, sum(hz) / len(hz)) for t_ns, hz in window.clocks if hz),
        )

    def _follow_affinity(self, cpus: tuple[int, ...]) -> None:
        if cpus != self._clocks.cpus:
            self._clocks.close()
            self._clocks = ClockReader(cpus, self._procfs, self._sysfs)

    def _read_memory(self, window: _Open) -> None:
        snapshot = self._tree.snapshot() if self._tree is not None else None
        window.snapshots.append((self._clock(), snapshot))

    def _understand(self, window: _Open) -> None:
        """Turn the snapshots into samples and their peak."""
        for t_ns, snapshot in window.snapshots:
            use = None
            if self._tree is not None and snapshot is not None:
                use = self._tree.memory_in(snapshot)
            if use is None:
                window.ended = True
                continue
            sample = Sample(t_ns, use.rss_bytes, use.anon_bytes, use.file_bytes, use.shared_bytes)
            window.samples.append(sample)
            if window.greatest is None or use.rss_bytes > (window.greatest.rss_bytes or 0):
                window.greatest = sample
            window.last_peak = use.peak_rss_bytes
            window.processes = max(window.processes, use.processes)

    def _read_slow(self, window: _Open) -> None:
        window.clocks.append((self._clock(), self._clocks.read_hz()))
        temperature = read_hottest_celsius(self._sensors)
        if temperature is not None:
            window.temperatures.append(Level(self._clock(), temperature))

    def _peak(self, window: _Open) -> Reading:
        if self._tree is None or window.greatest is None or window.greatest.rss_bytes is None:
            return Reading.missing(ENDED)
        if window.processes > 1 or window.last_peak is None:
            # The processes' own peaks need not be at one moment, so their sum is no peak.
            method = _summed(self._tree.rss_method, window.processes)
            return Reading(
                window.greatest.rss_bytes,
                method=f"{method}, greatest of {len(window.samples)} samples",
            )
        method = "VmHWM"
        if window.peak_not_reset is not None:
            method += f" since the process started ({window.peak_not_reset})"
        if window.ended:
            method += ", last seen before the process ended"
        return Reading(window.last_peak, method=method)


def _read_energy(window: _Open) -> None:
    for each in window.energy:
        each.read()


def _summed(method: str, processes: int) -> str:
    return method if processes == 1 else f"{method} summed over {processes} processes"


def _at_peak(name: str, window: _Open, part: Callable[[Sample], int | None]) -> Reading:
    if window.greatest is None:
        return Reading.missing(ENDED)
    method = f"{name} in the sample of greatest RSS"
    value = part(window.greatest)
    if value is None:
        return Reading.missing(f"this system does not tell {name} apart", method=method)
    return Reading(value, method=method)


def _anon(sample: Sample) -> int | None:
    return sample.anon_bytes


def _file(sample: Sample) -> int | None:
    return sample.file_bytes


def _shared(sample: Sample) -> int | None:
    return sample.shared_bytes
