"""CPU temperature from the thermal zones or, where they have none, from hwmon."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# Kinds of sensors, the best first; within a kind the hottest sensor counts. The zone "acpitz" is
# left out: on many boards it is somewhere in the case, or a constant.
_ZONE_KINDS = (
    re.compile(r"x86_pkg_temp"),
    re.compile(r"cpu[-_]?thermal|cpu"),
    re.compile(r"(?:cpu|cluster|big|little).*", re.IGNORECASE),
    re.compile(r"(?:soc|pkg|package|bcm2835).*", re.IGNORECASE),
)
# hwmon driver -> the labels that mean the whole package; without labels, its first sensor.
_HWMON_LABELS = {
    "coretemp": re.compile(r"Package id \d+"),
    "zenpower": re.compile(r"Tdie"),
    "k10temp": re.compile(r"Tdie|Tctl"),
    "cpu_thermal": re.compile(r".*"),
}
# A sensor that is switched off reads 0 or absolute zero; a broken one the end of its range.
_LOWEST_MILLICELSIUS, _HIGHEST_MILLICELSIUS = -40_000, 150_000


@dataclass(frozen=True, slots=True)
class TemperatureSensor:
    """One sensor of the CPU's temperature.

    Attributes:
        name: what the kernel calls it, such as ``x86_pkg_temp`` or ``k10temp Tctl``.
        path: the file that holds thousandths of a degree Celsius.
    """

    name: str
    path: Path

    def read_celsius(self) -> float | None:
        """The temperature, or None where the sensor says nothing that could be one."""
        value = read_int(self.path)
        if not value or not _LOWEST_MILLICELSIUS < value < _HIGHEST_MILLICELSIUS:
            return None
        return value / 1000


def find_sensors(sysfs: Path) -> tuple[TemperatureSensor, ...]:
    """The sensors of the best kind that answer; none where the machine has none."""
    zones = _zones(sysfs)
    for kind in _ZONE_KINDS:
        sensors = _answering(zone for zone in zones if kind.fullmatch(zone.name))
        if sensors:
            return sensors
    for driver, labels in _HWMON_LABELS.items():
        sensors = _answering(_hwmon_sensors(sysfs, driver, labels))
        if sensors:
            return sensors
    return ()


def read_hottest_celsius(sensors: Sequence[TemperatureSensor]) -> float | None:
    """The highest of the sensors' temperatures, or None where none answers."""
    values = [value for sensor in sensors if (value := sensor.read_celsius()) is not None]
    return max(values, default=None)


def maximum(sensors: Sequence[TemperatureSensor], samples: Sequence[float]) -> Reading:
    """The highest of `samples` in degrees Celsius."""
    if not sensors:
        return Reading.missing("the machine shows no CPU temperature")
    method = ", ".join(dict.fromkeys(sensor.name for sensor in sensors))
    if not samples:
        return Reading.missing("the temperature sensor did not answer", method=method)
    return Reading(max(samples), method=method)


def _answering(sensors: Iterable[TemperatureSensor]) -> tuple[TemperatureSensor, ...]:
    return tuple(sensor for sensor in sensors if sensor.read_celsius() is not None)


def _zones(sysfs: Path) -> list[TemperatureSensor]:
    return [
        TemperatureSensor(name, zone / "temp")
        for zone in list_folder(sysfs / "class/thermal")
        if zone.name.startswith("thermal_zone") and (name := read_text(zone / "type"))
    ]


def _hwmon_sensors(sysfs: Path, driver: str, labels: re.Pattern[str]) -> list[TemperatureSensor]:
    sensors: list[TemperatureSensor] = []
    for chip in list_folder(sysfs / "class/hwmon"):
        if read_text(chip / "name") != driver:
            continue
        inputs = [path for path in list_folder(chip) if re.fullmatch(r"temp\d+_input", path.name)]
        named = [
            (read_text(path.with_name(path.name.replace("_input", "_label"))), path)
            for path in inputs
        ]
        packages = [(label, path) for label, path in named if label and labels.fullmatch(label)]
        # Zen's Tctl may have an offset for the fan's control; Tdie is the temperature itself.
        dies = [entry for entry in packages if entry[0] == "Tdie"]
        chosen = dies or packages or [("", path) for path in inputs[:1]]
        sensors += [TemperatureSensor(f"{driver} {label}".strip(), path) for label, path in chosen]
    return sensors
