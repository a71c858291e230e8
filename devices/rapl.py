"""Intel's and AMD's RAPL counters, as Linux shows them in ``/sys/class/powercap``.

The folder is called ``intel-rapl`` on AMD too. A zone ``intel-rapl:N`` is a package (a socket);
its sub-zones are parts of the package (``core``, ``uncore``, which is the graphics) or memory
beside it (``dram``). ``psys`` is the platform and contains the packages: how much of a board it
covers is up to its maker. ``intel-rapl-mmio:N`` is a second way to the same package's counter.

On AMD, ``core`` reads the register of one core of the package (MSR C001_029A is there once for
each core, and the kernel's driver reads it on one CPU of a package), so it is no meter of the
cores, and is left out.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.devices.counting import Counting
from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.gauge import change_interval
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MICROJOULES = 1_000_000
NUMBER_SIZE = 64  # bytes, more than any counter has digits
PROOF_S = 0.2
UPDATE_S = 0.001
"""Counters are updated about every millisecond (Intel's manual, volume 3, on RAPL)."""

PERMISSION_REMEDY = (
    """echo 'SUBSYSTEM=="powercap", ACTION=="add", KERNEL=="intel-rapl*", """
    """RUN+="/bin/chmod a+r /sys%p/energy_uj"' """
    """| sudo tee /etc/udev/rules.d/60-edgebench-rapl.rules """
    """&& sudo udevadm control --reload """
    """&& sudo udevadm trigger --action=add --subsystem-match=powercap"""
)
MODULE_REMEDY = "sudo modprobe intel_rapl_msr"


@dataclass(frozen=True, slots=True)
class Zone:
    """One energy counter of powercap.

    Attributes:
        name: what the kernel calls it, such as ``package-0`` or ``dram``.
        folder: its folder.
        range_uj: the counter goes from 0 to this and starts again.
    """

    name: str
    folder: Path
    range_uj: int

    def read_uj(self) -> int:
        """The counter in microjoules.

        Raises:
            OSError: it can't be read, or holds no number.
        """
        descriptor = self.open()
        try:
            return parse_uj(os.pread(descriptor, NUMBER_SIZE, 0))
        finally:
            os.close(descriptor)

    def open(self) -> int:
        """A descriptor of the counter. Raises `OSError` where it may not be read."""
        return os.open(self.folder / "energy_uj", os.O_RDONLY | os.O_CLOEXEC)


def parse_uj(text: bytes) -> int:
    """The counter's number. Raises `OSError` where it is none."""
    try:
        return int(text)
    except ValueError as error:
        raise OSError(errno.EIO, "not a number") from error


class RaplMeter:
    """The energy of all packages, or of all memory, since the meter was made.

    Counters start again at their range: after 65 kJ on some machines, which is ten minutes at
    100 W. The meter must be read at least once in that time, or a whole turn goes unseen. They also
    begin anew when the machine slept: such a step is no energy, and is told.

    Args:
        name: such as ``rapl:package``.
        zones: the counters to add up.
        resolution_s: how often they change.
        clock: nanoseconds.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(
        self,
        name: str,
        zones: Sequence[Zone],
        resolution_s: float = UPDATE_S,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.name = name
        self.zones = tuple(zones)
        self.resolution_s = resolution_s
        # Open for as long as the meter lives: it is read 20 times a second beside a measurement.
        self._descriptors: list[int] = []
        self._closing: list[Callable[[], object]] = []
        for zone in self.zones:
            self._descriptors.append(zone.open())
            self._closing.append(weakref.finalize(self, os.close, self._descriptors[-1]))
        self._counts = [
            Counting(
                f"the counter of {zone.name}",
                self._read_uj(index),
                MICROJOULES,
                clock,
                turns_at=zone.range_uj,
                resolution_s=resolution_s,
            )
            for index, zone in enumerate(self.zones)
        ]

    def read_j(self) -> float:
        """Joules since the meter was made; never less than before.

        Raises:
            OSError: a counter can't be read any more, or began anew since it was read last.
        """
        if not self._closing:
            raise OSError(errno.EBADF, "it was closed")
        for index, count in enumerate(self._counts):
            count.take(self._read_uj(index))
        return sum(count.total for count in self._counts) / MICROJOULES

    def close(self) -> None:
        """Close the counters' files."""
        for close in self._closing:
            close()
        self._closing.clear()

    def _read_uj(self, index: int) -> int:
        return parse_uj(os.pread(self._descriptors[index], NUMBER_SIZE, 0))


def find_rapl(
    sysfs: Path, clock: Callable[[], int], *, amd: bool = False
) -> tuple[list[RaplMeter], list[Refusal]]:
    """The RAPL meters that can be trusted, the packages' first, and what is wrong with the others.

    Args:
        sysfs: where sysfs is mounted.
        clock: nanoseconds, for the proof that counters move.
        amd: whether the processor is one of AMD's.

    Returns:
        Meters, and a refusal for each that is there but not usable. Both are empty where there
        is no RAPL at all.
    """
    found = [zone for folder in list_folder(sysfs / "class/powercap") if (zone := _zone(folder))]
    meters: list[RaplMeter] = []
    refusals: list[Refusal] = []
    packages = _without_duplicates([zone for zone in found if zone.name.startswith("package")])
    parts = [("rapl:package", packages)]
    for part in ("psys", "core", "uncore", "dram"):
        if not (amd and part == "core"):
            zones = [zone for zone in found if zone.name == part]
            parts.append((f"rapl:{part}", _of_one_interface(zones)))
    for name, zones in parts:
        if not zones:
            continue
        interval_s = _proven(name, zones, clock)
        if isinstance(interval_s, Refusal):
            refusals.append(interval_s)
        else:
            meters.append(RaplMeter(name, zones, interval_s, clock))
    return meters, refusals


def _zone(folder: Path) -> Zone | None:
    # "intel-rapl" alone is the control type that holds the zones.
    if not folder.name.startswith(("intel-rapl:", "intel-rapl-mmio:")):
        return None
    name, range_uj = read_text(folder / "name"), read_int(folder / "max_energy_range_uj")
    if not name or not range_uj or not (folder / "energy_uj").exists():
        return None
    return Zone(name, folder, range_uj)


def _without_duplicates(zones: list[Zone]) -> list[Zone]:
    """One zone a package: that of the MSR interface before that of MMIO."""
    by_name: dict[str, Zone] = {}
    for zone in sorted(zones, key=_is_mmio):
        by_name.setdefault(zone.name, zone)
    return list(by_name.values())


def _of_one_interface(zones: list[Zone]) -> list[Zone]:
    # Such zones of all packages have one name, so only the interface tells duplicates apart.
    return [zone for zone in zones if not _is_mmio(zone)] or zones


def _is_mmio(zone: Zone) -> bool:
    return zone.folder.name.startswith("intel-rapl-mmio:")


def _proven(name: str, zones: list[Zone], clock: Callable[[], int]) -> float | Refusal:
    """Seconds between changes of the slowest of them; or why they can't be trusted."""
    intervals = []
    for zone in zones:
        try:
            interval_s = change_interval(zone.read_uj, clock, limit_s=PROOF_S)
        except PermissionError:
            return Refusal(
                f"{name}: only root may read {zone.folder.name}/energy_uj", PERMISSION_REMEDY
            )
        except OSError as error:
            return Refusal(f"{name}: {zone.folder.name}/energy_uj can't be read ({error.strerror})")
        if interval_s is None:
            return Refusal(
                f"{name}: {zone.folder.name}/energy_uj never changes, so it measures nothing"
            )
        intervals.append(interval_s)
    return max(intervals)
