"""What an Android device says of itself."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.devices.android_battery import parse_dumpsys
from edgebench.devices.files import parse_cpu_list
from edgebench.devices.machine import Machine
from edgebench.devices.reading import Reading
from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.errors import BoardError, BoardUnfitError

if TYPE_CHECKING:
    from edgebench.harness.adb.client import Adb

KIB: Final = 1024
GIB: Final = 1 << 30
PROPERTIES: Final = (
    "ro.product.manufacturer",
    "ro.product.model",
    "ro.soc.manufacturer",
    "ro.soc.model",
    "ro.board.platform",
    "ro.product.cpu.abilist",
    "ro.product.cpu.abi",
    "ro.build.version.release",
    "ro.build.fingerprint",
)
FILES: Final = (
    "/proc/sys/kernel/osrelease",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/proc/sys/kernel/random/boot_id",
    "/proc/loadavg",
)

HOTTEST: Final = 200.0
"""In degrees Celsius; what is more is no temperature of a battery."""
SKIN: Final = 3
"""Of ``android.os.Temperature``: 0 is a CPU, 2 the battery, 3 the case."""
_TEMPERATURE: Final = re.compile(
    r"Temperature\{mValue=([0-9]{1,6}(?:\.[0-9]{1,9})?), mType=([0-9]{1,9}),"
)


@dataclass(frozen=True, slots=True)
class Phone:
    """An Android device.

    Attributes:
        abis: what it runs, the one that it likes best first; empty where it does not tell.
        programs: of toybox's, those that a measurement can use; ``time`` where it has ``-v``.
        machine: as results name it.
    """

    abis: tuple[str, ...]
    programs: frozenset[str]
    machine: Machine

    @property
    def abi(self) -> str:
        """The one to build for."""
        return self.abis[0] if self.abis else "its processor"


def ask(adb: Adb) -> Phone:
    """Ask the device.

    Raises:
        BoardError: it does not answer, or with something else.
    """
    told = dict(
        zip(PROPERTIES, _lines(adb, [f"getprop {name}" for name in PROPERTIES]), strict=True)
    )
    release, online, governor, boot_id, load = _lines(adb, [f"cat {name}" for name in FILES])
    memory = re.search(r"^MemTotal:\s+([0-9]{1,12}) kB", adb.shell("cat /proc/meminfo").out, re.M)
    if memory is None or int(memory[1]) == 0:
        msg = f"{adb.serial} does not tell its memory: is it an Android device?"
        raise BoardUnfitError(msg)
    programs = set(adb.shell("toybox").out.split()) & {"time", "timeout", "sha256sum"}
    # Old ones have `time` without the kernel's figures.
    if "time" in programs and "Max RSS" not in adb.shell("toybox time -v true 2>&1").out:
        programs.remove("time")
    abis = told["ro.product.cpu.abilist"] or told["ro.product.cpu.abi"]
    cpus = parse_cpu_list(online) or (0,)
    soc = " ".join(filter(None, (told["ro.soc.manufacturer"], told["ro.soc.model"])))
    model = " ".join(filter(None, (told["ro.product.manufacturer"], told["ro.product.model"])))
    chip = soc or told["ro.board.platform"] or "unknown processor"
    cpu_model = f"{chip} ({model})" if model else chip
    memory_bytes = int(memory[1]) * KIB
    known = [cpu_model, len(cpus), round(memory_bytes / GIB), release, governor, abis]
    known.append(told["ro.build.fingerprint"])
    loads = re.findall(r"\b[0-9]{1,9}\.[0-9]{1,9}\b", load)[:3]
    machine = Machine(
        fingerprint=hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16],
        cpu_model=cpu_model,
        cpu_microarchitecture=None,
        logical_cpus=len(cpus),
        physical_cpus=None,
        affinity=cpus,
        memory_bytes=memory_bytes,
        kernel=release or "unknown",
        system=f"Android {told['ro.build.version.release']}".strip(),
        architecture=abis.split(",")[0] or "unknown",
        python="none",
        governor=governor or None,
        turbo=None,
        virtualization=None,
        boot_id=boot_id or None,
        load_average=tuple(float(each) for each in loads),
    )
    listed = tuple(each for each in abis.split(",") if each)
    return Phone(listed, frozenset(programs), machine)


def celsius(adb: Adb) -> Reading:
    """The battery's temperature in degrees Celsius, or that of the case where it tells none.

    Both change over minutes, as the heat does that makes a phone slow; a processor's own is back
    after seconds.
    """
    try:
        state = parse_dumpsys(adb.shell("dumpsys battery").out)
        if state is not None and state.celsius is not None and abs(state.celsius) < HOTTEST:
            return Reading(state.celsius, method="dumpsys battery")
        case = _case_celsius(adb.shell("dumpsys thermalservice").out)
    except BoardError as error:
        return Reading.missing(error.message)
    if case is None:
        return Reading.missing("the phone tells no temperature of its battery or its case")
    return Reading(case, method="dumpsys thermalservice")


def free_bytes(adb: Adb, folder: str) -> int | None:
    """Space that is left where a folder is; None where the device does not tell."""
    # POSIX's format: one line for each file system.
    for line in adb.shell(f"df -k -P {folder} 2>/dev/null || df -k {folder}").out.splitlines()[1:]:
        parts = line.split()
        at = next((at for at, part in enumerate(parts) if part.endswith("%")), None)
        if at is not None and at >= 1 and re.fullmatch(r"[0-9]{1,15}", parts[at - 1]):
            return int(parts[at - 1]) * KIB
    return None


def _case_celsius(text: str) -> float | None:
    """The hottest place of the case; what was cached may be old."""
    _, current, rest = text.partition("Current temperatures from HAL:")
    section = rest.partition("Current cooling devices")[0] if current else ""
    found = [float(value) for value, kind in _TEMPERATURE.findall(section) if int(kind) == SKIN]
    return max((each for each in found if each > 0), default=None)


def _lines(adb: Adb, commands: list[str]) -> list[str]:
    """The first line of what each prints; empty where it fails."""
    mark = "edgebench: next"
    script = "\n".join(f'{each} 2>/dev/null\necho "\n{mark}"' for each in commands)
    parts = adb.shell(script).out.split(mark)[: len(commands)]
    if len(parts) != len(commands):
        msg = f"the Android device {adb.serial} answered something else"
        raise BoardUnfitError(msg)
    return [one_line(next(iter(part.strip().splitlines()), "")) for part in parts]
