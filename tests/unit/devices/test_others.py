"""How much other processes used the CPUs, worked out by hand from the kernel's counters."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgebench.devices.cpu import ticks_to_seconds
from edgebench.devices.others import Busy, others_cpus, read_busy
from edgebench.devices.reading import Reading

HZ = os.sysconf("SC_CLK_TCK")


def test_busy_is_neither_idle_nor_waiting_nor_stolen(tmp_path: Path) -> None:
    """user 10, nice 1, system 5, irq 2, softirq 3 are busy; guest times are within user already."""
    lines = [
        "cpu  99 99 99 99 99 99 99 99 99 99",  # all of them, and those that are off by now
        "cpu0 10 1 5 100 20 2 3 40 9 9",
        "cpu7 1 0 0 9 0 0 0 0 0 0",
        "ctxt 1",
    ]
    (tmp_path / "stat").write_text("\n".join(lines))
    assert read_busy(tmp_path) == Busy(busy=21 + 1, total=181 + 10, cpus=2)
    assert read_busy(tmp_path, [7]) == Busy(busy=1, total=10, cpus=1)
    assert read_busy(tmp_path, [5]) is None


@pytest.mark.parametrize("text", ["", "intr 1 2\n", "cpu0 1 2\n"])
def test_a_kernel_that_does_not_count_is_no_reading(tmp_path: Path, text: str) -> None:
    """A system without these counters gives a reason, never 0."""
    (tmp_path / "stat").write_text(text)
    assert read_busy(tmp_path) is None
    reading = others_cpus(read_busy(tmp_path), Busy(1, 1, 1), Reading(1.0))
    assert reading.value is None
    assert reading.reason


def test_others_are_what_is_busy_and_not_ours() -> None:
    """2 s of 2 CPUs: busy for 3 s of their 4, 1.8 s of it ours: 1.2 s in 2 s are 0.6 CPUs."""
    before, after = Busy(0, 0, 2), Busy(3 * HZ, 4 * HZ, 2)
    assert others_cpus(before, after, Reading(1.8)).value == pytest.approx(0.6)
    # Counted in ticks, ours may come out above all: that is none, not less than none.
    assert others_cpus(before, after, Reading(3.01)).value == 0.0


def test_too_short_a_time_tells_nothing() -> None:
    """Ten ticks can't tell a busy neighbour from none."""
    reading = others_cpus(Busy(0, 0, 1), Busy(5, 10, 1), Reading(0.0))
    assert reading.value is None
    assert "less than" in str(reading.reason)


def test_a_busy_neighbour_is_seen() -> None:
    """A process that spins for a second of CPU time is among the others."""
    procfs = Path("/proc")
    spin = "import time\nwhile time.process_time() < 1.0: pass"
    before, begun = read_busy(procfs), time.monotonic()
    own_before = time.process_time()
    subprocess.run([sys.executable, "-c", spin], check=True)
    own = time.process_time() - own_before
    after, lasted = read_busy(procfs), time.monotonic() - begun
    reading = others_cpus(before, after, Reading(own))
    assert reading.value is not None
    assert reading.value * lasted > 1.0 - 5 * ticks_to_seconds(1)
