"""One thread that reads gauges, again and again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from edgebench.devices.gauge import GAP_INTERVALS, GaugeMeter, NotMeasuringError, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Sink(Protocol):
    """What readings go into."""

    def add(self, t_ns: int, value: float) -> None:
        """Take a reading."""

    def fail(self, reason: str, *, measures: bool = True) -> None:
        """Take the reason why there is none."""


class Poller:
    """Reads several gauges from one thread, from the first time that one of them is asked.

    Args:
        clock: nanoseconds.
        interval_s: seconds from one round of readings to the next.
        wait: sleeps so many seconds and says whether to stop; a test gives its own.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        interval_s: float,
        *,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._lock = threading.Lock()
        self._sources: list[tuple[Sink, Callable[[], float]]] = []
        self._open = 0
        self._thread: threading.Thread | None = None

    def gauge(self, name: str, read_w: Callable[[], float], resolution_s: float) -> GaugeMeter:
        """A meter that this thread feeds.

        Args:
            name: of the meter.
            read_w: watts now; raises `OSError` where there is no reading.
            resolution_s: how often the source changes; never less than the thread's own interval.
        """
        meter = GaugeMeter(
            name,
            self._clock,
            longest_gap_s=GAP_INTERVALS * self._interval_s,
            resolution_s=max(resolution_s, self._interval_s),
            start=self.start,
            stop=self.close_one,
        )
        self.feed(meter, read_w)
        return meter

    def feed(self, sink: Sink, read: Callable[[], float]) -> None:
        """Let the thread read for one more, until that calls `close_one`."""
        self._sources.append((sink, read))
        self._open += 1

    def read_once(self) -> None:
        """One round of readings."""
        for sink, read in self._sources:
            before_ns = self._clock()
            try:
                value = read()
            except OSError as error:
                sink.fail(reason_of(error), measures=not isinstance(error, NotMeasuringError))
                continue
            # A reading over a slow bus is of some moment between the two.
            sink.add((before_ns + self._clock()) // 2, value)

    def start(self) -> None:
        """Begin to read, with a first round at once; nothing where that has begun."""
        with self._lock:
            if self._thread is not None or self._open == 0:
                return
            self.read_once()
            self._thread = threading.Thread(target=self._run, name="edgebench-gauges", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._wait(self._interval_s):
            self.read_once()

    def close_one(self) -> None:
        """One of those that are fed needs no more; with the last one the thread ends."""
        with self._lock:
            self._open -= 1
            thread = self._thread if self._open == 0 else None
            if thread is not None:
                self._ended.set()
                self._thread = None
        if thread is not None:
            thread.join()
