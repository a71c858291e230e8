"""What the doctor looks at around the measurement: memory and who else uses the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edgebench.devices.activity import neighbours_between, stolen_share
from edgebench.devices.check import Check
from edgebench.devices.files import read_text
from edgebench.devices.machine import GIB, read_meminfo

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.devices.activity import Activity
    from edgebench.devices.machine import Machine

LOAD_PER_CPU_LIMIT = 0.1
NEIGHBOUR_SHARE_LIMIT = 0.05
STOLEN_SHARE_LIMIT = 0.005
AVAILABLE_LIMIT = 0.1
NEIGHBOURS_SHOWN = 3


def check_memory(procfs: Path) -> Check | None:
    """Whether a model has room; None where the kernel does not say."""
    memory = read_meminfo(procfs)
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    if not total or available is None:
        return None
    finding = f"{available / GIB:.1f} of {total / GIB:.1f} GiB are available."
    if available < AVAILABLE_LIMIT * total:
        return Check(
            "memory", "problem", finding, "Stop what uses the memory, or take a smaller model."
        )
    return Check("memory", "good", finding)


def check_swap(procfs: Path) -> Check | None:
    """Whether something has been swapped out; None where the kernel does not say."""
    memory = read_meminfo(procfs)
    total, free = memory.get("SwapTotal"), memory.get("SwapFree")
    if total is None or free is None:
        return None
    if total == free:
        return Check("swap", "good", "No swap is in use.")
    return Check(
        "swap",
        "note",
        f"{(total - free) / GIB:.1f} GiB are swapped out: weights may have to be read again.",
        "sudo swapoff -a",
    )


def check_huge_pages(sysfs: Path) -> Check | None:
    """Whether the kernel backs memory with huge pages unasked; None where it can't."""
    text = read_text(sysfs / "kernel/mm/transparent_hugepage/enabled") or ""
    chosen = re.search(r"\[(\w+)\]", text)
    if not chosen:
        return None
    if chosen[1] != "always":
        return Check("huge pages", "good", f"Transparent huge pages: {chosen[1]}.")
    return Check(
        "huge pages",
        "note",
        "Huge pages are used unasked: memory grows in steps and speed varies between starts.",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )


def check_load(machine: Machine) -> Check | None:
    """Whether the machine was busy in the last minute; None where there is no load average."""
    if not machine.load_average:
        return None
    load = machine.load_average[0]
    finding = f"The load was {load:.2f} over the last minute, on {machine.logical_cpus} CPUs."
    if load > LOAD_PER_CPU_LIMIT * machine.logical_cpus:
        return Check("load", "problem", finding, "Wait until it falls, or stop what causes it.")
    return Check("load", "good", finding)


def check_neighbours(before: Activity, after: Activity, machine: Machine) -> Check:
    """Which other processes use the CPUs."""
    found = neighbours_between(before, after, machine.logical_cpus)
    shown = ", ".join(
        f"{neighbour.name} ({neighbour.pid}) {neighbour.share:.0%}"
        for neighbour in found[:NEIGHBOURS_SHOWN]
    )
    if sum(neighbour.share for neighbour in found) > NEIGHBOUR_SHARE_LIMIT:
        return Check(
            "neighbours",
            "problem",
            f"Other processes are busy, in shares of one CPU: {shown}.",
            "Stop them, or wait until they are done. A framework with as many threads as CPUs "
            "loses more than their share: its threads work in step and wait for the slowest.",
        )
    busiest = f"; the busiest: {shown}" if shown else ""
    limit = f"{NEIGHBOUR_SHARE_LIMIT:.0%}"
    return Check(
        "neighbours", "good", f"Other processes use less than {limit} of one CPU{busiest}."
    )


def check_virtual_machine(before: Activity, after: Activity, machine: Machine) -> Check:
    """How much CPU time the host gave to others; asked in virtual machines only."""
    share = stolen_share(before, after)
    kind = machine.virtualization
    if share > STOLEN_SHARE_LIMIT:
        return Check(
            "virtual machine",
            "problem",
            f"The host took {share:.1%} of the CPU time for others ({kind}).",
            "Use a machine of your own, or one whose CPUs are reserved.",
        )
    return Check(
        "virtual machine",
        "note",
        f"Other guests may share the processor and its caches unseen ({kind}); "
        "the host took no CPU time just now.",
        "Prefer a physical machine where small differences matter.",
    )
