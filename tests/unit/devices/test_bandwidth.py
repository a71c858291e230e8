"""Reading memory: all of it, nothing else, past every cache, and undisturbed or said so."""

from __future__ import annotations

import ctypes
import mmap
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edgebench.devices.bandwidth import MIB, array_size, available_bytes, measure_bandwidth
from edgebench.devices.cpu_caches import last_level_bytes
from edgebench.devices.memory_readers import (
    FILLED_WITH,
    GRAIN,
    MACHINE_CODE,
    Reader,
    find_readers,
)

READERS = find_readers()


@dataclass
class Clock:
    """Stands still unless a reader moves it: `wall` for everybody, `cpu` of this process."""

    wall_ns: int = 0
    cpu_ns: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reader(self, name: str, wall_ms: float, cpu_ms: float) -> Reader:
        """One that takes so long, whatever it is asked to read."""

        def read(_address: int, _size: int) -> None:
            with self.lock:
                self.wall_ns += round(wall_ms * 1e6)
                self.cpu_ns += round(cpu_ms * 1e6)

        return Reader(name, read)


@pytest.fixture
def small(tmp_path):
    """A machine with 128 MiB available, half of which may be taken, and no caches told."""
    procfs = tmp_path / "proc"
    procfs.mkdir()
    (procfs / "meminfo").write_text("MemTotal: 262144 kB\nMemAvailable:     131072 kB\n")
    return {"procfs": procfs, "sysfs": tmp_path / "sys"}


def measured(clock: Clock, small, *readers: Reader, threads: int = 1, seconds: float = 1.0):
    return measure_bandwidth(
        threads,
        seconds=seconds,
        readers=readers,
        clock=lambda: clock.wall_ns,
        cpu_clock=lambda: clock.cpu_ns,
        **small,
    )


def pages_present(address: int, size: int) -> list[bool]:
    """Of each page, whether the kernel has put one there: bit 63 of its word in the page map."""
    first, count = address // mmap.PAGESIZE, size // mmap.PAGESIZE
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        pagemap.seek(first * 8)
        words = struct.unpack(f"={count}Q", pagemap.read(count * 8))
    return [bool(word >> 63) for word in words]


