"""Which machine this is: what a result needs to say about where it was measured."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.devices.files import list_folder, parse_cpu_list, read_int, read_text
from edgebench.devices.virtualization import describe_virtualization

if TYPE_CHECKING:
    from collections.abc import Sequence

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, as seen by this process.

    Attributes:
        fingerprint: the same for two runs on one machine set up in the same way.
        cpu_model: the processor's name, or the board's where the processor has none.
        cpu_microarchitecture: such as ``zen4``, as archspec names it.
        logical_cpus: CPUs that are online.
        physical_cpus: cores, where the kernel tells them from CPUs.
        affinity: the CPUs that this process may use.
        memory_bytes: all memory that the kernel manages.
        kernel: its release.
        system: the operating system.
        architecture: such as ``x86_64`` or ``aarch64``.
        python: the harness's own.
        governor: cpufreq's; several joined where the CPUs differ; None without cpufreq.
        turbo: whether clocks above the nominal one are allowed, where the kernel says.
        virtualization: hypervisor and container, or None.
        boot_id: changes with each start of the machine.
        load_average: over 1, 5 and 15 minutes.
    """

    fingerprint: str
    cpu_model: str
    cpu_microarchitecture: str | None
    logical_cpus: int
    physical_cpus: int | None
    affinity: tuple[int, ...]
    memory_bytes: int
    kernel: str
    system: str
    architecture: str
    python: str
    governor: str | None
    turbo: bool | None
    virtualization: str | None
    boot_id: str | None
    load_average: tuple[float, ...]


def describe_machine(procfs: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> Machine:
    """Describe the machine; where there is no procfs, by psutil and the `platform` module."""
    cpu_model = _cpu_model(procfs, sysfs)
    online = online_cpus(procfs, sysfs)
    affinity = allowed_cpus(procfs) or online
    physical = _physical_cpus(sysfs, online)
    memory_bytes = _memory_bytes(procfs)
    kernel = read_text(procfs / "sys/kernel/osrelease") or platform.release()
    architecture = platform.machine()
    governor = read_governor(sysfs, affinity)
    virtualization = describe_virtualization(procfs, sysfs)
    return Machine(
        fingerprint=_fingerprint(
            cpu_model,
            len(online),
            physical,
            affinity,
            round(memory_bytes / GIB),
            kernel,
            architecture,
            governor,
            virtualization,
        ),
        cpu_model=cpu_model,
        cpu_microarchitecture=_microarchitecture(procfs),
        logical_cpus=len(online),
        physical_cpus=physical,
        affinity=affinity,
        memory_bytes=memory_bytes,
        kernel=kernel,
        system=_system(),
        architecture=architecture,
        python=platform.python_version(),
        governor=governor,
        turbo=read_turbo(sysfs),
        virtualization=virtualization,
        boot_id=read_text(procfs / "sys/kernel/random/boot_id"),
        load_average=read_load_average(procfs),
    )


def online_cpus(procfs: Path, sysfs: Path) -> tuple[int, ...]:
    """The CPUs that run."""
    listed = parse_cpu_list(read_text(sysfs / "devices/system/cpu/online") or "")
    if listed:
        return listed
    processors = re.findall(
        r"^processor\s*:\s*(\d+)", read_text(procfs / "cpuinfo") or "", re.MULTILINE
    )
    return tuple(int(number) for number in processors) or tuple(range(os.cpu_count() or 1))


def allowed_cpus(procfs: Path) -> tuple[int, ...]:
    """The CPUs that this process may use, or none where the kernel does not say."""
    status = read_text(procfs / "self/status") or ""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return parse_cpu_list(match[1]) if match else ()


def read_governor(sysfs: Path, cpus: Sequence[int]) -> str | None:
    """The governor of these CPUs; several are joined, and None means that there is none."""
    found = {
        governor
        for cpu in cpus
        if (governor := read_text(sysfs / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
    }
    return ", ".join(sorted(found)) or None


def read_turbo(sysfs: Path) -> bool | None:
    """Whether clocks above the nominal one are allowed, or None where the kernel does not say."""
    folder = sysfs / "devices/system/cpu"
    disabled = read_int(folder / "intel_pstate/no_turbo")
    if disabled is not None:
        return disabled == 0
    boost = read_int(folder / "cpufreq/boost")
    return None if boost is None else boost == 1


def read_load_average(procfs: Path) -> tuple[float, ...]:
    """The load over 1, 5 and 15 minutes, or nothing where there is none."""
    text = read_text(procfs / "loadavg")
    if text is not None:
        return tuple(float(part) for part in text.split()[:3])
    try:
        return os.getloadavg()
    except (OSError, AttributeError):  # Windows has none
        return ()


def read_meminfo(procfs: Path) -> dict[str, int]:
    """``/proc/meminfo`` in bytes, by name."""
    return {
        name: int(kib) * 1024
        for name, kib in re.findall(
            r"^(\w+):\s+(\d+) kB$", read_text(procfs / "meminfo") or "", re.MULTILINE
        )
    }


def _memory_bytes(procfs: Path) -> int:
    total = read_meminfo(procfs).get("MemTotal")
    if total is not None:
        return total
    import psutil  # noqa: PLC0415 - Linux needs none

    return psutil.virtual_memory().total


def _cpu_model(procfs: Path, sysfs: Path) -> str:
    text = read_text(procfs / "cpuinfo") or ""
    for name in ("model name", "Model", "cpu model", "Hardware"):
        match = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
        if match:
            return " ".join(match[1].split())
    board = read_text(sysfs / "firmware/devicetree/base/model")
    if board:
        return board
    part = re.search(r"^CPU part\s*:\s*(\S+)", text, re.MULTILINE)
    implementer = re.search(r"^CPU implementer\s*:\s*(\S+)", text, re.MULTILINE)
    if part and implementer:
        return f"ARM implementer {implementer[1]} part {part[1]}"
    return platform.processor() or platform.machine() or "unknown"


def _microarchitecture(procfs: Path) -> str | None:
    if procfs != Path("/proc"):
        return None  # archspec looks at this machine only
    try:
        import archspec.cpu  # noqa: PLC0415 - reads a large table, and boards have none
    except ImportError:
        return None
    return str(archspec.cpu.host().name)


def _physical_cpus(sysfs: Path, online: Sequence[int]) -> int | None:
    cores: set[tuple[int | None, int | None]] = set()
    for cpu in online:
        topology = sysfs / f"devices/system/cpu/cpu{cpu}/topology"
        core = read_int(topology / "core_id")
        if core is not None:
            cores.add((read_int(topology / "physical_package_id"), core))
    return len(cores) or None


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


def _fingerprint(*facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def cpu_folders(sysfs: Path) -> list[Path]:
    """The folders of all CPUs, ``cpu0`` and so on."""
    return [
        folder
        for folder in list_folder(sysfs / "devices/system/cpu")
        if re.fullmatch(r"cpu\d+", folder.name)
    ]
