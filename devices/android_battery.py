"""What a phone draws from its battery: its fuel gauge, or what ``dumpsys battery`` prints.

A phone on a cable is charged, so it measures nothing then: run over Wi-Fi (``adb tcpip``), or in
a terminal on the phone itself.

Voltage is in millivolts and temperature in tenths of a degree in ``dumpsys battery`` (Android's
``BatteryManager``). The unit of the current is not one: Android asks for microamperes and some
makers give milliamperes; and its sign is one way on some phones and the other on the rest. The
unit is decided once for a phone, by the largest of the currents that it tells while the meter
proves itself: see `unit_of`.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.devices.answer import answer_of
from edgebench.devices.gauge import NotMeasuringError, prove, reason_of
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.power import PowerMeter

NAME = "battery"
FOLDER = "/sys/class/power_supply/battery"
INTERVAL_S = 1.0
PROOF_S = 35.0
REST_S = 0.5
COMMAND_S = 10.0
MILLI = 1e3
MICRO = 1e6
MOST_PHONE_W = 30.0
"""Of a battery: no phone draws more."""
LEAST_PHONE_W = 0.02
"""A phone that answers a shell draws more."""
DISCHARGING, NOT_CHARGING = 3, 4
"""Of ``BatteryManager``: 2 is charging, 5 full."""
UNPLUG = "unplug the phone: run over Wi-Fi (adb tcpip 5555, adb connect ADDRESS)"
ON_CABLE = "the phone is on a cable now"


@dataclass(frozen=True, slots=True)
class BatteryState:
    """What ``dumpsys battery`` says; None for what it does not print.

    Attributes:
        powered_by: such as ``USB``; empty on the battery.
        status: of ``BatteryManager``.
        voltage_v: volts.
        celsius: the battery's temperature.
        current: as printed, in a unit and with a sign of the maker's choice.
        is_frozen: whether someone froze the values (``dumpsys battery set``).
    """

    powered_by: tuple[str, ...]
    status: int | None
    voltage_v: float | None
    celsius: float | None
    current: int | None
    is_frozen: bool


def parse_dumpsys(text: str) -> BatteryState | None:
    """What ``dumpsys battery`` printed, or None where that is something else."""
    _, start, rest = text.partition("Current Battery Service state:")
    if not start:
        return None
    values: dict[str, str] = {}
    for line in rest.splitlines():
        name, colon, value = line.partition(":")
        # Some makers print more below, under the same names: an old log, for one.
        if colon and line.startswith("  "):
            values.setdefault(name.strip().lower(), value.strip())
    voltage, tenths = _whole(values.get("voltage")), _whole(values.get("temperature"))
    return BatteryState(
        powered_by=tuple(
            kind
            for kind in ("AC", "USB", "Wireless", "Dock")
            if values.get(f"{kind.lower()} powered") == "true"
        ),
        status=_whole(values.get("status")),
        voltage_v=voltage / MILLI if voltage else None,
        celsius=tenths / 10 if tenths is not None else None,
        current=_whole(values.get("current now")),
        is_frozen="UPDATES STOPPED" in rest,
    )


def unit_of(largest: int, volts: float) -> float | None:
    """How many of a phone's units an ampere has: `MILLI` or `MICRO`; None where that is open.

    Args:
        largest: the largest current that it told while it was looked at, without its sign.
        volts: its battery's voltage.
    """
    for unit in (MILLI, MICRO):
        # The other one would be less than a phone needs to answer, or more than any draws.
        if LEAST_PHONE_W <= largest / unit * volts <= MOST_PHONE_W:
            return unit
    return None


def find_android(
    clock: Callable[[], int],
    run: Callable[[Sequence[str]], str] | None = None,
    *,
    rest: Callable[[float], object] = time.sleep,
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meter of a phone's battery, while it discharges.

    Waits until the gauge has said several things, which takes up to `PROOF_S`.

    Args:
        clock: nanoseconds.
        run: runs a command on the phone and gives its output; raises `OSError` where that is
            not possible. None means this machine, where it is a phone.
        rest: sleeps so many seconds.

    Returns:
        One meter at most, and a refusal where there is none. Both are empty where this machine
        is no phone.
    """
    if run is None:
        if not hasattr(sys, "getandroidapilevel"):
            return [], []
        run = _run_here
    found = _meter(run, clock, rest)
    return ([], [found]) if isinstance(found, Refusal) else ([found], [])