@pytest.mark.parametrize(
    "reader",
    # It searches: in fresh memory, all zeros, it would be done at once. The next test has it.
    [each for each in READERS if each.name != "memchr"],
    ids=lambda each: each.name,
)
def test_a_reader_reads_every_page(reader):
    """The kernel's own account of 1 MiB: a page is there once it was read, and only then."""
    size = 16 * GRAIN
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)  # so that each page has to be asked for
    view = (ctypes.c_char * size).from_buffer(memory)
    address = ctypes.addressof(view)
    assert pages_present(address, size) == [False] * (size // mmap.PAGESIZE)
    reader.read(address, size - GRAIN)
    assert pages_present(address, size - GRAIN) == [True] * ((size - GRAIN) // mmap.PAGESIZE)
    assert not any(pages_present(address + size - GRAIN, GRAIN))


def test_a_search_goes_to_the_last_byte():
    """What it looks for stands at the very end, and it finds it there: it read all before."""
    size = 16 * GRAIN
    view = ctypes.create_string_buffer(bytes([FILLED_WITH]) * size, size)
    address = ctypes.addressof(view)
    search = next(each for each in READERS if each.name == "memchr")
    assert search.read(address, size) is None
    view[size - 1] = 1 - FILLED_WITH
    assert search.read(address, size) == address + size - 1


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
def test_a_reader_reads_nothing_past_the_end(reader):
    """A page that may not be read stands behind the memory; a process that touched it would die."""
    script = f"""
import ctypes, mmap
from edgebench.devices.memory_readers import GRAIN, find_readers
memory = mmap.mmap(-1, GRAIN + mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
view = (ctypes.c_char * (GRAIN + mmap.PAGESIZE)).from_buffer(memory)
start = ctypes.addressof(view)
ctypes.memset(start, 1, GRAIN)
guard = ctypes.c_void_p(start + GRAIN)
assert ctypes.CDLL(None).mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
reader = next(each for each in find_readers() if each.name == {reader.name!r})
reader.read(start, GRAIN)
print("alive", flush=True)
reader.read(start + 64, GRAIN)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "alive\n"
    # One line further on is the guard: what read up to the end exactly dies now.
    assert done.returncode < 0


def test_the_machine_code_is_what_was_assembled():
    """By length, and by the loop's step of 64 bytes: the jump goes back to the first load."""
    for name, codes in MACHINE_CODE.items():
        for streams, text in codes.items():
            code = bytes.fromhex(text)
            if name in ("x86_64", "amd64"):
                loads = code.count(b"\x48\x8b") + code.count(b"\x4a\x8b")
                jump = code[-2] - 256
                assert code[-1] == 0xC3
                # Each load is 3 or 4 bytes; add, cmp and the jump itself are 9.
                assert -jump == 9 + 3 + 4 * (streams - 1)
                assert b"\x48\x83\xc7\x40" in code
            else:
                words = [
                    int.from_bytes(code[at : at + 4], "little") for at in range(0, len(code), 4)
                ]
                loads = sum(word >> 22 in (0x3E1, 0x3E5) for word in words)
                assert words[-1] == 0xD65F03C0
            assert loads == streams


@pytest.mark.parametrize(
    ("cache", "available", "expected"),
    [
        (300 * MIB, 24_000 * MIB, 1200),  # four times the caches
        (2 * MIB, 4_000 * MIB, 256),  # never less than 256 MiB
        (None, None, 256),
        (300 * MIB, 1_600 * MIB, 800),  # half of what is available, more than twice the caches
        (1 * MIB, 100 * MIB, 50),
    ],
)
def test_what_is_read_is_larger_than_the_caches(cache, available, expected):
    """Four times the caches, at least 256 MiB, at most half of the memory that is available."""
    size, reason = array_size(1, cache, available and available)
    assert (size // MIB, reason) == (expected, None)


@pytest.mark.parametrize(("cache", "available"), [(300 * MIB, 1_000 * MIB), (None, 40 * MIB)])
def test_too_little_memory_is_a_reason(cache, available, tmp_path):
    """Less than twice the caches would measure the caches."""
    _size, reason = array_size(2, cache, available)
    assert reason is not None
    assert f"with {available // MIB} MiB available" in reason


def test_too_little_memory_is_no_reading(tmp_path):
    """Nothing is read, and the reason is told."""
    (tmp_path / "meminfo").write_text("MemAvailable: 20480 kB\n")
    found = measure_bandwidth(1, procfs=tmp_path, sysfs=tmp_path)
    assert found.bytes_per_s == ()
    assert "32 MiB at least" in (found.reason or "")


def test_every_thread_has_its_part():
    """Parts are equal, and as large as every reader's step."""
    for threads in (1, 3, 4, 7):
        size, _reason = array_size(threads, 10 * MIB, 4_000 * MIB)
        assert size % (threads * GRAIN) == 0


def test_caches_are_those_of_the_allowed_cpus(tmp_path):
    """Two caches of 32 MiB that four CPUs share each: of CPUs 0 to 3, one; of all, both."""
    for cpu in range(8):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cache"
        shared = "0-3" if cpu < 4 else "4-7"
        for index, (level, kind, size, who) in enumerate(
            [(1, "Data", "32K", cpu), (1, "Instruction", "64M", cpu), (2, "Unified", "1M", cpu),
             (3, "Unified", "32768K", shared)]
        ):  # fmt: skip
            place = folder / f"index{index}"
            place.mkdir(parents=True)
            (place / "level").write_text(f"{level}\n")
            (place / "type").write_text(f"{kind}\n")
            (place / "size").write_text(f"{size}\n")
            (place / "shared_cpu_list").write_text(f"{who}\n")
    status = tmp_path / "proc/self/status"
    status.parent.mkdir(parents=True)
    status.write_text("Cpus_allowed_list:\t0-3\n")
    assert last_level_bytes(tmp_path / "sys", tmp_path / "proc") == 32 * MIB
    status.write_text("Cpus_allowed_list:\t0-7\n")
    assert last_level_bytes(tmp_path / "sys", tmp_path / "proc") == 64 * MIB
    assert last_level_bytes(tmp_path / "none", tmp_path / "proc") is None


def test_available_memory_is_the_kernels(small, tmp_path):
    """In bytes; nothing where the kernel does not tell."""
    assert available_bytes(small["procfs"]) == 128 * MIB
    assert available_bytes(tmp_path) is None


def test_the_fastest_reader_is_taken_and_its_rate_is_bytes_over_time(small):
    """64 MiB in 10 ms are 6.7 GB/s; five passes make a repetition of 50 ms, 20 of them a second."""
    clock = Clock()
    found = measured(clock, small, clock.reader("slow", 20, 20), clock.reader("fast", 10, 10))
    assert (found.reader, found.array_bytes, found.disturbed) == ("fast", 64 * MIB, False)
    assert len(found.bytes_per_s) == 20
    assert found.bytes_per_s == pytest.approx([64 * MIB / 0.010] * 20)


def test_a_repetition_that_others_disturbed_does_not_count(small):
    """Half of the CPU time in every second pass of one: those are left out, the rest is kept."""
    clock = Clock()
    calls = iter(range(10_000))

    def read(_address, _size):
        disturbed = next(calls) % 10 >= 5
        clock.wall_ns += 40_000_000 if disturbed else 20_000_000
        clock.cpu_ns += 20_000_000

    found = measured(clock, small, Reader("one", read), seconds=0.5)
    assert not found.disturbed
    assert found.bytes_per_s == pytest.approx([64 * MIB / 0.020] * len(found.bytes_per_s))


def test_a_busy_machine_is_said(small):
    """Half of the CPU time throughout: it takes three times as long, and says disturbed."""
    clock = Clock()
    found = measured(clock, small, clock.reader("one", 50, 25))
    assert found.disturbed
    # 3 s of 50 ms each, after three to try the reader.
    assert clock.wall_ns / 1e9 == pytest.approx(3.15, abs=0.06)


def test_no_reader_is_a_reason(small):
    """Where nothing can read, nothing is measured."""
    found = measured(Clock(), small)
    assert found.bytes_per_s == ()
    assert "no C library" in (found.reason or "")


def test_memory_that_is_refused_is_a_reason(small, monkeypatch):
    """The system may refuse what it said was available."""

    def refuse(*_args: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("edgebench.devices.bandwidth.mmap.mmap", refuse)
    found = measured(Clock(), small, Clock().reader("one", 1, 1))
    assert "64 MiB of memory could not be had" in (found.reason or "")


def test_two_threads_read_at_once_for_real(small):
    """The readers that this machine has, on its own memory: something finite came of it."""
    found = measure_bandwidth(2, seconds=0.01, **small)
    assert found.reader in {each.name for each in READERS}
    assert len(found.bytes_per_s) >= 5
    assert all(1e8 < each < 1e13 for each in found.bytes_per_s)


def test_a_busy_machines_reading_has_a_bound(small):
    """Half of the CPU time: twice as much could have been read, and no more."""
    clock = Clock()
    found = measured(clock, small, clock.reader("one", 50, 25))
    assert found.at_most == pytest.approx(2 * 64 * MIB / 0.050)
    clock = Clock()
    assert measured(clock, small, clock.reader("one", 50, 50)).at_most is None


def test_threads_that_can_not_be_started_are_a_reason(small, monkeypatch):
    """Two of four start: they are let go, and nothing waits for the others."""
    begin, started = threading.Thread.start, []

    def start(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    clock = Clock()
    found = measure_bandwidth(
        4, **small, readers=[clock.reader("one", 10, 10)],
        clock=lambda: clock.wall_ns, cpu_clock=lambda: clock.cpu_ns,
    )  # fmt: skip
    assert found.bytes_per_s == ()
    assert "4 threads could not be started" in (found.reason or "")
    assert not any(each.is_alive() for each in started)
