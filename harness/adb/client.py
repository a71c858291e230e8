"""The user's own adb: what it is asked, and what it answers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb import diagnosis
from edgebench.harness.errors import BoardError, BoardUnfitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ADB_VARIABLE: Final = "EDGEBENCH_ADB"
HOMES: Final = ("ANDROID_HOME", "ANDROID_SDK_ROOT")
ANY: Final = "any"
"""In place of a serial number: the one device that is attached."""

QUICK_S: Final = 20.0
START_S: Final = 60.0
"""The first call starts adb's server."""

EXIT: Final = "edgebench: exit "
_EXIT_LINE: Final = re.compile(rf"{EXIT}([0-9]{{1,3}})\s*$")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended.

    Attributes:
        code: its exit status.
        out: what it printed; of a command on the device, its error messages too.
        err: what adb itself had to say.
    """

    code: int
    out: str
    err: str = ""


@dataclass(frozen=True, slots=True)
class Attached:
    """A device that adb's server knows.

    Attributes:
        state: ``device`` where it can be used.
        about: what adb says of it besides, such as its model.
    """

    serial: str
    state: str
    about: str = ""


def adb_words(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The words that start adb.

    Raises:
        BoardUnfitError: there is none.
        UsageError: the variable that names it can't be read.
    """
    if named := environ.get(ADB_VARIABLE):
        try:
            return tuple(shlex.split(named))
        except ValueError as error:
            msg = f"{ADB_VARIABLE} can't be split into words: {error}"
            raise UsageError(msg, remedy="Give the path of adb, in quotes.") from error
    found = shutil.which("adb", path=environ.get("PATH"))
    if found is None:
        places = [Path(environ[each]) / "platform-tools/adb" for each in HOMES if environ.get(each)]
        found = next((str(place) for place in places if os.access(place, os.X_OK)), None)
    if found is None:
        raise diagnosis.no_adb()
    return (found,)


class Adb:
    """One device.

    Args:
        serial: as the scenario names it.
        words: those that start adb.
    """

    def __init__(self, serial: str, words: Sequence[str]) -> None:
        # It may hold spaces: whoever made the phone chose it.
        if (
            serial.startswith("-")
            or serial != serial.strip()
            or not serial.isprintable()
            or not serial
        ):
            msg = f"{serial!r} is no serial number of an Android device"
            raise UsageError(msg, remedy="Write what `adb devices` prints.")
        self.serial = serial
        self._words = list(words)
        self._models: list[str] | None = None

    def find(self) -> None:
        """Make sure that the device can be used; `ANY` becomes its serial number.

        Raises:
            BoardError: adb does not work, or the device is not there, or does not let us in.
        """
        self.serial = diagnosis.chosen(self.serial, self.attached(), ANY)

    def attached(self) -> list[Attached]:
        """All devices that adb knows."""
        found = []
        for line in self._listed():
            # A tab, since both may have spaces: "no permissions (user is not in the group …)".
            serial, tab, said = line.rstrip().rpartition("\t")
            if not tab or line.startswith("*"):
                continue
            state = "no permissions" if said.startswith("no permissions") else said.split(" ")[0]
            found.append(Attached(serial.rstrip(), state))
        return [replace(each, about=self._model(each)) for each in found]

    def _model(self, device: Attached) -> str:
        """The model of a device, for people; empty where adb does not tell."""
        if self._models is None:
            self._models = self._listed("-l")
        # Columns, so that only whoever knows the serial number can tell where it ends.
        start = f"{device.serial:<22} {device.state} "
        lines = (each for each in self._models if each.startswith(start))
        found = (re.search(r" model:(\S+)", each[len(start) - 1 :]) for each in lines)
        return next((each[1] for each in found if each), "")

    def _listed(self, *more: str) -> list[str]:
        """The lines of ``adb devices``, below what adb says of itself."""
        done = self._call([*self._words, "devices", *more], START_S)
        if done.code:
            raise diagnosis.adb_failed(done.err or done.out)
        _, listed, devices = done.out.partition("List of devices attached")
        if not listed:
            raise diagnosis.no_list(shlex.join(self._words), done.out or done.err)
        return devices.splitlines()

    def shell(self, command: str, timeout_s: float = QUICK_S) -> Done:
        """Run a command in the device's shell.

        Raises:
            BoardLinkError: the device did not answer.
        """
        # Old devices do not pass on the exit status, and a link that breaks leaves none.
        done = self._call(self.shell_words(f'{command}\necho "{EXIT}$?"'), timeout_s)
        lines = done.out.splitlines()
        ended = _EXIT_LINE.search(lines[-1]) if lines else None
        if ended is None:
            raise diagnosis.link_broken(self.serial, done.err or done.out)
        # The last line of the output may lack its end.
        last = lines[-1][: ended.start()]
        return Done(int(ended[1]), "\n".join([*lines[:-1], last] if last else lines[:-1]), done.err)

    def run(self, command: Sequence[str]) -> str:
        """Its output, for a meter that reads the device.

        Raises:
            OSError: it failed; the text says why.
        """
        try:
            done = self.shell(shlex.join(command))
        except BoardError as error:
            raise OSError(error.message) from error
        if done.code:
            msg = f"{command[0]} failed: {' '.join(done.out.split())[:200]}"
            raise OSError(msg)
        return done.out

    def push(self, source: Path, target: str, timeout_s: float) -> None:
        """Copy a file to the device.

        Raises:
            BoardError: it could not be copied.
        """
        # A path from the root is no option, whatever its name begins with.
        words = [*self._words, "-s", self.serial, "push", str(source.absolute()), target]
        done = self._call(words, timeout_s)
        if done.code:
            raise diagnosis.push_failed(self.serial, target, f"{done.err}\n{done.out}")

    def shell_words(self, command: str) -> list[str]:
        """The words that run a command in the device's shell."""
        return [*self._words, "-s", self.serial, "shell", command]

    def _call(self, words: Sequence[str], timeout_s: float) -> Done:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,  # adb would take what is typed to the device
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise diagnosis.no_answer(self.serial, timeout_s) from error
        except OSError as error:
            msg = f"adb can't be started: {words[0]}: {error.strerror or error}"
            raise BoardUnfitError(msg, remedy=f"Give its path in {ADB_VARIABLE}.") from error
        return Done(done.returncode, done.stdout.replace("\r\n", "\n"), done.stderr)
