"""A phone's battery, through a shell that answers as phones do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_meters import recorded

from edgebench.devices.android_battery import find_android, parse_dumpsys, unit_of

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


@pytest.mark.parametrize(
    ("largest", "per_ampere"),
    [
        (427_943, 1e6),  # 1.7 W; 1.7 kW if it were mA
        (19_000, 1e6),  # 74 mW of an idle phone; 74 W if it were mA
        (812, 1e3),  # 3.2 W; 3 mW if it were uA
        (6_000, 1e3),  # 23 W; 23 mW of uA would be a phone that does nothing at all
        (0, None),
        (3, None),  # 12 mW at the most
        (40_000_000, None),  # 156 W at the least
    ],
)
def test_unit_of_a_phones_currents(largest: int, per_ampere: float | None) -> None:
    """Of a battery at 3.9 V: the one with which a phone draws between 20 mW and 30 W."""
    assert unit_of(largest, 3.9) == per_ampere


def test_the_unit_is_decided_once_for_a_phone() -> None:
    """One that idles in between goes on in microamperes: 19 mA are 75 mW, not 75 W."""
    phone = Phone(UNPLUGGED, "Discharging", "-812000", "3964000")
    (meter,), _ = phone.find()
    phone.gauge[1] = "-19000"

    assert watts(meter, phone) == pytest.approx(0.0753, rel=2e-3)


def test_an_idle_phone_is_read_in_microamperes() -> None:
    """Also where it idles all the time that it is looked at: 0.019 A x 3.964 V."""
    phone = Phone(UNPLUGGED, "Discharging", "-19000", "3964000")
    (meter,), _ = phone.find()

    assert watts(meter, phone) == pytest.approx(0.0753, rel=2e-3)


def test_a_unit_that_can_not_be_told_is_refused() -> None:
    """A current of next to nothing is no power in any unit."""
    meters, (refusal,) = Phone(UNPLUGGED, "Discharging", "1", "3964000").find()

    assert meters == []
    assert refusal.finding == ("battery: whether its currents, up to 2, are mA or uA can't be told")


def test_a_reading_that_no_phone_draws_is_none() -> None:
    """A gauge that jumps: 8 A x 3.964 V in the unit that was decided."""
    phone = Phone(UNPLUGGED, "Discharging", "-812000", "3964000")
    (meter,), _ = phone.find()
    phone.gauge[1] = "-8000000"

    with pytest.raises(OSError, match=r"it says 31\.7\d* W, more than a phone draws"):
        meter.read_j()
    meter.close()


def test_no_phone_no_word() -> None:
    """A computer that is no phone has nothing to say, and runs no command."""
    assert find_android(Phone("").clock) == ([], [])
