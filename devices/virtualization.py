"""Whether this is a virtual machine or a container, and whose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edgebench.devices.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

# What hypervisors write into the firmware's tables, in lower case.
_FIRMWARE_NAMES = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("parallels", "Parallels"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("qemu", "QEMU"),
    ("bochs", "QEMU"),
    ("kvm", "KVM"),
    ("xen", "Xen"),
    ("virtual machine", "Hyper-V"),
    ("bhyve", "bhyve"),
    ("dummy-virt", "QEMU"),
)
# EC2's bare-metal machines carry Amazon's name too.
_BARE_METAL = re.compile(r"\.metal")
_CONTAINER_GROUPS = (
    ("kubepods", "Kubernetes"),
    ("docker", "Docker"),
    ("libpod", "Podman"),
    ("lxc", "LXC"),
)


def in_virtual_machine(procfs: Path, sysfs: Path) -> bool:
    """Whether a hypervisor runs below this kernel."""
    return _hypervisor(procfs, sysfs) is not None


def describe_virtualization(procfs: Path, sysfs: Path) -> str | None:
    """The hypervisor and the container around this process, such as ``KVM, Docker``; or None."""
    layers = [_hypervisor(procfs, sysfs), _container(procfs)]
    return ", ".join(layer for layer in layers if layer) or None


def _hypervisor(procfs: Path, sysfs: Path) -> str | None:
    flagged = _has_hypervisor_flag(procfs)
    named = _name_in_firmware(sysfs) or _name_in_clock_source(sysfs)
    if flagged:
        return named or "unknown hypervisor"
    if flagged is None:
        # Only x86 has the flag; elsewhere a hypervisor's name in the firmware is the sign.
        return named
    return None


def _has_hypervisor_flag(procfs: Path) -> bool | None:
    match = re.search(r"^flags\s*:(.*)$", read_text(procfs / "cpuinfo") or "", re.MULTILINE)
    return "hypervisor" in match[1].split() if match else None


def _name_in_firmware(sysfs: Path) -> str | None:
    fields = [
        read_text(sysfs / "hypervisor/type"),
        read_text(sysfs / "class/dmi/id/sys_vendor"),
        read_text(sysfs / "class/dmi/id/product_name"),
        read_text(sysfs / "firmware/devicetree/base/hypervisor/compatible"),
        read_text(sysfs / "firmware/devicetree/base/compatible"),
    ]
    text = " ".join(field for field in fields if field).lower()
    if _BARE_METAL.search(text):
        return None
    return next((name for sign, name in _FIRMWARE_NAMES if sign in text), None)


def _name_in_clock_source(sysfs: Path) -> str | None:
    # Small virtual machines have no firmware tables, but offer the hypervisor's clock.
    folder = sysfs / "devices/system/clocksource/clocksource0"
    sources = (read_text(folder / "available_clocksource") or "").split()
    names = {"kvm-clock": "KVM", "xen": "Xen", "hyperv_clocksource_tsc_page": "Hyper-V"}
    return next((names[source] for source in sources if source in names), None)


def _container(procfs: Path) -> str | None:
    root = procfs / "self/root"
    if (root / ".dockerenv").exists():
        return "Docker"
    if (root / "run/.containerenv").exists():
        return "Podman"
    groups = f"{read_text(procfs / '1/cgroup') or ''} {read_text(procfs / 'self/cgroup') or ''}"
    return next((name for sign, name in _CONTAINER_GROUPS if sign in groups), None)
