"""A profile of this machine, as far as the machine tells."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.devices import hardware
from edgebench.devices.machine import describe_machine
from edgebench.harness.device_profiles.figures import (
    Bits,
    BytesPerSecond,
    Fact,
    Hertz,
    MemoryBandwidth,
    Names,
    OpsPerCycle,
    OpsPerSecond,
    Ram,
    Watts,
)
from edgebench.harness.device_profiles.files import builtin_profiles
from edgebench.harness.device_profiles.model import (
    Accelerator,
    Cores,
    DeviceProfile,
    Memory,
    PowerLimits,
    Storage,
)

if TYPE_CHECKING:
    from edgebench.devices.machine import Machine
    from edgebench.harness.results.device import BandwidthRecord

MEASURE_BANDWIDTH = "not measured yet: run edgebench probe bandwidth, then probe again"
_LONGEST_NAME = 80
_LONGEST_LABEL = 200


def probe_profile(
    bandwidth: BandwidthRecord | None = None,
    *,
    key: str | None = None,
    folder: Path = Path.home(),  # noqa: B008 - the same for the whole process
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
) -> DeviceProfile:
    """Fill a profile from the machine itself; what it does not tell is null with the reason.

    Args:
        bandwidth: the memory bandwidth that was measured here, if it was.
        key: its key; made of the processor's name where it is not given.
        folder: where models are stored.
        procfs: where procfs is mounted.
        sysfs: where sysfs is mounted.
    """
    machine = describe_machine(procfs, sysfs)
    name = _label(machine.cpu_model)
    sets = hardware.instruction_sets(procfs)
    return DeviceProfile(
        schema_version=1,
        key=key or _slug(name),
        name=name,
        kind=hardware.kind_of_machine(procfs, sysfs),
        soc=Fact(value=name, basis="measured", source="The kernel: /proc/cpuinfo or device tree"),
        cores=_cores(name, procfs, sysfs),
        instruction_sets=(
            Names(value=sets, basis="measured", source="/proc/cpuinfo, what all CPUs have")
            if sets
            else Names(reason="the kernel lists none in /proc/cpuinfo")
        ),
        ram_bytes=_ram(machine),
        memory=_memory(bandwidth),
        power=_power(sysfs),
        storage=_storage(folder, procfs, sysfs),
        accelerators=[_gpu(each) for each in hardware.nvidia_gpus(procfs)],
    )


def _cores(name: str, procfs: Path, sysfs: Path) -> tuple[Cores, ...]:
    unknown = OpsPerCycle(reason="the kernel does not tell what a core computes in a cycle")
    return tuple(
        Cores(
            name=_label(each.name or name),
            count=each.count,
            source="The kernel: online CPUs in sysfs, those of one core counted once",
            max_hz=(
                Hertz(value=each.max_hz, basis="measured", source="sysfs, cpuinfo_max_freq")
                if each.max_hz
                else Hertz(reason="sysfs has no cpufreq here")
            ),
            fp32_flop_per_cycle=unknown,
            int8_op_per_cycle=unknown,
        )
        for each in hardware.kinds_of_cores(procfs, sysfs)
    )


def _ram(machine: Machine) -> Ram:
    source = "The kernel's MemTotal: what it manages, so a little less than what is built in"
    return Ram(value=float(machine.memory_bytes), basis="measured", source=source)


def _memory(bandwidth: BandwidthRecord | None) -> Memory:
    modules = "the kernel tells it to root only, by dmidecode, or not at all"
    figure = MemoryBandwidth(reason=MEASURE_BANDWIDTH)
    if bandwidth is not None:
        source = (
            f"Measured by edgebench on {bandwidth.measured_at[:10]}: {bandwidth.threads} threads, "
            f"read by {bandwidth.reader}, the fastest of {len(bandwidth.samples)} repetitions, of "
            f"which the median is {bandwidth.bytes_per_s / 1e9:.1f} GB/s; not a peak on paper"
        )
        fastest = max(bandwidth.samples)
        figure = MemoryBandwidth(value=fastest, basis="measured", source=source)
    return Memory(
        kind=Fact(reason=modules),
        width_bits=Bits(reason=modules),
        bandwidth_bytes_per_s=figure,
    )


def _power(sysfs: Path) -> PowerLimits:
    caps = hardware.power_caps(sysfs)
    none = "sysfs has no powercap limit of this processor"
    sustained = _watts(caps.sustained_w, "long_term", none)
    if (caps.sustained_w or 0.0) > (caps.peak_w or math.inf):
        # As it is where nothing is to be limited: what holds for long is not known then.
        sustained = Watts(
            reason=f"the limit long_term is set to {caps.sustained_w:g} W, which is above the "
            f"limit short_term of {caps.peak_w:g} W"
        )
    return PowerLimits(
        peak_w=_watts(caps.peak_w, "short_term", none),
        sustained_w=sustained,
        tdp_w=Watts(reason="the kernel does not tell it; the maker's product page does"),
    )


def _watts(value: float | None, constraint: str, none: str) -> Watts:
    if value is None:
        return Watts(reason=none)
    source = f"sysfs powercap, the limit {constraint} of all packages, as set on this machine"
    return Watts(value=value, basis="measured", source=source)


def _storage(folder: Path, procfs: Path, sysfs: Path) -> Storage:
    disk = hardware.disk_of(folder, procfs, sysfs)
    return Storage(
        kind=(
            Fact(value=disk.kind, basis="measured", source=f"sysfs, the block device {disk.device}")
            if disk
            else Fact(reason="models are stored on a file system without a disk that sysfs shows")
        ),
        read_bytes_per_s=BytesPerSecond(reason="not measured"),
    )


def _gpu(name: str) -> Accelerator:
    unknown = OpsPerSecond(reason="the driver does not tell it")
    source = "NVIDIA's driver, /proc/driver/nvidia"
    return Accelerator(
        kind="gpu",
        name=Fact(value=_label(name), basis="measured", source=source),
        fp32_flops=unknown,
        int8_ops=unknown,
    )


def _slug(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)", "", name.lower())).strip("-")
    key = slug[:_LONGEST_NAME].rstrip("-") or "this-machine"
    return f"my-{key}" if key in builtin_profiles() else key


def _label(text: str) -> str:
    """What a machine says of itself, as one line."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line[:_LONGEST_LABEL].rstrip() or "unknown"
