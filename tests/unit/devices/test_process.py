"""Memory and counters of real processes, and of recorded ones."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from edgebench.devices.memory import MemoryUse, parse_memory, sum_memory
from edgebench.devices.portable import PsutilTree
from edgebench.devices.process import ProcessTree

MIB = 1 << 20
PROC = Path("/proc")
# An interpreter's own allocations while it executes a line.
SLACK = 2 * MIB


@pytest.fixture
def opened(obedient):
    tree = ProcessTree(obedient.pid, PROC)
    yield tree
    tree.close()


def test_status_is_read_in_bytes(write_status):
    """The kernel's kB are 1024 bytes, also for terabytes."""
    text = write_status(hwm=3 * 10**9, rss=2 * 10**9, anon=10**9, file=999_999_999, shmem=1)

    assert parse_memory(text.encode()) == MemoryUse(
        rss_bytes=2_048_000_000_000,
        anon_bytes=1_024_000_000_000,
        file_bytes=1_023_999_998_976,
        shared_bytes=1024,
        peak_rss_bytes=3_072_000_000_000,
    )


def test_name_of_a_process_is_not_its_memory():
    """A process that calls itself like a field is not believed."""
    text = b"Name:\tVmRSS:  7 kB\nVmHWM:\t  9 kB\nVmRSS:\t  8 kB\n"

    use = parse_memory(text)

    assert use is not None
    assert use.rss_bytes == 8192
    assert use.anon_bytes is None


def test_ended_process_has_no_memory():
    """A process that waits to be collected has no memory lines, and no memory of 0."""
    assert parse_memory(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n") is None


def test_sum_has_no_peak():
    """Peaks of processes need not be at one moment, so they are not added up."""
    total = sum_memory([MemoryUse(10, 4, 5, 1, 99), MemoryUse(20, 8, 10, None, 99)])

    assert total == MemoryUse(30, 12, 15, None, None, processes=2)


def test_anonymous_memory_is_seen(obedient, opened):
    """64 MiB that are written to are 64 MiB of anonymous memory."""
    before = opened.memory()

    obedient.do(f"a = b'x' * {64 * MIB}")

    after = opened.memory()
    assert after.anon_bytes - before.anon_bytes == pytest.approx(64 * MIB, abs=SLACK)
    assert after.rss_bytes - before.rss_bytes == pytest.approx(64 * MIB, abs=SLACK)
    assert after.file_bytes - before.file_bytes == pytest.approx(0, abs=SLACK)


def test_mapped_file_is_counted_as_file_backed(obedient, opened, tmp_path):
    """Weights that are mapped and read are in the file-backed part, not lost."""
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(MIB) * 48)
    obedient.do("import mmap")
    before = opened.memory()

    obedient.do(
        f"f = open({str(path)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ); "
        "s = sum(m[i] for i in range(0, len(m), 4096))"
    )

    after = opened.memory()
    assert after.file_bytes - before.file_bytes == pytest.approx(48 * MIB, abs=SLACK)
    assert after.anon_bytes - before.anon_bytes == pytest.approx(0, abs=SLACK)


def test_shared_memory_is_kept_apart(obedient, opened):
    """Pages of shared memory are neither anonymous nor file-backed."""
    obedient.do("import mmap")
    before = opened.memory()

    obedient.do(f"m = mmap.mmap(-1, {16 * MIB}); m.write(b'x' * len(m))")

    after = opened.memory()
    assert after.shared_bytes - before.shared_bytes == pytest.approx(16 * MIB, abs=SLACK)


def test_children_are_part_of_the_tree(obedient, opened):
    """A child's memory is added once it was looked for, and goes with it."""
    obedient.do("import subprocess, sys")
    alone = opened.memory()
    code = f"a = b'x' * {32 * MIB}; print(); input()"
    obedient.do(
        f"p = subprocess.Popen([sys.executable, '-c', {code!r}], stdin=-1, stdout=-1);"
        " p.stdout.readline()"
    )

    opened.refresh()
    both = opened.memory()
    obedient.do("p.communicate(b'\\n')")
    opened.refresh()
    after = opened.memory()

    assert (alone.processes, both.processes, after.processes) == (1, 2, 1)
    assert both.rss_bytes - alone.rss_bytes > 32 * MIB
    assert both.peak_rss_bytes is None
    assert after.rss_bytes - alone.rss_bytes < 16 * MIB


