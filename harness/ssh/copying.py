"""Copies a model to a board: once, by the hash of its content, and on from where it broke off."""

from __future__ import annotations

import json
import os
import selectors
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import BoardLinkError, BoardUnfitError, RunnerProtocolError
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.connection import AgentSession
from edgebench.harness.ssh.diagnosis import naming
from edgebench.harness.ssh.words import one_line
from edgebench.harness.store.folders import own_files
from edgebench.harness.store.hashing import sha256_file
from edgebench.harness.store.space import human_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.errors import RunnerError
    from edgebench.harness.ssh.command import Remote
    from edgebench.harness.ssh.contact import Contact
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.store import StoredFile

CHUNK_BYTES = 1 << 18
STALL_S = 90.0
"""A slow card may take this long for what the kernel held back."""

FRUITLESS = 2
"""A copy that breaks off is tried again as long as more arrives; not after so many in a row that
brought nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a model: where it is here, and what it is called in the model."""

    file: Path
    path: str
    bytes: int
    sha256: str


class Copying(AgentSession):
    """One connection that takes a model to a board.

    Args:
        remote: the board.
        contact: what is known of its connections.
        log: the file that takes what the board's side prints.
    """

    def __init__(self, remote: Remote, contact: Contact, log: Path) -> None:
        agent = ("receive", str(STALL_S), f"{remote.folder}/models")
        super().__init__(remote, contact, log, agent)
        self._silence_s = STALL_S
        self.found_bytes = 0

    def copy(
        self, model: StoredFile, parts: list[Part], tell: Progress, *, again: bool = False
    ) -> str:
        """Bring it there; its path there. What was there is in `found_bytes` then.

        Args:
            model: what it is.
            parts: its files.
            tell: told of how much is there.
            again: a copy of ours broke off, which the board may not have noticed yet.

        Raises:
            BoardLinkError: the link broke; what arrived is kept, and the next copy goes on.
            BoardUnfitError: the board has no space for it, or can't write it.
        """
        files = [{"path": each.path, "bytes": each.bytes, "sha256": each.sha256} for each in parts]
        # As long as the board takes to notice that nobody sends any more, and to write what it has.
        patience_s = 2 * STALL_S if again else 0.0
        asked = {
            "sha256": model.sha256, "name": model.name, "files": files, "patience_s": patience_s,
        }  # fmt: skip
        self._send(json.dumps(asked).encode() + b"\n", "copying")
        method, facts = self._next()
        if method == "model.send":
            offsets = parsed.offsets(facts, [each.bytes for each in parts])
            self.found_bytes = sum(offsets)
            what = f"copying {model.name} to {self._remote.address}"
            if parsed.damaged(facts):
                what += ", where it was damaged"
            self._send_parts(what, model, parts, offsets, tell)
            method, facts = self._next()
        if method != "model.there":
            said = one_line(method) or "nothing that was asked"
            msg = f"{self._remote.address} answered {said} to a copy"
            raise RunnerProtocolError(msg)
        return parsed.model_path(facts)

    def _ping(self, done: object) -> None:
        """Nothing: what is sent is the model, and a line in it would be a part of it."""

    def _next(self) -> tuple[str, Mapping[str, object]]:
        """What the board says next, but that it is busy checking."""
        while True:
            body = self._receive(time.monotonic() + STALL_S, "copying", STALL_S)
            method, facts = parsed.message(body)
            if method == "model.problem":
                raise self._problem(parsed.copy_problem(facts))
            if method != "model.checking":
                return method, facts

    def _send_parts(
        self,
        what: str,
        model: StoredFile,
        parts: list[Part],
        offsets: Sequence[int],
        tell: Progress,
    ) -> None:
        done = sum(offsets)
        tell(what, done, model.bytes)
        for part, offset in zip(parts, offsets, strict=True):
            with part.file.open("rb") as file:
                file.seek(offset)
                left = part.bytes - offset
                while left and (chunk := file.read(min(CHUNK_BYTES, left))):
                    self._send_some(chunk)
                    left -= len(chunk)
                    done += len(chunk)
                    tell(what, done, model.bytes)
            if left:
                msg = f"{part.file} became shorter while it was copied"
                raise BoardUnfitError(msg, remedy="Run it again.")

    def _send_some(self, data: bytes) -> None:
        """Write to the link, which may stall, and break.

        Raises:
            BoardError: it did; or what the board says instead of taking more.
        """
        descriptor = self._pipe_in().fileno()
        os.set_blocking(descriptor, False)
        view = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_WRITE)
            while view:
                if not selector.select(STALL_S):
                    self._kill()
                    msg = f"{self._remote.address} took nothing for {STALL_S:g} s"
                    raise BoardLinkError(msg)
                try:
                    view = view[os.write(descriptor, view) :]
                except BlockingIOError:
                    continue
                except OSError:
                    # Mostly raises: the board's own reason, or that the link broke.
                    said = one_line(self._next()[0]) or "nothing that was asked"
                    msg = f"{self._remote.address} answered {said} in the middle of a copy"
                    raise RunnerProtocolError(msg) from None

    def _problem(self, problem: parsed.CopyProblem) -> RunnerError:
        kind, said = problem.kind, one_line(problem.message)
        address, folder = self._remote.address, f"{self._remote.folder}/models"
        if kind == "space":
            if problem.needed is not None and problem.free is not None:
                needed, free = human_bytes(problem.needed), human_bytes(problem.free)
                said = f"it needs {needed}, and {free} are free"
            return BoardUnfitError(
                f"no space on {address} for the model: {said}",
                remedy=f"Free some there: models are in {folder}. Or name a folder on a larger "
                "disk as device.folder.",
            )
        if kind == "busy":
            return BoardUnfitError(
                f"another run is copying this model to {address}", remedy="Wait for it."
            )
        if kind == "damaged":
            return BoardLinkError(
                f"{said} was damaged on its way to {address}, and removed there",
                remedy="Run it again; if it happens again, the board's disk may be failing.",
            )
        if kind == "link":
            return BoardLinkError(f"{address} heard nothing for {STALL_S:g} s while copying")
        return BoardUnfitError(
            f"the model can't be written to {folder} on {address}: {said}",
            remedy="Name another folder as device.folder.",
        )


def copy_model(
    remote: Remote,
    contact: Contact,
    log: Path,
    model: StoredFile,
    parts: list[Part],
    tell: Progress,
) -> str:
    """Bring a model to a board, and go on where the link broke; its path there.

    Raises:
        BoardLinkError: the board stays away, or the link breaks before anything more arrives.
        BoardError: it can't be copied.
    """
    most, fruitless, again = 0, 0, False
    while True:
        copying = Copying(remote, contact, log)
        try:
            with naming(remote), copying:
                return copying.copy(model, parts, tell, again=again)
        except BoardLinkError:
            fruitless = 0 if copying.found_bytes > most else fruitless + 1
            if fruitless == FRUITLESS:
                raise
            most, again = max(most, copying.found_bytes), True


def parts_of(model: StoredFile, tell: Progress) -> list[Part]:
    """The files of a model, with the hashes that the board will compare.

    Raises:
        ModelError: its folder can't be read.
    """
    if not model.path.is_dir():
        return [Part(model.path, model.name, model.bytes, model.sha256)]
    parts = []
    for name in own_files(model.path):
        file = model.path / name
        sha256 = sha256_file(file, f"hashing {model.name}/{name}", tell)
        parts.append(Part(file, f"{model.name}/{name}", file.stat().st_size, sha256))
    return parts
