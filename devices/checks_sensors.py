"""What the doctor finds out about sensors: energy and temperature."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edgebench.devices.check import Check
from edgebench.devices.files import read_text
from edgebench.devices.power import look_for_meters
from edgebench.devices.thermal import find_sensors, read_hottest_celsius
from edgebench.devices.virtualization import in_virtual_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOT_CELSIUS = 80.0
_DRIVERS = {"GenuineIntel": "coretemp", "AuthenticAMD": "k10temp"}


def check_power(procfs: Path, sysfs: Path, clock: Callable[[], int]) -> list[Check]:
    """Which energy meters can be read, and how to make the others readable."""
    meters, refusals = look_for_meters(procfs, sysfs, clock)
    checks = []
    for place, meter in enumerate(meters):
        first = "" if place else ", which results show"
        often = _often(meter.resolution_s)
        checks.append(Check("power", "good", f"{meter.name} measures energy{first}{often}."))
        meter.close()
    return checks + [
        Check("power", "note", f"{refusal.finding}.", refusal.remedy) for refusal in refusals
    ]


def _often(resolution_s: float | None) -> str:
    if not resolution_s:
        return ""
    if resolution_s < 1:
        return f"; it changes every {resolution_s * 1000:.3g} ms"
    return f"; it changes every {resolution_s:.3g} s"


def check_temperature(procfs: Path, sysfs: Path) -> Check:
    """Whether the processor's temperature can be read, and is low."""
    sensors = find_sensors(sysfs)
    celsius = read_hottest_celsius(sensors)
    if celsius is None:
        if in_virtual_machine(procfs, sysfs):
            return Check("temperature", "note", "A virtual machine can't see the temperature.")
        return Check("temperature", "note", "No sensor of the CPU answers.", _driver_remedy(procfs))
    names = ", ".join(dict.fromkeys(sensor.name for sensor in sensors))
    finding = f"The processor is at {celsius:.0f} °C ({names})."
    if celsius >= HOT_CELSIUS:
        return Check("temperature", "problem", finding, "Let the machine cool down first.")
    return Check("temperature", "good", finding)


def _driver_remedy(procfs: Path) -> str | None:
    text = read_text(procfs / "cpuinfo") or ""
    vendor = re.search(r"^vendor_id\s*:\s*(\S+)", text, re.MULTILINE)
    driver = _DRIVERS.get(vendor[1]) if vendor else None
    return f"sudo modprobe {driver}" if driver else None
