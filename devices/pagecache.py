"""Takes a model out of the kernel's page cache, so that a load is really cold."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def evict(path: Path) -> str:
    """Drop the pages of a file, or of all files of a folder, and look whether they are gone.

    Returns:
        An empty text where no page is left in memory, else why the next load is not cold.
    """
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    for file in files:
        if refusal := _evict_file(file):
            return refusal
    return ""


def _evict_file(path: Path) -> str:
    if not hasattr(os, "posix_fadvise"):
        return "this system has no way to drop a file from memory"
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        return f"the file can't be opened: {error}"
    try:
        os.fdatasync(descriptor)  # only clean pages can be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        share = resident_share(descriptor)
    except OSError as error:
        return f"the file's pages can't be dropped: {error}"
    finally:
        os.close(descriptor)
    if share is None:
        return "this system does not tell whether a file is in memory"
    return "" if share == 0 else f"{share:.0%} of the file stayed in memory"


def resident_share(descriptor: int) -> float | None:
    """The share of a file's pages that are in memory, by mincore(2); None where unknown."""
    size = os.fstat(descriptor).st_size
    if not size:
        return 0.0
    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError, TypeError):
        return None
    pages = -(-size // mmap.PAGESIZE)
    present = (ctypes.c_ubyte * pages)()
    # A private writable mapping only because ctypes takes no address of a read-only one.
    with mmap.mmap(descriptor, size, flags=mmap.MAP_PRIVATE) as area:
        start = ctypes.c_char.from_buffer(area)
        failed = mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), present)
        del start  # the mapping can't be closed while it is referred to
    if failed:
        return None
    return sum(byte & 1 for byte in present) / pages
