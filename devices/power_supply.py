"""What laptops and phones draw from their batteries.

On mains a battery says nothing about the machine: it is charged, or rests. So a battery measures
only while it discharges. Gauges in batteries are slow: a new value every 1 to 30 seconds, which
is waited for before the meter is trusted.

Files and units: the kernel's ``Documentation/ABI/testing/sysfs-class-power`` (microvolts,
microamperes, microwatts, microwatt-hours, microampere-hours). The sign of ``current_now`` differs
between drivers, so only its size is used, and the direction is ``status``'s.
"""

from __future__ import annotations

import errno
import math
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.devices.files import list_folder, read_text
from edgebench.devices.gauge import NotMeasuringError, prove
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.devices.power import PowerMeter

NAME = "battery"
INTERVAL_S = 1.0
PROOF_S = 35.0
"""The slowest gauges have something new every half minute."""
REST_S = 0.1
MICRO = 1e6
SECONDS_AN_HOUR = 3600.0
UNPLUG = "unplug the power supply"
_POWER_FILES = (("power_now",), ("current_now", "voltage_now"))
# The charge falls in steps while the voltage goes up and down with the load: the design's voltage
# keeps one step one step.
_LEFT_FILES = (
    ("energy_now",),
    ("charge_now", "voltage_min_design"),
    ("charge_now", "voltage_now"),
    ("charge_counter", "voltage_now"),
)


@dataclass(frozen=True, slots=True)
class Battery:
    """One battery of ``/sys/class/power_supply``.

    Attributes:
        folder: its folder.
        files: what it tells: its power; or its current and voltage; or what is left in it, as
            energy, or as charge.
    """

    folder: Path
    files: tuple[str, ...]

    @property
    def tells_power(self) -> bool:
        """Whether it tells power; only what is left in it where not."""
        return self.files in _POWER_FILES

    def status(self) -> str:
        """What the kernel says it does, such as ``Discharging``; empty where unknown."""
        return read_text(self.folder / "status") or ""

    def read_w(self) -> float:
        """Watts that are drawn from it now; 0 where another battery has its turn.

        Raises:
            OSError: it can't be read.
        """
        if self.status() != "Discharging":
            return 0.0
        return math.prod(abs(_read(self.folder / name)) / MICRO for name in self.files)

    def read_left_j(self) -> float:
        """Joules that are left in it. Raises `OSError` where it can't be read."""
        # Charge is in ampere-hours, and its second file a voltage.
        return math.prod(_read(self.folder / name) / MICRO for name in self.files) * SECONDS_AN_HOUR


@dataclass(frozen=True, slots=True)
class Supplies:
    """What feeds the machine.

    Attributes:
        batteries: they add up.
        mains: folders of adapters and of sockets that may feed the machine.
    """

    batteries: tuple[Battery, ...]
    mains: tuple[Path, ...]

    def elsewhere(self) -> str | None:
        """Why the batteries do not tell what the machine draws now; None where they do."""
        for folder in self.mains:
            if read_text(folder / "online") == "1":
                return f"the machine is on mains power ({folder.name})"
        states = [each.status() for each in self.batteries]
        if "Charging" in states:
            return "the machine's battery is charged"
        return None if "Discharging" in states else "the machine's battery does not discharge"

    def read_w(self) -> float:
        """Watts that are drawn now. Raises `NotMeasuringError` where others feed the machine."""
        self._check()
        return math.fsum(each.read_w() for each in self.batteries)

    def read_left_j(self) -> float:
        """Joules left in all. Raises `NotMeasuringError` where others feed the machine."""
        self._check()
        return math.fsum(each.read_left_j() for each in self.batteries)

    def _check(self) -> None:
        why = self.elsewhere()
        if why is not None:
            raise NotMeasuringError(errno.EIO, why)


class LeftMeter:
    """A counter from what is left in batteries that don't tell their power; coarse.

    Args:
        resolution_s: how often what is left changes.
        poller: feeds it.
    """

    name = NAME
    source: Literal["observed", "estimated"] = "observed"

    def __init__(self, resolution_s: float, poller: Poller) -> None:
        self.resolution_s = resolution_s
        self._poller: Poller | None = poller
        self._lock = threading.Lock()  # guards all below
        self._last_j: float | None = None
        self._used_j = 0.0
        self._failure: str | None = None
        self._is_interrupted = False

    def add(self, t_ns: int, value: float) -> None:
        """Take what is left, in joules."""
        del t_ns
        with self._lock:
            # What was fed from elsewhere meanwhile is no use of the battery's.
            if self._last_j is not None and not self._is_interrupted:
                # A gauge that corrects itself upwards takes back no energy.
                value = min(value, self._last_j)
                self._used_j += self._last_j - value
            self._last_j, self._failure, self._is_interrupted = value, None, False

    def fail(self, reason: str, *, measures: bool = True) -> None:
        """Take the reason why it is not known what is left."""
        with self._lock:
            self._failure = reason
            self._is_interrupted = self._is_interrupted or not measures

    def read_j(self) -> float:
        """Joules drawn since the first reading; never less than before.

        Raises:
            OSError: a battery can't be read, or others feed the machine.
        """
        if self._poller is not None:
            self._poller.start()
        with self._lock:
            if self._failure is not None:
                raise OSError(self._failure)
            return self._used_j

    def close(self) -> None:
        """End the reading."""
        if self._poller is not None:
            poller, self._poller = self._poller, None
            poller.close_one()


