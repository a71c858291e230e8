"""Energy meters: what each offers, and the search for those that this machine has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from edgebench.devices.android_battery import find_android
from edgebench.devices.estimate import estimated_meter
from edgebench.devices.external import find_external
from edgebench.devices.files import read_text
from edgebench.devices.hwmon import find_hwmon
from edgebench.devices.nvidia import find_nvidia
from edgebench.devices.pi_pmic import find_pi_pmic
from edgebench.devices.power_supply import find_power_supply
from edgebench.devices.powermetrics import find_powermetrics
from edgebench.devices.proof import Refusal
from edgebench.devices.rapl import MODULE_REMEDY, find_rapl
from edgebench.devices.virtualization import describe_virtualization, in_virtual_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class PowerMeter(Protocol):
    """One cumulative energy counter.

    One whose readings come when they come is a `PointMeter` too (`edgebench.devices.points`).
    """

    @property
    def name(self) -> str:
        """Its kind, and what it measures after a colon: ``rapl:package``."""

    @property
    def source(self) -> Literal["observed", "estimated"]:
        """Whether it measures, or computes from something else."""

    @property
    def resolution_s(self) -> float | None:
        """Seconds from one change of it to the next; None where that is not known."""

    def read_j(self) -> float:
        """Joules since some fixed moment; never less than before.

        It is read 20 times a second beside a measurement, so it takes microseconds: a slow source
        is read by a thread of its own.

        Raises:
            OSError: the counter can't be read; the text says why.
        """

    def close(self) -> None:
        """End what it started; may be called twice."""


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """Which meters to use, as the user wishes.

    Attributes:
        meter: only those whose name is this or begins with it and a colon, such as ``rapl``; None
            for all.
        command: prints ``seconds,watts`` lines of an external meter; None where there is none.
        estimate: ``tdp`` to compute energy from `tdp_w` and the processors' use where no meter
            can be used; None never does.
        tdp_w: the thermal design power of that estimate, in watts.
    """

    meter: str | None = None
    command: str | None = None
    estimate: Literal["tdp"] | None = None
    tdp_w: float | None = None


@dataclass(frozen=True, slots=True)
class MeterSearch:
    """What was found.

    Attributes:
        meters: those that can be trusted, the one whose energy stands in the metrics first.
        refusals: one sentence for each that can't: what is not usable, why, and the command that
            makes it usable where there is one.
    """

    meters: tuple[PowerMeter, ...]
    refusals: tuple[str, ...]


ORDER = (
    "external",
    "hwmon:VDD_IN",
    "hwmon:POM_5V_IN",
    "hwmon:board",
    "pi_pmic",
    "hwmon:macsmc_hwmon:Total System Power",
    "hwmon:power_meter:power1",
    "rapl:package",
    "hwmon:amd_energy:sockets",
    "hwmon:zenergy:sockets",
    "powermetrics",
    "battery",
    "nvidia",
    "rapl:psys",
)
"""Which meter's energy stands in the metrics, of those that are there: the first of these.

What the user connected comes first, then what measures a whole board at its input. The package is
next: every PC has it, and it is the same thing in all of them. ``psys`` may be more, but its maker
decides what it covers, and some never wired it up. A battery covers the whole device, its screen
too, and changes every few seconds only.
"""

KINDS = tuple(dict.fromkeys(each.partition(":")[0] for each in ORDER))
"""What a meter's name may begin with."""


def find_meters(
    sysfs: Path = Path("/sys"),
    *,
    procfs: Path = Path("/proc"),
    clock: Callable[[], int] = time.perf_counter_ns,
    settings: PowerSettings = PowerSettings(),
) -> MeterSearch:
    """Look for energy meters, each of which has to prove itself.

    It takes as long as the slowest of them: a counter of the processor some milliseconds, a
    battery or an external meter some seconds.

    Args:
        sysfs: where sysfs is mounted.
        procfs: where procfs is mounted: whether this is a virtual machine, how busy the CPUs are.
        clock: nanoseconds.
        settings: which of them to use.
    """
    meters, refusals = look_for_meters(procfs, sysfs, clock, settings)
    return MeterSearch(meters, tuple(str(refusal) for refusal in refusals))


