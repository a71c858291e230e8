"""How fast this machine's memory can be read, by as many threads as a runner uses.

Standard library only, so that a board needs nothing else. What is read is many times as large as
the last-level caches, since what stays in a cache says nothing about the memory behind it.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.devices.cpu_caches import last_level_bytes
from edgebench.devices.files import read_text
from edgebench.devices.memory_readers import FILLED_WITH, GRAIN, Reader, find_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 1 << 20
NS = 1e9

TIMES_CACHE = 4
"""How many times the last-level caches a repetition reads, at least."""

LEAST_TIMES_CACHE = 2
"""The same where memory is short: with less, much of it would come out of a cache."""

FLOOR_BYTES = 256 * MIB
"""Read at least, whatever the caches: a pass over less is soon over, and some systems have caches
that they don't tell of."""

LEAST_BYTES = 32 * MIB
"""The same where memory is short."""

SHARE_OF_FREE = 0.5
"""Of the memory that is available, how much may be taken."""

PASS_S = 0.05
"""A repetition takes about so long at least: starting threads takes a small part of it then."""

TRIAL_PASSES = 3
LEAST_REPETITIONS = 5
MOST_REPETITIONS = 200

CPU_SHARE = 0.9
"""Of the CPU time that the threads could have had: with less, others took it, and the repetition
says more about them than about the memory."""

MORE_TIME = 3
"""How many times longer it goes on where others disturb it."""

NO_READER = "there is no C library here whose functions could read memory"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What was read, how fast.

    Attributes:
        threads: how many read at once.
        array_bytes: how much memory they read in all, each its own part.
        cache_bytes: the last-level caches together; None where the system does not tell.
        reader: the fastest of those that were tried, such as ``lines-4``.
        bytes_per_s: of each repetition that was not disturbed, or of all where most of them were;
            empty where nothing could be measured.
        disturbed: other processes took the CPUs meanwhile, so that more can be read than this.
        reason: why it is empty; None where it is not.
        at_most: of a disturbed reading, the most that could have been read, bytes/s: what was read
            over the share of the CPU time that it had, of the repetition where that is most.
    """

    threads: int
    array_bytes: int
    cache_bytes: int | None
    reader: str
    bytes_per_s: tuple[float, ...]
    disturbed: bool = False
    reason: str | None = None
    at_most: float | None = None


def measure_bandwidth(
    threads: int,
    *,
    seconds: float = 1.0,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    readers: Sequence[Reader] | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
    cpu_clock: Callable[[], int] = time.process_time_ns,
) -> Bandwidth:
    """Read memory with so many threads at once, again and again.

    Takes a second or two more than `seconds`: memory is touched and each reader tried first. On a
    busy machine it takes up to three times as long.

    Args:
        threads: at least 1.
        seconds: how long to repeat; five times at least.
        procfs: where procfs is mounted; asked for the free memory, and for the CPUs.
        sysfs: where sysfs is mounted; asked for the caches.
        readers: what to try; all that there are where None.
        clock: nanoseconds.
        cpu_clock: nanoseconds that this process was on a CPU.
    """
    cache = last_level_bytes(sysfs, procfs)
    size, reason = array_size(threads, cache, available_bytes(procfs))
    found = find_readers() if readers is None else readers
    if not found:
        reason = NO_READER
    if reason is not None:
        return Bandwidth(threads, size, cache, "", (), reason=reason)
    clocks = _Clocks(clock, cpu_clock)
    try:
        return _measure(threads, size, cache, found, seconds, clocks)
    except (OSError, MemoryError) as error:
        reason = f"{size // MIB} MiB of memory could not be had ({str(error) or 'out of memory'})"
    except _NoThreadsError:
        reason = f"{threads} threads could not be started: a limit of processes or of memory"
    return Bandwidth(threads, size, cache, "", (), reason=reason)


def available_bytes(procfs: Path) -> int | None:
    """Memory that can be taken without pushing anything out; None where it is not told."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", read_text(procfs / "meminfo") or "", re.M)
    return int(found[1]) * 1024 if found else None


def array_size(
    threads: int, cache_bytes: int | None, available: int | None
) -> tuple[int, str | None]:
    """How many bytes to read, equal parts for all threads, and why that can't be.

    Args:
        threads: how many share them.
        cache_bytes: the last-level caches together, where known.
        available: memory that may be taken, where known.
    """
    grain = threads * GRAIN
    cache = cache_bytes or 0
    wanted = max(FLOOR_BYTES, TIMES_CACHE * cache)
    least = max(LEAST_BYTES, LEAST_TIMES_CACHE * cache)
    if available is not None:
        wanted = min(wanted, int(SHARE_OF_FREE * available))
    size = wanted // grain * grain
    if size < least:
        why = (
            f"{least // MIB} MiB at least have to be read to leave its caches behind "
            f"({cache // MIB} MiB), and with {(available or 0) // MIB} MiB available no more than "
            f"{size // MIB} MiB may be taken"
        )
        return size, why
    return size, None


