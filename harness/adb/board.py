"""An Android device as a board: tools of frameworks run there, and no runner of ours does."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NoReturn

from edgebench.devices.android_battery import find_android
from edgebench.devices.bandwidth import Bandwidth
from edgebench.devices.external import find_external
from edgebench.devices.idle import idle_watts
from edgebench.devices.power import PowerSettings
from edgebench.devices.proof import Refusal
from edgebench.harness.adb.copying import Copies
from edgebench.harness.adb.phone import Phone, ask, celsius
from edgebench.harness.adb.running import Program, end_start
from edgebench.harness.board import MeterFacts, Meters
from edgebench.harness.errors import (
    BoardLinkError,
    BoardUnfitError,
    ModelError,
    RunnerRefusedError,
    UsageError,
)
from edgebench.harness.ssh.copying import Part, parts_of
from edgebench.harness.store.hashing import sha256_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.machine import Machine
    from edgebench.devices.power import PowerMeter
    from edgebench.devices.reading import Reading
    from edgebench.harness.adb.client import Adb
    from edgebench.harness.board import Watch
    from edgebench.harness.session import Launch, Session
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.store import StoredFile

DEFAULT_FOLDER: Final = "/data/local/tmp/edgebench"
AWAY_S: Final = 30.0
"""How long to wait for a device that was unplugged, before what it was to do fails."""
POLL_S: Final = 1.0
HASH_DIGITS: Final = 16
NO_READER: Final = "memory is read by a program of ours, and none runs on an Android device"


class AdbBoard:
    """An Android device.

    Args:
        adb: how it is reached.
        folder: where tools and models are kept there.
        power: which meters to use.
        away_s: how long to wait for it where it went away.
        sleep: waits.

    Raises:
        UsageError: the folder can't be used.
    """

    remote = True

    def __init__(
        self,
        adb: Adb,
        folder: str = DEFAULT_FOLDER,
        power: PowerSettings | None = None,
        *,
        away_s: float = AWAY_S,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        # Its files' paths begin with it: "-x" would be an option, and llama-bench reads a comma as
        # the end of a path.
        if not folder.startswith("/") or "," in folder:
            msg = f"device.folder: {folder!r} is no path from the root, or has a comma in it"
            raise UsageError(msg, remedy=f"Leave it out, or write one such as {DEFAULT_FOLDER}.")
        self.adb = adb
        self._copies = Copies(adb, folder)
        self._power = power or PowerSettings()
        self._away_s = away_s
        self._sleep = sleep
        self._phone: Phone | None = None
        self._placed: dict[str, str] = {}
        self._programs: dict[Path, Program] = {}
        self._usages: dict[Program, str] = {}
        self._meters: tuple[PowerMeter, ...] | None = None
        self._refusals: tuple[str, ...] = ()
        self._left_running: list[str] = []
        self._away = False

    @property
    def name(self) -> str:
        """Its serial number."""
        return self.adb.serial

    @property
    def phone(self) -> Phone:
        """What it says of itself; asked once.

        Raises:
            BoardError: it can't be used.
        """
        if self._phone is None:
            self.adb.find()
            self._phone = ask(self.adb)
        return self._phone

    def machine(self) -> Machine:
        """Which device it is."""
        return self.phone.machine

    # Tools and models --------------------------------------------------------------------------

    def place(self, file: StoredFile, tell: Progress) -> str:
        """The path there of a model; copied where it is not there yet.

        Raises:
            BoardError: it can't be copied.
        """
        if file.sha256 not in self._placed:
            try:
                parts = parts_of(file, tell)
            except ModelError as error:
                raise BoardUnfitError(error.message, remedy=error.remedy) from error
            below = f"models/{file.sha256[:HASH_DIGITS]}"
            name = name_there(file.name)
            parts = [replace(each, path=name + each.path[len(file.name) :]) for each in parts]
            folder = self._copies.place(below, parts, tell, mode="644")
            self._placed[file.sha256] = str(PurePosixPath(folder) / name)
        return self._placed[file.sha256]

    def place_tool(self, tool: Path, tell: Progress) -> Program:
        """A tool and the shared libraries that lie beside it; copied where they are not there yet.

        Raises:
            BoardError: they can't be copied.
        """
        if tool not in self._programs:
            parts = tool_parts(tool, tell)
            # All that is in the folder: a library that was taken away is then none of it.
            known = json.dumps([(each.path, each.sha256) for each in parts])
            below = f"tools/{hashlib.sha256(known.encode()).hexdigest()[:HASH_DIGITS]}"
            folder = self._copies.place(below, parts, tell, mode="755")
            made = Program(folder, tool.name, self.phone.abi, self.phone.programs)
            self._programs[tool] = made
        return self._programs[tool]

    def usage(self, program: Program) -> str:
        """What a tool prints of its options; asked once.

        Raises:
            BoardError: the device did not answer.
        """
        if program not in self._usages:
            self._usages[program] = self.adb.shell(program.usage_script()).out
        return self._usages[program]

    # A device that goes away -------------------------------------------------------------------

    def lost(self, word: str | None = None) -> None:
        """The link broke, while a tool that was started with this word may still run there."""
        self._away = True
        if word is not None:
            self._left_running.append(word)

    def reach(self) -> None:
        """Wait for a device that went away, and end what was left running there.

        Raises:
            BoardError: it did not come back.
        """
        waited_s = 0.0
        while self._away:
            try:
                self.adb.find()
                for word in self._left_running:
                    end_start(self.adb, word)
            except BoardLinkError:
                if waited_s >= self._away_s:
                    raise
                self._sleep(POLL_S)
                waited_s += POLL_S
            else:
                self._away, self._left_running = False, []

    # Meters ------------------------------------------------------------------------------------

    def power_meters(self) -> tuple[PowerMeter, ...]:
        """The meters themselves, which this machine reads; looked for once."""
        if self._meters is None:
            self._meters, self._refusals = self._find_meters()
        return self._meters

    def meters(self) -> Meters:
        """The phone's battery, or a meter that is connected to this machine."""
        found = tuple(MeterFacts(each.name, each.source) for each in self.power_meters())
        return Meters(found, self._refusals)

    def idle_watts(self, seconds: float) -> tuple[Reading, ...]:
        """What it draws with nothing of ours running, in watts."""
        return idle_watts(self.power_meters(), seconds)

    def temperature(self) -> Reading:
        """The battery's temperature now, in degrees Celsius."""
        return celsius(self.adb)

    def bandwidth(self, threads: int) -> Bandwidth:
        """Not measured: nothing of ours runs there."""
        return Bandwidth(threads, 0, None, "", (), reason=NO_READER)

    def close(self) -> None:
        """End the meters, some of which are programs."""
        for meter in self._meters or ():
            meter.close()
        self._meters = ()

    def _find_meters(self) -> tuple[tuple[PowerMeter, ...], tuple[str, ...]]:
        settings = self._power
        found: list[PowerMeter] = []
        refusals: list[Refusal] = []
        if settings.command is not None:
            external = find_external(settings.command, time.perf_counter_ns)
            if isinstance(external, Refusal):
                refusals.append(external)
            else:
                found.append(external)
        if settings.meter in {None, "battery"}:
            of_phone, why_not = find_android(time.perf_counter_ns, self.adb.run)
            found += of_phone
            refusals += why_not
        elif settings.meter != "external":
            refusals.append(Refusal(f"{settings.meter}: an Android device has no such meter"))
        if not found and settings.estimate is not None:
            refusals.append(Refusal("estimate: how busy a phone's processors are is not read"))
        return tuple(found), tuple(map(str, refusals))

    # What only runners need --------------------------------------------------------------------

    def open(self, launch: Launch) -> Session:
        """No runner runs there."""
        _no_runner(launch.runner)

    def watch(self, session: Session) -> Watch:  # noqa: ARG002 - a Board
        """No runner runs there."""
        _no_runner("a runner")

    def evict(self, path: str) -> str:  # noqa: ARG002 - a Board
        """It can't be done without being root."""
        return "an Android device lets nobody drop its page cache"


