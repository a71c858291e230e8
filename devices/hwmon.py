"""Power sensors of boards, as Linux shows them: INA3221 on Jetsons, and what hwmon knows else.

A Jetson has one or two INA3221 with up to three rails each. Where one rail feeds the module
(``VDD_IN``; ``POM_5V_IN`` on the first Nano), it is the total, and the other rails are parts of
it. The AGX modules have no such rail: there the total is a sum of rails that feed it side by side.

Where the facts are from: the kernel's ``Documentation/hwmon/ina3221.rst`` and
``sysfs-interface.rst`` (mV, mA, microwatts, microjoules); NVIDIA's Jetson Linux Developer Guide,
"Software-Based Power Consumption Modeling" (the rails of each module, and that ``VDDQ_VDD2_1V8AO``
is fed by ``VIN_SYS_5V0``); NVIDIA's forum 75574 and the AGX Xavier design guide for its six rails.
"""

from __future__ import annotations

import errno
import functools
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.devices.counting import Counting
from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.gauge import prove
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from edgebench.devices.power import PowerMeter

INTERVAL_S = 0.05
PROOF_S = 0.5
LONGEST_PROOF_S = 5.0
MICRO = 1e6
MILLI = 1e3

_WHOLE = ("VDD_IN", "POM_5V_IN")
# Rails side by side that together feed a module that has no rail for all.
_TOGETHER = (
    ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),  # AGX Orin
    ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),  # AGX Xavier
)
# Apple's system controller under Linux, and ACPI's meter of servers.
_WHOLE_OTHERS = ("macsmc_hwmon:Total System Power", "power_meter:power1")
# Graphics cards tell the card's power only, and NVIDIA's has a meter of its own; batteries are
# power_supply's; RAPL's driver is powercap's.
_NOT_BOARDS = re.compile(r"amdgpu|radeon|nouveau|i915|xe|nvme|BAT\d*|.*battery.*|ucsi_.*|tcpm_.*")


@dataclass(frozen=True, slots=True)
class Rail:
    """One channel that tells power.

    Attributes:
        name: its label, such as ``VDD_IN``.
        files: what is multiplied: power, or voltage and current.
        per_watt: the product in the files' own units that makes a watt.
    """

    name: str
    files: tuple[Path, ...]
    per_watt: float

    def read_w(self) -> float:
        """Watts now.

        Raises:
            OSError: it can't be read, or is no number.
        """
        product = 1.0
        for path in self.files:
            product *= read_number(path)
        return product / self.per_watt


