"""Receives a model from the host: into a folder named by its hash, and on from where it broke off.

What arrives is kept in a folder beside the final one. It gets its name when every file in it has
the hash that was told, so that a model is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import select
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.devices.agent_lines import Output

CHUNK_BYTES = 1 << 20
FLUSH_BYTES = 64 << 20
"""How much the kernel may hold back, so that a slow card does not stop everything at the end."""

SPARE_BYTES = 64 << 20
"""What is left free on the board: a full disk is nobody's friend."""

TELL_EVERY_S = 2.0
NAME = re.compile(r"[^/\0]+")

Kind = Literal["space", "folder", "busy", "damaged", "link"]


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """Of all bytes so far."""


class ProblemError(Exception):
    """Why the model can't be taken.

    Args:
        message: what to add to what the host says of this kind.
        kind: what it is.
        facts: numbers of the message that the host writes.
    """

    def __init__(self, message: str = "", *, kind: Kind, **facts: int) -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.message = message
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of a model: its path in the model, its size, its SHA-256 in hexadecimal."""

    path: str
    bytes: int
    sha256: str


def receive(requests: int, output: Output, silence_s: float, folder: str) -> None:
    """Take one model, as a line of JSON says, then its bytes; the answers are lines as well.

    Args:
        requests: the descriptor of what the host says.
        output: where the answers go.
        silence_s: for how long the host may send nothing.
        folder: where models are kept.
    """
    said = _Input(requests, silence_s)
    try:
        _receive(said, output, Path(os.path.expanduser(folder)))  # noqa: PTH111
    except ProblemError as problem:
        facts = {"kind": problem.kind, "message": problem.message, **problem.facts}
        _tell(output, "model.problem", facts)
    except OSError as error:
        kind = "space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "folder"
        message = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        _tell(output, "model.problem", {"kind": kind, "message": message})


def _receive(said: _Input, output: Output, folder: Path) -> None:
    asked = json.loads(said.line())
    sha256, name = str(asked["sha256"]), str(asked["name"])
    files = [Wanted(**each) for each in asked["files"]]
    for part in [sha256, name, *(part for each in files for part in each.path.split("/"))]:
        if not NAME.fullmatch(part) or part in {".", ".."}:
            msg = f"{part!r} is no name of a file"
            raise ProblemError(msg, kind="folder")
    place = folder / sha256
    if _is_there(place, files):
        _tell(output, "model.there", {"path": str(place / name)})
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{sha256}.lock"):
        if _is_there(place, files):  # another run was faster
            _tell(output, "model.there", {"path": str(place / name)})
            return
        arriving = folder / f"{sha256}.part"
        offsets = [_offset(arriving / each.path, each.bytes) for each in files]
        missing = sum(each.bytes for each in files) - sum(offsets)
        free = shutil.disk_usage(folder).free
        if missing + SPARE_BYTES > free:
            raise ProblemError(kind="space", needed=missing, free=free)
        hashes = [
            _hash(arriving / each.path, offset, output)
            for each, offset in zip(files, offsets, strict=True)
        ]
        _tell(output, "model.send", {"offsets": offsets})
        for each, offset, digest in zip(files, offsets, hashes, strict=True):
            _take_file(said, arriving / each.path, each, offset, digest)
        if place.exists():  # not whole: see above
            shutil.rmtree(place)
        arriving.rename(place)
    _tell(output, "model.there", {"path": str(place / name)})


def _is_there(place: Path, files: list[Wanted]) -> bool:
    """Whether it arrived before; what is in the folder had its hash then."""
    try:
        return all((place / each.path).stat().st_size == each.bytes for each in files)
    except OSError:
        return False


def _offset(path: Path, size: int) -> int:
    """How much of a file is there; one that is too long is of something else."""
    try:
        there = path.stat().st_size
    except OSError:
        return 0
    if there <= size:
        return there
    path.unlink()
    return 0


def _hash(path: Path, length: int, output: Output) -> Digest:
    """The hash of what arrived before, telling the host that this takes its time."""
    digest = hashlib.sha256()
    if not length:
        return digest
    told = time.monotonic()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            if time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                _tell(output, "model.checking", {"done": file.tell()})
    return digest


def _take_file(said: _Input, path: Path, wanted: Wanted, offset: int, digest: Digest) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        left, unflushed = wanted.bytes - offset, 0
        while left:
            data = said.some(min(left, CHUNK_BYTES))
            file.write(data)
            digest.update(data)
            left -= len(data)
            unflushed += len(data)
            if unflushed >= FLUSH_BYTES:
                _to_disk(file.flush, file.fileno())
                unflushed = 0
        _to_disk(file.flush, file.fileno())
    if digest.hexdigest() != wanted.sha256:
        path.unlink()  # the next try sends it anew
        raise ProblemError(wanted.path, kind="damaged")


def _to_disk(flush: Callable[[], None], descriptor: int) -> None:
    flush()
    os.fsync(descriptor)


class _Input:
    """What the host says: a line, then bytes."""

    def __init__(self, descriptor: int, silence_s: float) -> None:
        self._descriptor = descriptor
        self._silence_s = silence_s
        self._held = b""

    def line(self) -> bytes:
        """The next line."""
        while b"\n" not in self._held:
            self._held += self._read()
        line, _, self._held = self._held.partition(b"\n")
        return line

    def some(self, most: int) -> bytes:
        """At least one byte, and `most` at most."""
        data = self._held or self._read()
        self._held = data[most:]
        return data[:most]

    def _read(self) -> bytes:
        if select.select([self._descriptor], [], [], self._silence_s)[0]:
            data = os.read(self._descriptor, CHUNK_BYTES)
            if data:
                return data
        raise ProblemError(kind="link")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that is given back however this process ends.

    Raises:
        ProblemError: somebody else is copying the same.
    """
    import fcntl  # noqa: PLC0415 - not on every system that this module is imported on

    while True:
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ProblemError(kind="busy") from None
            if not _is_at(path, file.fileno()):
                continue  # its owner removed it between the two: lock the new one
            try:
                yield
            finally:
                path.unlink(missing_ok=True)  # while it is held: nobody else's is removed
            return


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one at this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _tell(output: Output, method: str, facts: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host is gone, and what arrived is kept
        output.say({"method": method, "params": facts})
