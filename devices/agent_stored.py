"""Models on a board: whether one is still what it was when it arrived.

A file that was whole once may be damaged since: something wrote into it, a disk was full, the power
went. Hashing all of it before each run would take minutes on a board's card. So its size and the
time of its last change are noted beside it when its hash was right, and it is hashed anew only
where they are others. What a card loses without a write is not noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHUNK_BYTES = 1 << 20


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """Of all bytes so far."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of a model: its path in the model, its size, its SHA-256 in hexadecimal."""

    path: str
    bytes: int
    sha256: str


def is_whole(place: Path, files: list[Wanted], told: Callable[[], object]) -> bool:
    """Whether a model is there with all its files, as they are wanted.

    Args:
        place: its folder.
        files: what is to be in it.
        told: called again and again while files are hashed.
    """
    try:
        if any((place / each.path).stat().st_size != each.bytes for each in files):
            return False
        if _noted(place) == _seen(place, files):
            return True
        whole = all(is_right(place, each, told) for each in files)
    except OSError:
        return False
    if whole:
        note(place, files)
    return whole


def is_right(place: Path, file: Wanted, told: Callable[[], object]) -> bool:
    """Whether a file has the hash that is wanted."""
    try:
        return hashed(place / file.path, told).hexdigest() == file.sha256
    except OSError:
        return False


def hashed(path: Path, told: Callable[[], object]) -> Digest:
    """The SHA-256 of what is in a file.

    Raises:
        OSError: it can't be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            told()
    return digest


def note(place: Path, files: list[Wanted]) -> None:
    """Note what files look like whose hashes were right; where that can't be written, nothing."""
    path = _note(place)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(_seen(place, files)), encoding="utf-8")
        part.replace(path)


def _note(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _noted(place: Path) -> object:
    try:
        return json.loads(_note(place).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _seen(place: Path, files: list[Wanted]) -> dict[str, list[object]]:
    """By path: size, the time of the last change in nanoseconds, and the hash that is wanted."""
    found: dict[str, list[object]] = {}
    for each in files:
        status = (place / each.path).stat()
        found[each.path] = [status.st_size, status.st_mtime_ns, each.sha256]
    return found
