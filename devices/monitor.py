"""Watches a process tree from a thread of the harness, about 20 times a second."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edgebench.devices.collector import Collector
from edgebench.devices.window import EnergyPoint, EnergyTrace, Sample, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from edgebench.devices.power import PowerMeter
    from edgebench.devices.reading import Reading

__all__ = ["EnergyPoint", "EnergyTrace", "Monitor", "Sample", "Window"]

SLOW_INTERVAL_S = 1.0
NO_METER_REASON = "no energy meter was given"


class Monitor:
    """Samples a process tree between `begin` and `end`; used as a context manager.

    A process that ends meanwhile is no error: the window has what was seen, and the reasons for
    the rest. Between windows the thread waits and costs nothing.

    Args:
        pid: the tree's root.
        meters: energy meters, all of which are read.
        no_meter_reason: what to say about energy where there is no meter.
        interval_s: seconds from one sample to the next.
        procfs: where procfs is mounted.
        sysfs: where sysfs is mounted.
        clock: nanoseconds; the default is the clock of the runners' time stamps.
    """

    def __init__(
        self,
        pid: int,
        *,
        meters: Sequence[PowerMeter] = (),
        no_meter_reason: str = NO_METER_REASON,
        interval_s: float = 0.05,
        procfs: Path = Path("/proc"),
        sysfs: Path = Path("/sys"),
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._make: Callable[[], Collector] = lambda: Collector(
            pid,
            meters=meters,
            no_meter_reason=no_meter_reason,
            procfs=procfs,
            sysfs=sysfs,
            clock=clock,
        )
        self._interval_s = interval_s
        self._nudge = threading.Lock()  # free only for a moment, when the sampler is to wake
        self._nudge.acquire()
        self._changed = threading.Condition()  # guards all below
        self._collector: Collector | None = None
        self._stopping = False
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._sampler_cpu_s = 0.0

    @property
    def sampler_cpu_s(self) -> float:
        """Seconds of CPU time that the sampling thread has used."""
        with self._changed:
            return self._sampler_cpu_s

    def __enter__(self) -> Self:
        with self._changed:
            self._collector = self._make()
            self._stopping = False
            self._failure = None
        self._thread = threading.Thread(target=self._run, name="edgebench-monitor", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._stopping = True
            self._wake()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._changed:
            self._open_collector().close()
            self._collector = None

    def begin(self) -> None:
        """Start a window: reset the peak, read the edge, start sampling.

        A window that is still open (its trial failed) is dropped.
        """
        with self._changed:
            self._failure = None
            self._open_collector().begin()
            self._wake()

    def end(self) -> Window:
        """Read the edge, stop sampling, and say what was seen.

        Raises:
            RuntimeError: no window is open.
        """
        with self._changed:
            window = self._open_collector().end()
            failure, self._failure = self._failure, None
            self._wake()
        if failure is not None:
            raise failure
        return window

    def current_rss(self) -> Reading:
        """The tree's resident memory now, in bytes."""
        with self._changed:
            return self._open_collector().current_rss()

    def _open_collector(self) -> Collector:
        if self._collector is None:
            msg = "the monitor is not running: use it as a context manager"
            raise RuntimeError(msg)
        return self._collector

    def _run(self) -> None:
        with self._changed:
            collector = self._open_collector()
            while True:
                self._changed.wait_for(
                    lambda: self._stopping or (collector.is_open and self._failure is None)
                )
                if self._stopping:
                    return
                try:
                    self._sample(collector)
                except Exception as error:  # noqa: BLE001 - end() raises it in the caller's thread
                    self._failure = error

    def _sample(self, collector: Collector) -> None:
        """Sample until the window closes; `wait` gives the lock away."""
        self._nudge.acquire(blocking=False)  # what woke this thread is no reason to sample at once
        next_s = time.monotonic()
        next_slow_s = next_s + SLOW_INTERVAL_S
        while True:
            next_s = max(next_s + self._interval_s, time.monotonic())
            self._sleep(next_s - time.monotonic())
            if self._stopping or not collector.is_open:
                return
            now_s = time.monotonic()
            # A window that was closed and begun anew wakes this thread before its time.
            next_s = min(next_s, now_s)
            slow = now_s >= next_slow_s
            if slow:
                next_slow_s = now_s + SLOW_INTERVAL_S
            collector.tick(slow=slow)
            self._sampler_cpu_s = time.thread_time()

    def _sleep(self, seconds: float) -> None:
        """Give the lock away until woken or until it is time.

        `Condition.wait` does the same in many more steps, and each step, on a CPU whose caches
        belong to the framework, is a step that the framework waits for.
        """
        self._changed.release()
        try:
            self._nudge.acquire(timeout=max(0.0, seconds))
        finally:
            self._changed.acquire()

    def _wake(self) -> None:
        if self._nudge.locked():
            self._nudge.release()
        self._changed.notify_all()
