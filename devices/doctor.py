"""Looks at the machine for what will spoil a measurement, and says how to fix it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.devices.activity import read_activity
from edgebench.devices.check import Check
from edgebench.devices.checks_cpu import (
    check_affinity,
    check_clock,
    check_cpu,
    check_governor,
    check_quota,
    check_smt,
    check_throttling,
    check_turbo,
)
from edgebench.devices.checks_load import (
    check_huge_pages,
    check_load,
    check_memory,
    check_neighbours,
    check_swap,
    check_virtual_machine,
)
from edgebench.devices.checks_sensors import check_power, check_temperature
from edgebench.devices.clock import ClockReader
from edgebench.devices.machine import describe_machine
from edgebench.devices.virtualization import in_virtual_machine

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Check", "examine"]

INTERVAL_S = 0.5


def examine(
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[Check, ...]:
    """Look at everything once; takes about half a second.

    Args:
        procfs: where procfs is mounted.
        sysfs: where sysfs is mounted.
        sleep: waits the given seconds between two looks at who is busy.
        clock: nanoseconds, for the proof that energy meters move.
    """
    machine = describe_machine(procfs, sysfs)
    if not (procfs / "stat").exists():
        return (
            check_cpu(machine),
            Check("system", "note", f"{machine.system}: the other checks need Linux."),
        )
    clocks = ClockReader(machine.affinity, procfs, sysfs)
    try:
        before, clocks_before = read_activity(procfs, sysfs), clocks.read_hz()
        sleep(INTERVAL_S)
        after, clocks_after = read_activity(procfs, sysfs), clocks.read_hz()
        clock_now = clocks.mean((clocks_before, clocks_after))
    finally:
        clocks.close()
    checks = (
        check_cpu(machine),
        check_affinity(machine, procfs, sysfs),
        check_smt(sysfs, machine),
        check_quota(machine, procfs, sysfs),
        check_governor(machine, procfs, sysfs),
        check_turbo(machine, sysfs),
        check_clock(clock_now),
        check_throttling(before, after, sysfs),
        check_temperature(procfs, sysfs),
        *check_power(procfs, sysfs, clock),
        check_memory(procfs),
        check_swap(procfs),
        check_huge_pages(sysfs),
        check_load(machine),
        check_neighbours(before, after, machine),
        check_virtual_machine(before, after, machine)
        if in_virtual_machine(procfs, sysfs)
        else None,
    )
    return tuple(check for check in checks if check is not None)
