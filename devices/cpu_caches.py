"""The size of the caches in front of the memory, as Linux tells it in sysfs."""

from __future__ import annotations

import re
from pathlib import Path

from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.machine import allowed_cpus, cpu_folders

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_bytes(sysfs: Path = Path("/sys"), procfs: Path = Path("/proc")) -> int | None:
    """The last-level caches of the CPUs that this process may use, together, in bytes.

    A virtual machine names its host's whole cache, of which it shares. A cache in front of the
    memory that belongs to no CPU, as phones have, is not told at all.

    Returns:
        None where nothing is told.
    """
    allowed = set(allowed_cpus(procfs))
    found: dict[tuple[int, str], int] = {}
    for folder in cpu_folders(sysfs):
        if allowed and int(folder.name.removeprefix("cpu")) not in allowed:
            continue
        for cache in list_folder(folder / "cache"):
            level = read_int(cache / "level")
            size = _size(read_text(cache / "size") or "")
            kind = read_text(cache / "type")
            if level is not None and size and kind != "Instruction":
                # CPUs that share one name the same CPUs there; without that, each has its own.
                shared = read_text(cache / "shared_cpu_list") or folder.name
                found[level, shared] = size
    last = max((level for level, _shared in found), default=None)
    return sum(size for (level, _shared), size in found.items() if level == last) or None


def _size(text: str) -> int | None:
    """``2048K`` in bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * UNITS.get(match[2], 1) if match else None
