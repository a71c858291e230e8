"""What the kernel tells of a machine's hardware: kinds of cores, instruction sets, disk, limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.machine import online_cpus
from edgebench.devices.virtualization import in_virtual_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTION_SETS = (
    *("avx", "avx2", "fma", "f16c", "avx_vnni", "avx_vnni_int8"),
    *("avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme", "sme2"),
    *("rv64gcv", "zvfh"),
)
"""Those that matter to quantised models, as Linux names them in ``/proc/cpuinfo``."""

# Arm's numbers of parts (MIDR_EL1), as the cores' Technical Reference Manuals give them.
ARM_PARTS = {
    0xD03: "Cortex-A53", 0xD04: "Cortex-A35", 0xD05: "Cortex-A55", 0xD07: "Cortex-A57",
    0xD08: "Cortex-A72", 0xD09: "Cortex-A73", 0xD0A: "Cortex-A75", 0xD0B: "Cortex-A76",
    0xD0C: "Neoverse N1", 0xD0D: "Cortex-A77", 0xD40: "Neoverse V1", 0xD41: "Cortex-A78",
    0xD42: "Cortex-A78AE", 0xD44: "Cortex-X1", 0xD46: "Cortex-A510", 0xD47: "Cortex-A710",
    0xD48: "Cortex-X2", 0xD49: "Neoverse N2", 0xD4B: "Cortex-A78C", 0xD4D: "Cortex-A715",
    0xD4E: "Cortex-X3", 0xD4F: "Neoverse V2", 0xD80: "Cortex-A520", 0xD81: "Cortex-A720",
    0xD82: "Cortex-X4",
}  # fmt: skip
_ARM = 0x41

# SMBIOS 3.6, 7.4.1: types of an enclosure.
_LAPTOPS = frozenset({8, 9, 10, 14, 30, 31, 32})
_SERVERS = frozenset({17, 23, 28, 29})

Kind = Literal["phone", "board", "laptop", "desktop", "server", "vm"]


@dataclass(frozen=True, slots=True)
class CoreKind:
    """Cores that are alike.

    Attributes:
        name: such as ``Cortex-A76``; None where the kernel does not tell kinds apart.
        count: how many; CPUs that share a core count once.
        max_hz: the highest clock, or None without cpufreq.
    """

    name: str | None
    count: int
    max_hz: float | None


@dataclass(frozen=True, slots=True)
class PowerCaps:
    """The limits that the processors keep to, in watts, over all packages; None where unknown."""

    sustained_w: float | None
    peak_w: float | None


@dataclass(frozen=True, slots=True)
class Disk:
    """What a folder is stored on."""

    device: str
    kind: str


def kind_of_machine(procfs: Path, sysfs: Path, android: Path = Path("/system/build.prop")) -> Kind:
    """What sort of machine it is, by its firmware; a desktop where nothing says otherwise."""
    if in_virtual_machine(procfs, sysfs):
        return "vm"
    if android.exists():
        return "phone"
    chassis = read_int(sysfs / "class/dmi/id/chassis_type")
    if chassis in _SERVERS:
        return "server"
    if chassis in _LAPTOPS:
        return "laptop"
    if chassis is None and read_text(sysfs / "firmware/devicetree/base/model"):
        return "board"
    return "desktop"


def kinds_of_cores(procfs: Path, sysfs: Path) -> list[CoreKind]:
    """The cores by name and highest clock, the fastest first."""
    names = _names_of_cpus(procfs)
    groups: dict[tuple[str | None, float | None], set[object]] = {}
    for cpu in online_cpus(procfs, sysfs):
        folder = sysfs / f"devices/system/cpu/cpu{cpu}"
        khz = read_int(folder / "cpufreq/cpuinfo_max_freq")
        key = (names.get(cpu), khz * 1000.0 if khz else None)
        core = read_int(folder / "topology/core_id")
        package = read_int(folder / "topology/physical_package_id")
        groups.setdefault(key, set()).add(("cpu", cpu) if core is None else (package, core))
    found = [CoreKind(name, len(cores), hz) for (name, hz), cores in groups.items()]
    return sorted(found, key=lambda each: -(each.max_hz or 0))


def instruction_sets(procfs: Path) -> list[str]:
    """Those of `INSTRUCTION_SETS` that every CPU has; nothing where the kernel lists none."""
    text = read_text(procfs / "cpuinfo") or ""
    lists = re.findall(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    if not lists:
        return []
    common = set.intersection(*(set(each.split()) for each in lists))
    return [name for name in INSTRUCTION_SETS if name in common]


def power_caps(sysfs: Path) -> PowerCaps:
    """The limits in the kernel's powercap folder, which need no permission to read."""
    zones = [
        zone
        for zone in list_folder(sysfs / "class/powercap")
        if re.fullmatch(r"intel-rapl:\d+", zone.name)
        and (read_text(zone / "name") or "").startswith("package")
    ]
    return PowerCaps(_cap(zones, "long_term"), _cap(zones, "short_term"))