def find_power_supply(
    sysfs: Path,
    clock: Callable[[], int],
    *,
    rest: Callable[[float], object] = time.sleep,
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meter of all batteries together, where the machine runs on them.

    Waits until the gauges have said several things, which takes up to `PROOF_S`.

    Args:
        sysfs: where sysfs is mounted.
        clock: nanoseconds.
        rest: sleeps so many seconds.

    Returns:
        One meter at most, and a refusal where there is a battery but no measuring with it. Both
        are empty where the machine has no battery.
    """
    # Android's files differ in their units, and are android_battery's to read.
    if hasattr(sys, "getandroidapilevel"):
        return [], []
    supplies = find_supplies(sysfs)
    if not supplies.batteries:
        return [], []
    elsewhere = supplies.elsewhere()
    if elsewhere is not None:
        return [], [Refusal(f"{NAME}: {elsewhere}", UNPLUG)]
    if all(each.tells_power for each in supplies.batteries):
        found = _power_meter(supplies, clock, rest)
    else:
        found = _left_meter(find_supplies(sysfs, _LEFT_FILES), clock, rest)
    return ([], [found]) if isinstance(found, Refusal) else ([found], [])


def _power_meter(
    supplies: Supplies, clock: Callable[[], int], rest: Callable[[float], object]
) -> PowerMeter | Refusal:
    found = _prove(supplies.read_w, supplies, clock, rest, is_power=True)
    if isinstance(found, Refusal):
        return found
    return Poller(clock, INTERVAL_S).gauge(NAME, supplies.read_w, found)


def _left_meter(
    supplies: Supplies, clock: Callable[[], int], rest: Callable[[float], object]
) -> PowerMeter | Refusal:
    if not all(each.files for each in supplies.batteries):
        return Refusal(f"{NAME}: it tells neither its power nor what is left in it")
    found = _prove(supplies.read_left_j, supplies, clock, rest, is_power=False)
    if isinstance(found, Refusal):
        return found
    poller = Poller(clock, INTERVAL_S)
    meter = LeftMeter(found, poller)
    poller.feed(meter, supplies.read_left_j)
    return meter


def _prove(
    read: Callable[[], float],
    supplies: Supplies,
    clock: Callable[[], int],
    rest: Callable[[float], object],
    *,
    is_power: bool,
) -> float | Refusal:
    return prove(
        NAME,
        read,
        clock,
        limit_s=PROOF_S,
        rest=lambda: rest(REST_S),
        changes=2,
        is_power=is_power,
        allow="sudo chmod a+r "
        + " ".join(str(each.folder / name) for each in supplies.batteries for name in each.files),
    )


def find_supplies(
    sysfs: Path, ways: Sequence[tuple[str, ...]] = (*_POWER_FILES, *_LEFT_FILES)
) -> Supplies:
    """What feeds the machine: not the batteries of mice, keyboards and pens.

    Args:
        sysfs: where sysfs is mounted.
        ways: the files of batteries to look for, the best first.
    """
    batteries, mains = [], []
    for folder in list_folder(sysfs / "class/power_supply"):
        kind = read_text(folder / "type")
        if read_text(folder / "scope") == "Device" or read_text(folder / "present") == "0":
            continue
        if kind == "Battery":
            files = next((names for names in ways if _has(folder, names)), ())
            batteries.append(Battery(folder, files))
        elif kind in ("Mains", "USB", "Wireless"):
            mains.append(folder)
    return Supplies(tuple(batteries), tuple(mains))


def _has(folder: Path, names: Sequence[str]) -> bool:
    """Whether all these files say something, or would if this user might read them."""
    for name in names:
        try:
            _read(folder / name)
        except PermissionError:
            continue
        except OSError:
            return False
    return True


def _read(path: Path) -> int:
    text = path.read_bytes().strip()
    try:
        return int(text)
    except ValueError as error:
        raise OSError(errno.EIO, "not a number") from error
