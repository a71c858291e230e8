"""Energy meters: what each offers, and the search for those that this machine has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from edgebench.devices.files import read_text
from edgebench.devices.proof import Refusal
from edgebench.devices.rapl import MODULE_REMEDY, find_rapl
from edgebench.devices.virtualization import describe_virtualization, in_virtual_machine

if TYPE_CHECKING:
    from collections.abc import Callable


class PowerMeter(Protocol):
    """One cumulative energy counter."""

    @property
    def name(self) -> str:
        """Such as ``rapl:package``."""

    @property
    def source(self) -> Literal["observed", "estimated"]:
        """Whether it measures, or computes from something else."""

    def read_j(self) -> float:
        """Joules since some fixed moment; never less than before.

        Raises:
            OSError: the counter can't be read.
        """


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
        meters: those that can be trusted, the one for the processor first.
        refusals: one sentence for each that can't: what is not usable, why, and the command that
            makes it usable where there is one.
    """

    meters: tuple[PowerMeter, ...]
    refusals: tuple[str, ...]


def find_meters(
    sysfs: Path = Path("/sys"),
    *,
    procfs: Path = Path("/proc"),
    clock: Callable[[], int] = time.perf_counter_ns,
    settings: PowerSettings = PowerSettings(),
) -> MeterSearch:
    """Look for energy meters; keeps a CPU busy for up to 0.2 s for each counter that is stuck.

    Args:
        sysfs: where sysfs is mounted.
        procfs: where procfs is mounted; only asked whether this is a virtual machine.
        clock: nanoseconds.
        settings: which of them to use.
    """
    meters, refusals = look_for_meters(procfs, sysfs, clock)
    return MeterSearch(meters, tuple(str(refusal) for refusal in refusals))


def look_for_meters(
    procfs: Path, sysfs: Path, clock: Callable[[], int]
) -> tuple[tuple[PowerMeter, ...], tuple[Refusal, ...]]:
    """The same as `find_meters`, with each remedy apart from its finding."""
    meters, refusals = find_rapl(sysfs, clock)
    if not meters and not refusals:
        refusals.append(_nothing_there(procfs, sysfs))
    return tuple(meters), tuple(refusals)


def _nothing_there(procfs: Path, sysfs: Path) -> Refusal:
    missing = f"rapl: {sysfs}/class/powercap has no energy counter"
    if in_virtual_machine(procfs, sysfs):
        kind = describe_virtualization(procfs, sysfs)
        return Refusal(f"{missing}: virtual machines hide it, and this is one ({kind})")
    if _is_x86(procfs):
        return Refusal(f"{missing}: the kernel's driver is not loaded", MODULE_REMEDY)
    return Refusal(f"{missing}: this processor has none")


def _is_x86(procfs: Path) -> bool:
    text = read_text(procfs / "cpuinfo") or ""
    return "GenuineIntel" in text or "AuthenticAMD" in text
