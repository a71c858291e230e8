"""What the doctor looks at in the processor: CPUs, clocks, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.devices.cgroup import cpu_quota
from edgebench.devices.check import Check
from edgebench.devices.files import format_cpu_list, read_int, read_text
from edgebench.devices.machine import online_cpus
from edgebench.devices.virtualization import in_virtual_machine

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.devices.activity import Activity
    from edgebench.devices.machine import Machine
    from edgebench.devices.reading import Reading

_GOVERNOR_REMEDY = (
    "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
)
_INTEL_TURBO_REMEDY = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
_BOOST_REMEDY = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
_COOL_REMEDY = "Let the machine cool down, and look at its fan and its power supply."
# Raspberry Pi firmware, get_throttled: these bits are about now, the same 16 higher about the past.
_PI_THROTTLED = "devices/platform/soc/soc:firmware/get_throttled"
_PI_NOW = {0: "under-voltage", 1: "clock capped", 2: "throttled", 3: "soft temperature limit"}
_PI_PAST_SHIFT = 16


def check_cpu(machine: Machine) -> Check:
    """Which processor it is."""
    cores = f"{machine.physical_cpus} cores, " if machine.physical_cpus else ""
    kind = f" ({machine.cpu_microarchitecture})" if machine.cpu_microarchitecture else ""
    return Check(
        "CPU", "good", f"{machine.cpu_model}{kind}, {cores}{machine.logical_cpus} CPUs online."
    )


def check_affinity(machine: Machine, procfs: Path, sysfs: Path) -> Check:
    """Whether this process may use all CPUs."""
    online = online_cpus(procfs, sysfs)
    allowed = machine.affinity
    if len(allowed) >= len(online):
        return Check("affinity", "good", f"All {len(online)} online CPUs may be used.")
    shown = format_cpu_list(allowed)
    return Check(
        "affinity",
        "note",
        f"Only {len(allowed)} of {len(online)} online CPUs may be used: {shown}.",
        f"Start without taskset or a CPU set, or ask for at most {len(allowed)} threads.",
    )


def check_governor(machine: Machine, procfs: Path, sysfs: Path) -> Check:
    """Whether the kernel holds the clock up."""
    if machine.governor == "performance":
        return Check("governor", "good", "The governor is performance.")
    if machine.governor is not None:
        return Check(
            "governor",
            "problem",
            f"The governor is {machine.governor}, so the clock follows the load.",
            _GOVERNOR_REMEDY,
        )
    who = "the host" if in_virtual_machine(procfs, sysfs) else "the firmware"
    return Check("governor", "note", f"The kernel has no governor here; {who} sets the clock.")


def check_turbo(machine: Machine, sysfs: Path) -> Check:
    """Whether the clock may rise above the nominal one."""
    if machine.turbo is None:
        return Check("turbo", "note", "The kernel does not say whether turbo is on.")
    if not machine.turbo:
        return Check("turbo", "good", "Turbo is off.")
    intel = (sysfs / "devices/system/cpu/intel_pstate/no_turbo").exists()
    return Check(
        "turbo",
        "note",
        "Turbo is on, so the clock depends on heat and on how many CPUs work.",
        _INTEL_TURBO_REMEDY if intel else _BOOST_REMEDY,
    )


def check_clock(clock: Reading) -> Check:
    """Whether the clock can be recorded beside the results."""
    if clock.value is None:
        return Check("clock", "note", f"The CPU clock can't be recorded: {clock.reason}.")
    return Check(
        "clock", "good", f"The CPU clock can be recorded: {clock.value / 1e9:.2f} GHz now."
    )


def check_quota(machine: Machine, procfs: Path, sysfs: Path) -> Check:
    """Whether a cgroup limits the CPU time."""
    quota = cpu_quota(procfs, sysfs)
    usable = len(machine.affinity)
    if quota is None:
        return Check("CPU quota", "good", "No cgroup limits the CPU time.")
    if quota >= usable:
        return Check("CPU quota", "good", f"The cgroup's limit of {quota:g} CPUs is never reached.")
    return Check(
        "CPU quota",
        "problem",
        f"A cgroup allows the time of {quota:g} CPUs, but {usable} may be used: "
        "threads are stopped when it is spent.",
        f"Raise the limit (such as docker run --cpus {usable}), or ask for fewer threads.",
    )


def check_throttling(before: Activity, after: Activity, sysfs: Path) -> Check | None:
    """Whether heat or a weak power supply slows the processor; None where nothing counts it."""
    if before.throttled is None or after.throttled is None:
        return _check_pi_throttling(sysfs)
    if after.throttled > before.throttled:
        return Check("throttling", "problem", "Heat slows the processor right now.", _COOL_REMEDY)
    if after.throttled:
        return Check(
            "throttling",
            "note",
            "Heat has slowed the processor since the machine started.",
            _COOL_REMEDY,
        )
    return Check(
        "throttling", "good", "Heat has not slowed the processor since the machine started."
    )


def _check_pi_throttling(sysfs: Path) -> Check | None:
    text = read_text(sysfs / _PI_THROTTLED)
    if text is None:
        return None
    bits = int(text, 16)
    now = [name for bit, name in _PI_NOW.items() if bits >> bit & 1]
    past = [name for bit, name in _PI_NOW.items() if bits >> (bit + _PI_PAST_SHIFT) & 1]
    if now:
        return Check(
            "throttling", "problem", f"The firmware says now: {', '.join(now)}.", _COOL_REMEDY
        )
    if past:
        return Check(
            "throttling", "note", f"Since the start there was: {', '.join(past)}.", _COOL_REMEDY
        )
    return Check("throttling", "good", "The firmware has not slowed the processor since the start.")


def check_smt(sysfs: Path, machine: Machine) -> Check | None:
    """Whether two CPUs share a core; None where the kernel does not say."""
    if read_int(sysfs / "devices/system/cpu/smt/active") != 1:
        return None
    return Check(
        "SMT",
        "note",
        f"Two CPUs share each core, so more than {machine.physical_cpus} threads compete for it.",
        f"Ask for at most {machine.physical_cpus} threads, or sweep over the number of threads.",
    )