def look_for_meters(
    procfs: Path,
    sysfs: Path,
    clock: Callable[[], int],
    settings: PowerSettings = PowerSettings(),
) -> tuple[tuple[PowerMeter, ...], tuple[Refusal, ...]]:
    """The same as `find_meters`, with each remedy apart from its finding."""
    found, refusals = _all_meters(procfs, sysfs, clock, settings)
    meters = [each for each in found if _is_asked_for(each.name, settings.meter)]
    for each in found:
        if each not in meters:
            each.close()
    if settings.meter is not None:
        refusals = [
            each
            for each in refusals
            if _is_asked_for(each.finding.partition(": ")[0], settings.meter)
        ]
        if not meters:
            refusals.insert(0, _no_such_meter(settings.meter, found))
    if not meters and settings.estimate == "tdp":
        estimate = estimated_meter(settings.tdp_w, procfs)
        if isinstance(estimate, Refusal):
            refusals.append(estimate)
        else:
            meters.append(estimate)
    return tuple(sorted(meters, key=lambda each: _place(each.name))), tuple(refusals)


def _all_meters(
    procfs: Path, sysfs: Path, clock: Callable[[], int], settings: PowerSettings
) -> tuple[list[PowerMeter], list[Refusal]]:
    meters: list[PowerMeter] = []
    refusals: list[Refusal] = []
    if settings.command is not None:
        external = find_external(settings.command, clock)
        if isinstance(external, Refusal):
            refusals.append(external)
        else:
            meters.append(external)
    parts: tuple[tuple[Sequence[PowerMeter], Sequence[Refusal]], ...] = (
        find_hwmon(sysfs, clock),
        find_pi_pmic(sysfs, clock),
        find_rapl(sysfs, clock, amd=_is_amd(procfs)),
        find_powermetrics(clock),
        find_power_supply(sysfs, clock),
        find_android(clock),
        find_nvidia(sysfs, procfs, clock),
    )
    for its_meters, its_refusals in parts:
        meters.extend(its_meters)
        refusals.extend(its_refusals)
    if not any(each.name.startswith("rapl:") for each in meters):
        silent = not any(each.finding.startswith("rapl:") for each in refusals)
        if silent and (_has_no_driver(procfs, sysfs) or not (meters or refusals)):
            refusals.append(_nothing_there(procfs, sysfs))
    return meters, refusals


def _place(name: str) -> int:
    """Where a meter stands; those of the same place stay in the order in which they were found."""
    exact = (at for at, each in enumerate(ORDER) if name == each)
    of_kind = (at for at, each in enumerate(ORDER) if ":" not in each and _is_asked_for(name, each))
    # The parts of powermetrics or a single GPU are of a kind whose whole comes first.
    return next(exact, next(of_kind, len(ORDER)))


def _is_asked_for(name: str, meter: str | None) -> bool:
    return meter is None or name == meter or name.startswith(f"{meter}:")


def _no_such_meter(asked: str, found: Sequence[PowerMeter]) -> Refusal:
    there = ", ".join(each.name for each in found) or "none"
    return Refusal(f"{asked}: no such meter can be used; those that can: {there}")


def _nothing_there(procfs: Path, sysfs: Path) -> Refusal:
    missing = f"rapl: {sysfs}/class/powercap has no energy counter"
    if in_virtual_machine(procfs, sysfs):
        kind = describe_virtualization(procfs, sysfs)
        return Refusal(f"{missing}: virtual machines hide it, and this is one ({kind})")
    if _has_no_driver(procfs, sysfs):
        return Refusal(f"{missing}: the kernel's driver is not loaded", MODULE_REMEDY)
    return Refusal(f"{missing}: this processor has none")


def _has_no_driver(procfs: Path, sysfs: Path) -> bool:
    """Whether the processor has such counters, where the kernel shows none."""
    text = read_text(procfs / "cpuinfo") or ""
    is_x86 = "GenuineIntel" in text or "AuthenticAMD" in text
    return is_x86 and not in_virtual_machine(procfs, sysfs)


def _is_amd(procfs: Path) -> bool:
    return "AuthenticAMD" in (read_text(procfs / "cpuinfo") or "")