def test_time_of_collected_children_stays(obedient, opened):
    """The CPU time of a child that has ended is not lost."""
    obedient.do("import subprocess, sys")
    before = opened.counters()
    code = "import time; e = time.process_time() + 0.3\nwhile time.process_time() < e: pass"

    obedient.do(f"n = subprocess.run([sys.executable, '-c', {code!r}])")

    opened.refresh()
    after = opened.counters()
    assert 0.28 <= after.cpu_time_s - before.cpu_time_s < 3.0


def test_grandchildren_are_found_without_the_kernels_list(tree, write_status, write_stat):
    """Where the kernel lists no children, the parents' numbers of all processes do."""
    for pid, parent in ((10, 1), (20, 10), (30, 20), (40, 1)):
        tree.proc(
            {
                f"{pid}/status": write_status(pid, rss=pid, anon=pid, hwm=pid),
                f"{pid}/stat": write_stat(pid, f"p {pid}) x", ppid=parent, utime=pid),
                f"{pid}/task/{pid}/status": write_status(pid, voluntary=pid, involuntary=1),
            }
        )

    opened = ProcessTree(10, tree.procfs)

    assert opened.memory() == MemoryUse(60 * 1024, 60 * 1024, 0, 0, None, processes=3)
    counters = opened.counters()
    assert counters is not None
    assert counters.cpu_time_s == 60 / os.sysconf("SC_CLK_TCK")
    assert counters.switches == {10: (10, 1), 20: (20, 1), 30: (30, 1)}
    opened.close()


def test_faults_are_counted(obedient, opened):
    """Writing to 32 MiB of new memory faults each page in, by small pages or by huge ones."""
    before = opened.counters()

    obedient.do(f"a = b'x' * {32 * MIB}")

    after = opened.counters()
    assert after.minor_faults - before.minor_faults >= 16
    assert after.major_faults >= before.major_faults


def test_waiting_is_a_voluntary_switch(obedient, opened):
    """A process that waits 20 times gives the CPU away 20 times by itself."""
    obedient.do("import time")
    before = sum(voluntary for voluntary, _ in opened.counters().switches.values())

    # The waiting is the subject here: however long it takes, each is a switch.
    obedient.do("for _ in range(20): time.sleep(0.0001)")

    after = sum(voluntary for voluntary, _ in opened.counters().switches.values())
    assert after - before >= 20


def test_peak_starts_again(obedient, opened):
    """After a reset the peak is that of now, not of what was freed before."""
    obedient.do(f"a = b'x' * {64 * MIB}; del a")
    high = opened.memory()

    assert opened.reset_peak() is None

    low = opened.memory()
    assert high.peak_rss_bytes - low.peak_rss_bytes == pytest.approx(64 * MIB, abs=SLACK)


def test_proportional_size_is_at_most_the_resident(obedient, opened):
    """PSS is the resident size less what others share."""
    reading = opened.pss()

    assert reading.value is not None
    assert 0 < reading.value <= opened.memory().rss_bytes + SLACK


def test_ended_process_is_not_mistaken_for_another(obedient, opened):
    """Once the root has ended there are no numbers, and no error."""
    obedient.kill()

    opened.refresh()

    assert opened.memory() is None
    assert opened.counters() is None
    assert opened.pss().reason == "the process has ended"
    assert opened.affinity() == ()


def test_affinity_is_the_kernels(opened, obedient):
    """The CPUs are those that the scheduler may use."""
    assert set(opened.affinity()) == os.sched_getaffinity(obedient.pid)


def test_psutil_sees_the_same_memory(obedient, opened):
    """Where there is no procfs, psutil's figures stand in: the same bytes and seconds."""
    portable = PsutilTree(obedient.pid)
    obedient.do(f"a = b'x' * {16 * MIB}")

    use, counters = portable.memory(), portable.counters()

    assert use.rss_bytes == pytest.approx(opened.memory().rss_bytes, abs=SLACK)
    assert use.anon_bytes is None
    assert counters.cpu_time_s == pytest.approx(opened.counters().cpu_time_s, abs=0.1)
    assert counters.method == "psutil.cpu_times()"
    assert portable.pss().reason == "this system keeps no proportional set size"


def test_psutil_tree_survives_the_end_of_its_process(obedient):
    """The portable reader too says nothing about a process that has ended."""
    portable = PsutilTree(obedient.pid)
    obedient.kill()

    portable.refresh()

    assert portable.memory() is None
    assert portable.counters() is None


@pytest.mark.parametrize("make", [PsutilTree, lambda pid: ProcessTree(pid, PROC)])
def test_process_that_never_was(make):
    """A number that belongs to no process is an `OSError`."""
    free = max(psutil.pids()) + 100_000
    while psutil.pid_exists(free):
        free += 1

    with pytest.raises(OSError):  # noqa: PT011 - each system has its own sentence
        make(free)