def _meter(
    run: Callable[[Sequence[str]], str],
    clock: Callable[[], int],
    rest: Callable[[float], object],
) -> PowerMeter | Refusal:
    try:
        state = _state(run)
    except OSError as error:
        return Refusal(f"{NAME}: it can't be read ({reason_of(error)})")
    refusal = _no_measuring(state)
    if refusal is not None:
        return refusal
    read = _gauge(run) or _dumped(run)
    largest, volts = 0, 0.0

    def seen() -> float:
        nonlocal largest, volts
        current, volts = read()
        largest = max(largest, abs(current))
        return float(abs(current))

    found = prove(
        NAME,
        seen,
        clock,
        limit_s=PROOF_S,
        rest=lambda: rest(REST_S),
        changes=2,
        is_power=False,
    )
    if isinstance(found, Refusal):
        return found
    per_ampere = unit_of(largest, volts)
    if per_ampere is None:
        return Refusal(f"{NAME}: whether its currents, up to {largest}, are mA or uA can't be told")

    def read_w() -> float:
        current, at_volts = read()
        watts = abs(current) / per_ampere * at_volts
        if watts > MOST_PHONE_W:
            msg = f"it says {watts:.6g} W, more than a phone draws"
            raise OSError(msg)
        return watts

    return Poller(clock, INTERVAL_S).gauge(NAME, read_w, found)


def _no_measuring(state: BatteryState) -> Refusal | None:
    if state.is_frozen:
        return Refusal(f"{NAME}: its values are frozen", "adb shell dumpsys battery reset")
    if state.powered_by:
        return Refusal(f"{NAME}: the phone is powered by {' and '.join(state.powered_by)}", UNPLUG)
    if state.status not in (None, DISCHARGING, NOT_CHARGING):
        return Refusal(f"{NAME}: the phone says that its battery is not discharging", UNPLUG)
    return None


def _gauge(run: Callable[[Sequence[str]], str]) -> Callable[[], tuple[int, float]] | None:
    """Current, as told, and volts, of the fuel gauge's files; None where they may not be read."""
    files = [f"{FOLDER}/{name}" for name in ("status", "current_now", "voltage_now")]

    def read() -> tuple[int, float]:
        status, current, voltage = _lines(run(["cat", *files]), 3)
        if status != "Discharging":
            raise NotMeasuringError(ON_CABLE)
        return _both(_whole(current), _volts(_whole(voltage)))

    try:
        read()
    except OSError:
        return None
    return read


def _dumped(run: Callable[[Sequence[str]], str]) -> Callable[[], tuple[int, float]]:
    """The same from what ``dumpsys`` prints; few phones print a current."""

    def read() -> tuple[int, float]:
        state = _state(run)
        if _no_measuring(state) is not None:
            raise NotMeasuringError(ON_CABLE)
        return _both(state.current, state.voltage_v)

    return read


def _state(run: Callable[[Sequence[str]], str]) -> BatteryState:
    state = parse_dumpsys(run(["dumpsys", "battery"]))
    if state is None:
        msg = "dumpsys battery printed something else"
        raise OSError(msg)
    return state


def _both(current: int | None, volts: float | None) -> tuple[int, float]:
    if current is None or volts is None:
        msg = "the phone does not tell its battery's current to this user"
        raise OSError(msg)
    return current, volts


def _volts(voltage: int | None) -> float | None:
    """Microvolts as the kernel has it, or the millivolts of some makers; as volts."""
    if voltage is None:
        return None
    return voltage / (MICRO if voltage > MICRO / 2 else MILLI)


def _lines(text: str, count: int) -> list[str]:
    lines = text.split()
    # Status may be two words ("Not charging"), and then it is no discharging either.
    return lines if len(lines) == count else [""] * count


def _whole(text: str | None) -> int | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return int(number) if math.isfinite(number) else None


def _run_here(command: Sequence[str]) -> str:
    done = answer_of(command, COMMAND_S)
    if done.returncode:
        msg = f"{command[0]} failed: {' '.join(done.stderr.split())}"
        raise OSError(msg)
    return done.stdout