def disk_of(folder: Path, procfs: Path, sysfs: Path) -> Disk | None:
    """What `folder` is stored on; None where that is no disk that the kernel shows."""
    number = _device_number(folder, procfs)
    if number is None:
        return None
    try:
        block = (sysfs / "dev/block" / number).resolve(strict=True)
    except OSError:
        return None
    if not (block / "queue").is_dir():
        block = block.parent  # a partition is in its disk's folder
    return Disk(block.name, _kind_of_disk(block))


def nvidia_gpus(procfs: Path) -> list[str]:
    """The names of NVIDIA's GPUs, by their driver."""
    found = []
    for folder in list_folder(procfs / "driver/nvidia/gpus"):
        text = read_text(folder / "information") or ""
        if match := re.search(r"^Model:\s*(.+)$", text, re.MULTILINE):
            found.append(match[1].strip())
    return found


def _names_of_cpus(procfs: Path) -> dict[int, str]:
    """The name of each CPU's kind: by its part on Arm, else the model's name."""
    names = {}
    for entry in (read_text(procfs / "cpuinfo") or "").split("\n\n"):
        fields = dict(re.findall(r"^([^\t:]+?)\s*:[ \t]*(.*)$", entry, re.MULTILINE))
        if not fields.get("processor", "").isdecimal():
            continue
        name = " ".join(fields.get("model name", "").split())
        try:
            part = int(fields["CPU part"], 16)
            maker = int(fields["CPU implementer"], 16)
        except (KeyError, ValueError):
            pass
        else:
            unknown = f"implementer {maker:#x} part {part:#x}"
            name = ARM_PARTS.get(part, unknown) if maker == _ARM else unknown
        if name:
            names[int(fields["processor"])] = name
    return names


def _cap(zones: Sequence[Path], name: str) -> float | None:
    total = 0.0
    for zone in zones:
        for index in range(4):
            if read_text(zone / f"constraint_{index}_name") == name:
                microwatts = read_int(zone / f"constraint_{index}_power_limit_uw")
                if not microwatts or microwatts < 0:
                    return None
                total += microwatts / 1e6
                break
        else:
            return None
    return total or None


def _device_number(folder: Path, procfs: Path) -> str | None:
    """``major:minor`` of the file system that holds a folder; see proc_pid_mountinfo(5)."""
    best: tuple[int, str] | None = None
    resolved = folder.resolve()
    for line in (read_text(procfs / "self/mountinfo") or "").splitlines():
        fields = line.split()
        if len(fields) < 5:  # noqa: PLR2004 - the fifth is where it is mounted
            continue
        point = Path(re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        if resolved.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), fields[2])
    return best[1] if best else None


def _kind_of_disk(block: Path) -> str:
    name = block.name
    if name.startswith("nvme"):
        return "NVMe disk"
    if name.startswith("mmcblk"):
        card = read_text(block / "device/type")
        return {"SD": "SD card", "MMC": "eMMC"}.get(card or "", "SD card or eMMC")
    if name.startswith(("vd", "xvd")):
        return "virtual disk"
    if name.startswith(("loop", "ram", "zram", "dm-", "md")):
        return f"the kernel's {name}"
    rotates = read_int(block / "queue/rotational")
    return "hard disk" if rotates == 1 else "solid-state disk"
