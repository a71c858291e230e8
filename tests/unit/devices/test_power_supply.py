"""Batteries as meters: only while they discharge, and only what their gauges really say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded_meters import Living, recorded_sysfs

from edgebench.devices.power_supply import LeftMeter, find_power_supply, find_supplies

if TYPE_CHECKING:
    from edgebench.devices.power import PowerMeter
    from edgebench.devices.proof import Refusal

BAT0 = "class/power_supply/BAT0"


class Gauge(Living):
    """A battery's gauge: something new every 5 s."""

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        self.show(-(self.now_ns // 5_000_000_000))
        return self.now_ns


def find(tree, *moving: str) -> tuple[list[PowerMeter], list[Refusal], Gauge]:
    clock = Gauge(*(tree.sysfs / "class/power_supply" / name for name in moving))
    meters, refusals = find_power_supply(tree.sysfs, clock, rest=clock.rest)
    return meters, refusals, clock


@pytest.fixture(autouse=True)
def still_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges' thread makes its first round and no other: the clock is the test's."""
    monkeypatch.setattr("edgebench.devices.poller.Poller._run", lambda _self: None)


def watts(meter: PowerMeter, clock: Gauge) -> float:
    start, begin_ns = meter.read_j(), clock.now_ns
    clock.rest(2.0)
    found = (meter.read_j() - start) / ((clock.now_ns - begin_ns) / 1e9)
    meter.close()
    return found


def test_battery_that_tells_power_is_a_meter(tree) -> None:
    """Microwatts become watts, the mouse's battery is not the machine's, and the time between
    two values of the gauge is measured."""
    tree.sys(recorded_sysfs("legion_go"))

    (meter,), refusals, clock = find(tree, "BAT0/power_now")

    assert refusals == []
    assert (meter.name, meter.source) == ("battery", "observed")
    assert meter.resolution_s == pytest.approx(5.0, rel=0.05)
    assert watts(meter, clock) == pytest.approx(22.543, rel=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_sign_of_the_current_is_the_makers_matter(tree, sign: int) -> None:
    """11.712 V x 1.621 A, whether the driver counts discharging up or down."""
    files = recorded_sysfs("dell")
    files[f"{BAT0}/current_now"] = f"{sign * 1_621_000}\n"
    tree.sys(files)

    (meter,), _, clock = find(tree, "BAT0/voltage_now")

    assert watts(meter, clock) == pytest.approx(18.985, rel=1e-3)


def test_batteries_add_up_though_one_rests(tree) -> None:
    """Of two batteries one feeds the machine at a time, and the other draws nothing meanwhile."""
    files = recorded_sysfs("legion_go")
    files |= {
        path.replace("BAT0", "BAT1"): text for path, text in files.items() if "BAT0" in path
    } | {"class/power_supply/BAT1/status": "Not charging\n"}
    tree.sys(files)

    (meter,), _, clock = find(tree, "BAT0/power_now")

    assert watts(meter, clock) == pytest.approx(22.543, rel=1e-3)
    tree.sys({"class/power_supply/BAT1/status": "Discharging\n"})
    (meter,), _, clock = find(tree, "BAT0/power_now")
    assert watts(meter, clock) == pytest.approx(2 * 22.543, rel=1e-3)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("Charging", "is charged"),
        ("Full", "does not discharge"),
        ("Not charging", "does not discharge"),
        ("Unknown", "does not discharge"),
    ],
)
def test_on_mains_there_is_no_meter(tree, status: str, why: str) -> None:
    """A battery that does not discharge is refused at once, with the way to change that."""
    tree.sys(recorded_sysfs("legion_go") | {f"{BAT0}/status": f"{status}\n"})

    meters, refusals, clock = find(tree, "BAT0/power_now")

    assert meters == []
    assert [str(each) for each in refusals] == [
        f"battery: the machine's battery {why}; to change that: unplug the power supply"
    ]
    assert clock.now_ns == 0


def test_weak_adapter_is_mains_power_too(tree) -> None:
    """An adapter that is too weak lets the battery discharge, which then is a part only."""
    tree.sys(recorded_sysfs("legion_go") | {"class/power_supply/ACAD/online": "1\n"})

    meters, (refusal,), _ = find(tree, "BAT0/power_now")

    assert meters == []
    assert refusal.finding == "battery: the machine is on mains power (ACAD)"


def test_plugging_in_ends_the_measurement(tree) -> None:
    """From the moment of the plug nothing is counted, and the reason is told."""
    tree.sys(recorded_sysfs("legion_go"))
    (meter,), _, _ = find(tree, "BAT0/power_now")
    tree.sys({f"{BAT0}/status": "Charging\n"})

    with pytest.raises(OSError, match=r"^the machine's battery is charged$"):
        meter.read_j()
    meter.close()


def test_gauge_that_never_changes_is_refused(tree) -> None:
    """Half a minute of the same power is no measurement."""
    tree.sys(recorded_sysfs("legion_go"))

    meters, refusals, _ = find(tree)

    assert meters == []
    assert [str(each) for each in refusals] == [
        "battery: it said the same for 35 s, so it measures nothing"
    ]


def test_what_is_left_is_a_coarse_counter(tree) -> None:
    """Without a current, the falling charge counts: 5 mAh at 11.1 V are 199.8 J."""
    files = recorded_sysfs("dell")
    del files[f"{BAT0}/current_now"]
    tree.sys(files)

    (meter,), _, clock = find(tree, "BAT0/charge_now")

    start = meter.read_j()
    assert isinstance(meter, LeftMeter)
    assert meter.resolution_s == pytest.approx(5.0, rel=0.05)
    supplies = find_supplies(tree.sysfs, (("charge_now", "voltage_min_design"),))
    left_j = supplies.read_left_j()
    left_uah = int((tree.sysfs / BAT0 / "charge_now").read_text())
    meter.add(0, left_j)
    tree.sys({f"{BAT0}/charge_now": f"{left_uah - 5000}\n"})
    meter.add(1, supplies.read_left_j())
    assert meter.read_j() - start == pytest.approx(199.8)
    meter.add(2, left_j)  # a gauge that corrects itself upwards gives nothing back
    assert meter.read_j() - start == pytest.approx(199.8)
    tree.sys({f"{BAT0}/status": "Charging\n"})
    with pytest.raises(OSError, match="battery is charged"):
        supplies.read_left_j()
    meter.fail("the machine's battery is charged", measures=False)
    with pytest.raises(OSError, match="battery is charged"):
        meter.read_j()
    meter.close()
    meter.close()
    assert clock.now_ns > 0


def test_battery_that_tells_nothing_is_refused(tree) -> None:
    """Some tell a percentage only, which is no energy."""
    tree.sys({f"{BAT0}/type": "Battery\n", f"{BAT0}/status": "Discharging\n"})

    meters, refusals, _ = find(tree)

    assert meters == []
    assert [str(each) for each in refusals] == [
        "battery: it tells neither its power nor what is left in it"
    ]


def test_board_with_a_small_gauge(tree) -> None:
    """3.862 V x 0.523 A of a single-board computer's battery."""
    tree.sys(recorded_sysfs("axp20x"))

    (meter,), _, clock = find(tree, "axp20x-battery/voltage_now")

    assert watts(meter, clock) == pytest.approx(2.0198, rel=1e-3)


def test_machine_without_battery_has_nothing_to_say(tree) -> None:
    """No meter and no complaint, also where only a mouse has a battery."""
    files = recorded_sysfs("legion_go")
    tree.sys({path: text for path, text in files.items() if "BAT0" not in path})

    assert find(tree)[:2] == ([], [])