class _Buffer:
    """Memory of one thread, all of it touched; a context manager."""

    def __init__(self, size: int) -> None:
        # Private, as shared memory has no huge pages on most systems.
        self._memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # Without them, walking page tables takes a part of the time.
            with contextlib.suppress(OSError):
                self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._view: ctypes.Array[ctypes.c_char] | None = (ctypes.c_char * size).from_buffer(
            self._memory
        )
        self.size = size
        self.address = ctypes.addressof(self._view)

    def touch(self) -> None:
        """Let the thread that calls it take the pages, so that they are near it."""
        ctypes.memset(self.address, FILLED_WITH, self.size)

    def close(self) -> None:
        """Give the memory back."""
        self._view = None
        self._memory.close()


class _NoThreadsError(Exception):
    """So many threads can't be had."""


@dataclass(frozen=True, slots=True)
class _Clocks:
    wall: Callable[[], int]
    cpu: Callable[[], int]


@dataclass(frozen=True, slots=True)
class _Took:
    """Of one repetition: its seconds, and the share of the CPU time that it could have had."""

    seconds: float
    cpu_share: float


def _measure(
    threads: int,
    size: int,
    cache: int | None,
    readers: Sequence[Reader],
    seconds: float,
    clocks: _Clocks,
) -> Bandwidth:
    buffers: list[_Buffer] = []
    try:
        for _ in range(threads):
            buffers.append(_Buffer(size // threads))  # noqa: PERF401 - closed whatever happens
        _at_once(buffers, _Buffer.touch, clocks)
        tried = [(_trial(buffers, each, clocks), place) for place, each in enumerate(readers)]
        fastest_s, place = min(tried)
        passes = max(1, round(PASS_S / fastest_s))
        took = _repeat(buffers, readers[place], passes, seconds, clocks)
    finally:
        for buffer in buffers:
            buffer.close()
    undisturbed = [each for each in took if each.cpu_share >= CPU_SHARE]
    disturbed = len(undisturbed) < LEAST_REPETITIONS
    rates = tuple(passes * size / each.seconds for each in (took if disturbed else undisturbed))
    at_most = None
    if disturbed:
        had = [(passes * size / each.seconds, each.cpu_share) for each in took]
        at_most = max((rate / min(share, 1.0) for rate, share in had if share > 0), default=None)
    name = readers[place].name
    return Bandwidth(threads, size, cache, name, rates, disturbed, at_most=at_most)


def _trial(buffers: Sequence[_Buffer], reader: Reader, clocks: _Clocks) -> float:
    """The shortest of a few passes, in seconds."""
    return min(_passes(buffers, reader, 1, clocks).seconds for _ in range(TRIAL_PASSES))


def _repeat(
    buffers: Sequence[_Buffer], reader: Reader, passes: int, seconds: float, clocks: _Clocks
) -> list[_Took]:
    """Until it was undisturbed for so long, or has taken several times as long."""
    took: list[_Took] = []
    while len(took) < MOST_REPETITIONS:
        took.append(_passes(buffers, reader, passes, clocks))
        quiet = [each.seconds for each in took if each.cpu_share >= CPU_SHARE]
        if len(quiet) >= LEAST_REPETITIONS and sum(quiet) >= seconds:
            break
        whole = sum(each.seconds for each in took)
        if len(took) >= LEAST_REPETITIONS and whole >= MORE_TIME * seconds:
            break
    return took


def _passes(buffers: Sequence[_Buffer], reader: Reader, passes: int, clocks: _Clocks) -> _Took:
    def read(buffer: _Buffer) -> None:
        for _ in range(passes):
            reader.read(buffer.address, buffer.size)

    return _at_once(buffers, read, clocks)


def _at_once(
    buffers: Sequence[_Buffer], work: Callable[[_Buffer], object], clocks: _Clocks
) -> _Took:
    """How long it takes from the first thread's beginning to the last one's end."""
    ready = threading.Barrier(len(buffers))
    begun, ended = [0] * len(buffers), [0] * len(buffers)

    def run(place: int) -> None:
        try:
            ready.wait()
        except threading.BrokenBarrierError:
            return
        begun[place] = clocks.wall()
        work(buffers[place])
        ended[place] = clocks.wall()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(buffers))]
    cpu = clocks.cpu()
    started: list[threading.Thread] = []
    try:
        for each in threads:
            each.start()
            started.append(each)
    except (RuntimeError, MemoryError) as error:
        # Those that were started wait for the others; nobody else would let them go.
        ready.abort()
        raise _NoThreadsError from error
    finally:
        for each in started:
            each.join()
    cpu = clocks.cpu() - cpu
    # A clock that stands still would make it endless.
    seconds = max(max(ended) - min(begun), 1) / NS
    return _Took(seconds, cpu / NS / seconds / min(len(buffers), _cpus()))


def _cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