@dataclass(frozen=True, slots=True)
class Rails:
    """Rails that are fed side by side, added up."""

    name: str
    parts: tuple[Rail, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of all."""
        return tuple(path for part in self.parts for path in part.files)

    def read_w(self) -> float:
        """Watts now, of all. Raises `OSError` where one can't be read."""
        return sum(part.read_w() for part in self.parts)


class EnergyFiles:
    """Cumulative counters of hwmon, in microjoules, added up.

    Drivers keep them in 64 bits, so they never turn.

    Args:
        name: of the meter.
        paths: the files ``energyN_input``.
        resolution_s: how often they change.
        clock: nanoseconds.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(
        self,
        name: str,
        paths: Sequence[Path],
        resolution_s: float,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.name = name
        self.resolution_s = resolution_s
        self._paths = tuple(paths)
        self._counts = [
            Counting(
                f"the counter {path.name}",
                read_number(path),
                round(MICRO),
                clock,
                resolution_s=resolution_s,
            )
            for path in self._paths
        ]

    def read_j(self) -> float:
        """Joules since the meter was made.

        Raises:
            OSError: it can't be read, or began anew since it was read last.
        """
        for path, count in zip(self._paths, self._counts, strict=True):
            count.take(read_number(path))
        return sum(count.total for count in self._counts) / MICRO

    def close(self) -> None:
        """Nothing is open."""


def read_number(path: Path) -> int:
    """The number that a sensor's file holds. Raises `OSError` where there is none."""
    text = path.read_bytes().strip()
    try:
        return int(text)
    except ValueError as error:
        raise OSError(errno.EIO, "not a number") from error


def read_sum(paths: Sequence[Path]) -> float:
    """The sum of several files' numbers. Raises `OSError` where one has none."""
    return sum(read_number(path) for path in paths)


def find_hwmon(sysfs: Path, clock: Callable[[], int]) -> tuple[list[PowerMeter], list[Refusal]]:
    """The boards' power sensors that can be trusted, the whole board's first.

    Args:
        sysfs: where sysfs is mounted.
        clock: nanoseconds.

    Returns:
        Meters, and a refusal for each that is there but not usable. Both are empty where there
        is none.
    """
    meters: list[PowerMeter] = []
    refusals: list[Refusal] = []
    poller = Poller(clock, INTERVAL_S)
    for rail in _in_order(_jetson_rails(sysfs)) + _other_rails(sysfs):
        name = f"hwmon:{rail.name}"
        found = prove(
            name, rail.read_w, clock, limit_s=_proof_s(rail.files[0]), allow=_allow(rail.files)
        )
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            meters.append(poller.gauge(name, rail.read_w, found))
    for label, paths in _energy_files(sysfs).items():
        name = f"hwmon:{label}"
        found = prove(
            name,
            functools.partial(read_sum, paths),
            clock,
            limit_s=PROOF_S,
            is_power=False,
            allow=_allow(paths),
        )
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            meters.append(EnergyFiles(name, paths, found, clock))
    return meters, refusals


def _proof_s(path: Path) -> float:
    # ACPI's meter averages over a second or more, and says over how many milliseconds.
    averaged_ms = read_int(path.with_name(f"{path.name}_interval")) or 0
    return min(max(PROOF_S, 2.5 * averaged_ms / MILLI), LONGEST_PROOF_S)


def _allow(files: Sequence[Path]) -> str:
    return "sudo chmod a+r " + " ".join(str(path) for path in files)


def _in_order(rails: list[Rail]) -> list[Rail | Rails]:
    """The total of a Jetson first, then its parts."""
    by_name = {rail.name: rail for rail in rails}
    for name in _WHOLE:
        if name in by_name:
            return [by_name[name], *(rail for rail in rails if rail.name != name)]
    for names in _TOGETHER:
        if all(name in by_name for name in names):
            return [Rails("board", tuple(by_name[name] for name in names)), *rails]
    return list(rails)


def _jetson_rails(sysfs: Path) -> list[Rail]:
    """The rails of the INA3221 chips, of NVIDIA's old driver too."""
    rails: dict[str, Rail] = {}
    for driver in ("ina3221", "ina3221x"):
        for device in list_folder(sysfs / "bus/i2c/drivers" / driver):
            for chip in [*list_folder(device / "hwmon"), *_iio(device)]:
                for rail in _rails_of(chip):
                    rails.setdefault(rail.name, rail)
    return list(rails.values())


def _iio(device: Path) -> list[Path]:
    # JetPack 4 and older: the driver ina3221x is one of the IIO subsystem.
    return [entry for entry in list_folder(device) if entry.name.startswith("iio:device")]


def _rails_of(chip: Path) -> list[Rail]:
    rails = []
    for number in "0123":
        label = read_text(chip / f"in{number}_label") or read_text(chip / f"rail_name_{number}")
        # Not connected, and the sum of shunt voltages, which is no power.
        if not label or label == "NC":
            continue
        power = chip / f"in_power{number}_input"
        if power.exists():
            rails.append(Rail(label, (power,), MILLI))
            continue
        pair = (chip / f"in{number}_input", chip / f"curr{number}_input")
        # A channel that is switched off keeps its files and answers with an error.
        if all(path.exists() for path in pair) and read_text(chip / f"in{number}_enable") != "0":
            rails.append(Rail(label, pair, MILLI * MILLI))
    return rails


def _chips(sysfs: Path) -> list[tuple[str, Path]]:
    """Name and folder of the chips of hwmon that belong to boards and processors.

    Of chips of one name, the second is ``name-2``, and so on, in the order of their folders.
    """
    found: list[tuple[str, Path]] = []
    seen: Counter[str] = Counter()
    for chip in sorted(list_folder(sysfs / "class/hwmon"), key=_number):
        name = read_text(chip / "name")
        if not name or name.startswith("ina3221") or _NOT_BOARDS.fullmatch(name):
            continue
        seen[name] += 1
        found.append((name if seen[name] == 1 else f"{name}-{seen[name]}", chip))
    return found


def _number(chip: Path) -> tuple[int, str]:
    """By which ``hwmon10`` comes after ``hwmon9``."""
    digits = re.sub(r"\D", "", chip.name)
    return (int(digits) if digits else 0, chip.name)


def _apart(label: str, taken: Collection[str]) -> str:
    """A label that is not taken: of twins in one chip, too, the second is ``label-2``."""
    names = (label, *(f"{label}-{at}" for at in range(2, len(taken) + 2)))
    return next(each for each in names if each not in taken)


def _other_rails(sysfs: Path) -> list[Rail | Rails]:
    """``powerN_input``, or ``powerN_average`` where a chip has only that; microwatts."""
    rails: list[Rail | Rails] = []
    for name, chip in _chips(sysfs):
        for path in list_folder(chip):
            match = re.fullmatch(r"power(\d+)_(input|average)", path.name)
            if not match:
                continue
            if match[2] == "average" and (chip / f"power{match[1]}_input").exists():
                continue
            label = read_text(chip / f"power{match[1]}_label")
            label = _apart(f"{name}:{label or f'power{match[1]}'}", {each.name for each in rails})
            rail = Rail(label, (path,), MICRO)
            rails.insert(0 if rail.name in _WHOLE_OTHERS else len(rails), rail)
    return rails


def _energy_files(sysfs: Path) -> dict[str, tuple[Path, ...]]:
    """``energyN_input`` by name, except of single cores; those of all sockets together."""
    found: dict[str, tuple[Path, ...]] = {}
    for name, chip in _chips(sysfs):
        for path in list_folder(chip):
            match = re.fullmatch(r"energy(\d+)_input", path.name)
            if not match:
                continue
            label = read_text(chip / f"energy{match[1]}_label") or f"energy{match[1]}"
            # AMD's drivers have one for each core beside those of the sockets.
            if re.fullmatch(r"Ecore\d+", label):
                continue
            if re.fullmatch(r"Esocket\d+", label):
                # A chip, or several of one driver: all sockets are the processors.
                key = f"{read_text(chip / 'name')}:sockets"
                found[key] = (*found.get(key, ()), path)
            else:
                found[_apart(f"{name}:{label}", found)] = (path,)
    return found
