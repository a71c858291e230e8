"""Intel's and AMD's RAPL counters, as Linux shows them in ``/sys/class/powercap``.

The folder is called ``intel-rapl`` on AMD too. A zone ``intel-rapl:N`` is a package (a socket);
its sub-zones are parts of the package (``core``, ``uncore``) or, on servers, memory beside it
(``dram``). ``psys`` is the whole board and contains the packages. ``intel-rapl-mmio:N`` is a
second way to the same package's counter.
"""

from __future__ import annotations

import errno
import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.devices.files import list_folder, read_int, read_text
from edgebench.devices.proof import Refusal, counter_moves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MICROJOULES = 1_000_000
NUMBER_SIZE = 64  # bytes, more than any counter has digits

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
    100 W. The meter must be read at least once in that time, or a whole turn goes unseen.

    Args:
        name: such as ``rapl:package``.
        zones: the counters to add up.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(self, name: str, zones: Sequence[Zone]) -> None:
        self.name = name
        self.zones = tuple(zones)
        # Open for as long as the meter lives: it is read 20 times a second beside a measurement.
        self._descriptors: list[int] = []
        for zone in self.zones:
            self._descriptors.append(zone.open())
            weakref.finalize(self, os.close, self._descriptors[-1])
        self._last_uj = [self._read_uj(index) for index in range(len(self.zones))]
        self._total_uj = 0

    def read_j(self) -> float:
        """Joules since the meter was made; never less than before.

        Raises:
            OSError: a counter can't be read any more.
        """
        for index, zone in enumerate(self.zones):
            now_uj = self._read_uj(index)
            step_uj = now_uj - self._last_uj[index]
            self._total_uj += step_uj if step_uj >= 0 else step_uj + zone.range_uj
            self._last_uj[index] = now_uj
        return self._total_uj / MICROJOULES

    def _read_uj(self, index: int) -> int:
        return parse_uj(os.pread(self._descriptors[index], NUMBER_SIZE, 0))


def find_rapl(sysfs: Path, clock: Callable[[], int]) -> tuple[list[RaplMeter], list[Refusal]]:
    """The RAPL meters that can be trusted, the packages' first, and what is wrong with the others.

    Args:
        sysfs: where sysfs is mounted.
        clock: nanoseconds, for the proof that counters move.

    Returns:
        Meters, and a refusal for each that is there but not usable. Both are empty where there
        is no RAPL at all.
    """
    found = [zone for folder in list_folder(sysfs / "class/powercap") if (zone := _zone(folder))]
    meters: list[RaplMeter] = []
    refusals: list[Refusal] = []
    packages = _without_duplicates([zone for zone in found if zone.name.startswith("package")])
    memories = _memory_of_packages([zone for zone in found if zone.name == "dram"])
    for name, zones in (("rapl:package", packages), ("rapl:dram", memories)):
        if not zones:
            continue
        refusal = _refusal(name, zones, clock)
        if refusal is None:
            meters.append(RaplMeter(name, zones))
        else:
            refusals.append(refusal)
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


def _memory_of_packages(zones: list[Zone]) -> list[Zone]:
    # Memory zones of all packages have one name, so only the interface tells duplicates apart.
    return [zone for zone in zones if not _is_mmio(zone)] or zones


def _is_mmio(zone: Zone) -> bool:
    return zone.folder.name.startswith("intel-rapl-mmio:")


def _refusal(name: str, zones: list[Zone], clock: Callable[[], int]) -> Refusal | None:
    for zone in zones:
        try:
            moves = counter_moves(zone.read_uj, clock)
        except PermissionError:
            return Refusal(
                f"{name}: only root may read {zone.folder.name}/energy_uj", PERMISSION_REMEDY
            )
        except OSError as error:
            return Refusal(f"{name}: {zone.folder.name}/energy_uj can't be read ({error.strerror})")
        if not moves:
            return Refusal(
                f"{name}: {zone.folder.name}/energy_uj never changes, so it measures nothing"
            )
    return None
