"""Receives a model from the host: into a folder named by its hash, and on from where it broke off.

What arrives is kept in a folder beside the final one. It gets its name when every file in it has
the hash that was told, so that a model is there whole or not at all. What it looked like then is
noted beside it (`agent_stored`).
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgebench.devices import agent_stored as stored
from edgebench.devices.agent_stored import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.devices.agent_lines import Output
    from edgebench.devices.agent_stored import Digest

CHUNK_BYTES = 1 << 20
FLUSH_BYTES = 64 << 20
"""How much the kernel may hold back, so that a slow card does not stop everything at the end."""

SPARE_BYTES = 64 << 20
"""What is left free on the board: a full disk is nobody's friend."""

TELL_EVERY_S = 2.0
LOOK_EVERY_S = 0.5
PART, LOCK = ".part", ".lock"
OLD_S = 30 * 24 * 60 * 60
NAME = re.compile(r"[^/\0]+")

Kind = Literal["space", "folder", "busy", "damaged", "link"]


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
    told = _Told(output)
    if stored.is_whole(place, files, told):
        _tell(output, "model.there", {"path": str(place / name)})
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / f"{sha256}{LOCK}"
    with _locked(lock, float(asked["patience_s"]), told):
        if stored.is_whole(place, files, told):  # another run was faster
            _tell(output, "model.there", {"path": str(place / name)})
            return
        _remove_old(folder, lock.stat().st_mtime)
        arriving = folder / f"{sha256}{PART}"
        damaged = place.exists()
        if damaged:  # not whole: see above
            _take_back(place, arriving, files, told)
        offsets = [_offset(arriving / each.path, each.bytes) for each in files]
        missing = sum(each.bytes for each in files) - sum(offsets)
        free = shutil.disk_usage(folder).free
        if missing + SPARE_BYTES > free:
            raise ProblemError(kind="space", needed=missing, free=free)
        hashes = [
            stored.hashed(arriving / each.path, told) if offset else hashlib.sha256()
            for each, offset in zip(files, offsets, strict=True)
        ]
        _tell(output, "model.send", {"offsets": offsets, "damaged": damaged})
        for each, offset, digest in zip(files, offsets, hashes, strict=True):
            _take_file(said, arriving / each.path, each, offset, digest)
        arriving.rename(place)
        stored.note(place, files)
    _tell(output, "model.there", {"path": str(place / name)})


def _take_back(place: Path, arriving: Path, files: list[Wanted], told: _Told) -> None:
    """Make of a model that was damaged one that is arriving; of which what is right is kept."""
    if arriving.exists():
        shutil.rmtree(arriving)
    place.rename(arriving)
    for each in files:
        if not stored.is_right(arriving, each, told):
            (arriving / each.path).unlink(missing_ok=True)


def _remove_old(folder: Path, now: float) -> None:
    """Remove what began to arrive, and to which nothing was added for long.

    Args:
        folder: of all models.
        now: when a file in it was written just now.
    """
    for part in folder.glob(f"*{PART}"):
        lock = part.with_name(part.name.removesuffix(PART) + LOCK)
        with contextlib.suppress(OSError, ProblemError):
            times = [each.lstat().st_mtime for each in (part, *part.rglob("*"))]
            if now - max(times) > OLD_S:
                with _locked(lock, 0.0):
                    shutil.rmtree(part)


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


class _Told:
    """Tells the host from time to time that something takes its time."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last > TELL_EVERY_S:
            self._last = time.monotonic()
            _tell(self._output, "model.checking", {})


@contextlib.contextmanager
def _locked(
    path: Path, patience_s: float, told: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Hold a lock that is given back however this process ends.

    Args:
        path: its file.
        patience_s: how long to wait for who holds it.
        told: called while it is waited for.

    Raises:
        ProblemError: somebody else is copying the same.
    """
    import fcntl  # noqa: PLC0415 - not on every system that this module is imported on

    end = time.monotonic() + patience_s
    while True:
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise ProblemError(kind="busy") from None
                time.sleep(LOOK_EVERY_S)
                told()
                continue
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
