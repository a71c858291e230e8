"""Small readers of the kernel's text files.

What can't be read is None: on these file systems a missing file means that the kernel, the CPU or
the permissions don't offer it, and the caller says which.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

READ_SIZE = 1 << 16


def read_text(path: Path) -> str | None:
    """The file's text without the white space around it, or None where it can't be read."""
    try:
        # Device-tree strings end with a NUL byte.
        return path.read_bytes().decode("utf-8", "replace").strip().rstrip("\0")
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The decimal number that the file holds, or None where it holds none."""
    text = read_text(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def read_open_file(descriptor: int) -> bytes:
    """All that an open file of procfs or sysfs says now, read again from its start."""
    data = os.pread(descriptor, READ_SIZE, 0)
    # A short read is not the end: the kernel hands out long files a buffer at a time.
    while part := os.pread(descriptor, READ_SIZE, len(data)):
        data += part
    return data


def list_folder(path: Path) -> list[Path]:
    """What is in the folder, in natural order (2 before 10), or nothing where it can't be read."""
    try:
        return sorted(path.iterdir(), key=lambda entry: natural_key(entry.name))
    except OSError:
        return []


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts ``cpu2`` before ``cpu10``."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    )


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The CPUs of a kernel list such as ``0-3,8``; what is not such a list is no CPU."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = re.fullmatch(r"\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*", part)
        if match:
            first = int(match[1])
            cpus.update(range(first, int(match[2] or first) + 1))
    return tuple(sorted(cpus))


def format_cpu_list(cpus: tuple[int, ...] | list[int]) -> str:
    """CPUs as the kernel writes them: ``0-3,8``."""
    parts: list[str] = []
    ordered = sorted(cpus)
    index = 0
    while index < len(ordered):
        last = index
        while last + 1 < len(ordered) and ordered[last + 1] == ordered[last] + 1:
            last += 1
        parts.append(str(ordered[index]) if last == index else f"{ordered[index]}-{ordered[last]}")
        index = last + 1
    return ",".join(parts)
