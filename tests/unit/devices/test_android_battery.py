"""A phone's battery, through a shell that answers as phones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_meters import recorded

from edgebench.devices.android_battery import amperes, find_android, parse_dumpsys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.devices.power import PowerMeter
    from edgebench.devices.proof import Refusal

FORBIDDEN = "cat: /sys/class/power_supply/battery/current_now: Permission denied"


class Phone:
    """Answers commands, and lets time pass: its gauge has something new every 2 s."""

    def __init__(self, dumpsys: str, *gauge: str) -> None:
        self.dumpsys = dumpsys
        self.gauge = list(gauge)
        self.now_ns = 0

    def clock(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def rest(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def run(self, command: Sequence[str]) -> str:
        newer = self.now_ns // 2_000_000_000 % 2
        if list(command) == ["dumpsys", "battery"]:
            return self.dumpsys.replace("current now: -427943", f"current now: -{427943 + newer}")
        assert command[0] == "cat"
        if not self.gauge:
            raise OSError(FORBIDDEN)
        status, current, voltage = self.gauge
        return f"{status}\n{int(current) + newer}\n{voltage}\n"

    def find(self) -> tuple[list[PowerMeter], list[Refusal]]:
        return find_android(self.clock, self.run, rest=self.rest)


@pytest.fixture(autouse=True)
def still_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauge's thread makes its first round and no other: the clock is the test's."""
    monkeypatch.setattr("edgebench.devices.poller.Poller._run", lambda _self: None)


def watts(meter: PowerMeter, phone: Phone) -> float:
    start, begin_ns = meter.read_j(), phone.now_ns
    phone.rest(2.0)
    found = (meter.read_j() - start) / ((phone.now_ns - begin_ns) / 1e9)
    meter.close()
    return found


UNPLUGGED = recorded("dumpsys-battery.txt")
ON_USB = recorded("dumpsys-battery-current.txt")


@pytest.mark.parametrize(
    ("current", "voltage"),
    [("-812000", "3964000"), ("812000", "3964000"), ("-812", "3964"), ("812", "3964000")],
    ids=("microamperes", "the other sign", "milliamperes and millivolts", "milliamperes"),
)
def test_fuel_gauge_in_every_unit(current: str, voltage: str) -> None:
    """0.812 A x 3.964 V, whatever the maker's units and sign."""
    phone = Phone(UNPLUGGED, "Discharging", current, voltage)

    (meter,), refusals = phone.find()

    assert refusals == []
    assert (meter.name, meter.source) == ("battery", "observed")
    assert meter.resolution_s == pytest.approx(2.0, rel=0.05)
    assert watts(meter, phone) == pytest.approx(3.2188, rel=2e-3)


def test_dumpsys_serves_where_the_gauge_is_forbidden() -> None:
    """0.427943 A x 3.848 V, as printed."""
    phone = Phone(ON_USB.replace("USB powered: true", "USB powered: false").replace(": 2", ": 3"))

    (meter,), _ = phone.find()

    assert watts(meter, phone) == pytest.approx(1.6467, rel=1e-3)


def test_phone_that_tells_no_current_is_refused() -> None:
    """Voltage alone is no power."""
    meters, refusals = Phone(UNPLUGGED).find()

    assert meters == []
    assert [str(each) for each in refusals] == [
        "battery: it can't be read (the phone does not tell its battery's current to this user)"
    ]


def test_phone_on_a_cable_is_refused() -> None:
    """On USB the battery is charged; the way out is Wi-Fi."""
    (refusal,) = Phone(ON_USB, "Charging", "1", "1").find()[1]

    assert refusal.finding == "battery: the phone is powered by USB"
    assert refusal.remedy is not None
    assert "adb tcpip" in refusal.remedy


def test_frozen_values_are_refused() -> None:
    """Someone pretended to unplug the phone (dumpsys battery unplug): nothing there is true."""
    text = UNPLUGGED.replace("state:\n", "state:\n  (UPDATES STOPPED -- use 'reset' to restart)\n")

    (refusal,) = Phone(text, "Discharging", "-812000", "3964000").find()[1]

    assert refusal.finding == "battery: its values are frozen"
    assert refusal.remedy == "adb shell dumpsys battery reset"


def test_cable_in_the_middle_ends_the_measurement() -> None:
    """A phone that is plugged in measures nothing from then on."""
    phone = Phone(UNPLUGGED, "Discharging", "-812000", "3964000")
    (meter,), _ = phone.find()
    phone.gauge[0] = "Not charging"

    with pytest.raises(OSError, match="the phone is on a cable now"):
        meter.read_j()
    meter.close()


def test_phone_that_does_not_answer_is_refused() -> None:
    """What adb says is told."""

    def run(_command: Sequence[str]) -> str:
        msg = "error: device offline"
        raise OSError(msg)

    (refusal,) = find_android(Phone("").clock, run)[1]

    assert str(refusal) == "battery: it can't be read (error: device offline)"


def test_something_else_than_a_battery_is_refused() -> None:
    """A shell without dumpsys is told apart from a battery without a current."""
    (refusal,) = Phone("Can't find service: battery\n").find()[1]

    assert str(refusal) == "battery: it can't be read (dumpsys battery printed something else)"


def test_dump_is_parsed() -> None:
    """Tenths of degrees, millivolts, the sources of power; a maker's log below changes nothing."""
    log = "[EventLogBuffer]\n  voltage: 4120\n  status: 2\n"

    state = parse_dumpsys(UNPLUGGED + log)

    assert state is not None
    assert (state.celsius, state.voltage_v, state.status) == (33.7, 3.964, 3)
    assert (state.powered_by, state.current, state.is_frozen) == ((), None, False)
    on_usb = parse_dumpsys(ON_USB)
    assert on_usb is not None
    assert (on_usb.powered_by, on_usb.current) == (("USB",), -427943)
    assert parse_dumpsys("") is None


def test_units_of_currents() -> None:
    """20 mA to 20 A in microamperes, up to 20 A in milliamperes."""
    assert [amperes(each) for each in (-427943, 300, 20_000, 20_001)] == pytest.approx(
        [0.427943, 0.3, 20.0, 0.020001]
    )


def test_no_phone_no_word() -> None:
    """A computer that is no phone has nothing to say, and runs no command."""
    assert find_android(Phone("").clock) == ([], [])