def adb_board(serial: str, folder: str | None, power: PowerSettings) -> AdbBoard:
    """The board of a serial number.

    Raises:
        BoardError: adb is not installed.
    """
    from edgebench.harness.adb.client import Adb, adb_words  # noqa: PLC0415 - it starts programs

    return AdbBoard(Adb(serial, adb_words()), folder or DEFAULT_FOLDER, power)


def name_there(name: str) -> str:
    """A model's name on the device, where its folder already tells it apart from others.

    A comma ends a path for llama-bench, and a tool may take other characters for something.
    """
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("-") or "model"


def tool_parts(tool: Path, tell: Progress) -> list[Part]:
    """A tool's file, and the shared libraries beside it.

    Raises:
        BoardUnfitError: they can't be read.
    """
    try:
        libraries = sorted(each for each in tool.parent.glob("*.so*") if each.is_file())
        return [
            Part(
                each,
                each.name,
                each.stat().st_size,
                sha256_file(each, f"hashing {each.name}", tell),
            )
            for each in [tool, *libraries]
        ]
    except (OSError, ModelError) as error:
        msg = f"the tool {tool} can't be read: {error}"
        raise BoardUnfitError(msg) from error


def _no_runner(runner: str) -> NoReturn:
    msg = f"{runner} does not run on an Android device: frameworks' own tools do"
    raise RunnerRefusedError(msg, reason="unsupported")
