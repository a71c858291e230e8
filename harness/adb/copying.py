"""Files on the device: each is copied once, and told by the hash of its content."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.adb.phone import free_bytes
from edgebench.harness.errors import BoardError, BoardLinkError, BoardUnfitError
from edgebench.harness.store.space import human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.adb.client import Adb
    from edgebench.harness.ssh.copying import Part
    from edgebench.harness.store.progress import Progress

SPARE_BYTES: Final = 64 << 20
"""What is to be left on the device."""
SLOWEST_BYTES_S: Final = 1e6
"""Of a cable; what takes longer than at this rate does not move at all."""
LEAST_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies files to one device.

    Attributes:
        folder: below which they are kept there.
    """

    adb: Adb
    folder: str

    def place(self, below: str, parts: Sequence[Part], tell: Progress, *, mode: str) -> str:
        """Make sure that files are there, and can be read.

        Args:
            below: the folder below `folder` that they go to, named after what is in them.
            parts: the files.
            tell: told of what is copied.
            mode: their permissions, such as ``755``.

        Returns:
            The folder there.

        Raises:
            BoardError: there is no space, they can't be written, or the link broke.
        """
        target = PurePosixPath(self.folder) / below
        missing = self._missing(target, parts, tell)
        if missing:
            self._make_folders(target, parts)
            self._check_space(target, sum(part.bytes for part in missing))
        for part in missing:
            self._copy(part, target / part.path, tell, mode)
        return str(target)

    def _missing(self, target: PurePosixPath, parts: Sequence[Part], tell: Progress) -> list[Part]:
        """Those that are not there, or that are damaged."""
        total = sum(part.bytes for part in parts)
        tell("looking for the files on the device", 0, total)
        return [part for part in parts if self._sha256(target / part.path, part) != part.sha256]

    def _sha256(self, path: PurePosixPath, part: Part) -> str | None:
        """Of a file there; None where there is none."""
        quoted = shlex.quote(str(path))
        command = f"if [ -f {quoted} ]; then sha256sum {quoted}; else echo absent; fi"
        done = self.adb.shell(command, LEAST_S + part.bytes / SLOWEST_BYTES_S)
        said = done.out.split()
        if done.code or not said:
            why = one_line(done.out) or "it printed nothing"
            msg = f"sha256sum does not work on the Android device {self.adb.serial}: {why}"
            raise BoardUnfitError(msg, remedy="Android 7 or newer is needed.")
        return None if said[0] == "absent" else said[0]

    def _make_folders(self, target: PurePosixPath, parts: Sequence[Part]) -> None:
        folders = dict.fromkeys(str((target / part.path).parent) for part in parts)
        done = self.adb.shell(f"mkdir -p {shlex.join(folders)}")
        if done.code:
            msg = (
                f"the folder {self.folder} can't be written to on the Android device "
                f"{self.adb.serial}: {one_line(done.out)}"
            )
            raise BoardUnfitError(msg, remedy="Leave device.folder out: /data/local/tmp works.")

    def _check_space(self, target: PurePosixPath, needed: int) -> None:
        free = free_bytes(self.adb, shlex.quote(str(target)))
        if free is not None and free < needed + SPARE_BYTES:
            msg = (
                f"{human_bytes(needed)} are to be copied to the Android device "
                f"{self.adb.serial}, where {human_bytes(free)} are free in {self.folder}"
            )
            raise BoardUnfitError(
                msg, remedy=f"Free some; what edgebench copied before is in {self.folder}/models."
            )

    def _copy(self, part: Part, path: PurePosixPath, tell: Progress, mode: str) -> None:
        what = f"copying {part.path} to the device"
        tell(what, 0, part.bytes)
        half = f"{path}.part"
        try:
            self.adb.push(part.file, half, LEAST_S + part.bytes / SLOWEST_BYTES_S)
        except BoardError:
            self._remove(half)
            raise
        if self._sha256(PurePosixPath(half), part) != part.sha256:
            self._remove(half)
            msg = f"{part.path} was damaged on its way to the Android device {self.adb.serial}"
            raise BoardLinkError(msg, remedy="Try again, with another cable if it stays so.")
        done = self.adb.shell(
            f"chmod {mode} {shlex.join([half])} && mv {shlex.join([half, str(path)])}"
        )
        if done.code:
            self._remove(half)
            msg = f"{path} can't be written on the device: {one_line(done.out)}"
            raise BoardUnfitError(msg)
        tell(what, part.bytes, part.bytes)

    def _remove(self, half: str) -> None:
        """Half a file takes space that is needed; a device that is gone keeps it."""
        with contextlib.suppress(BoardError):
            self.adb.shell(f"rm -f {shlex.quote(half)}")
