"""Waiting until the device is cool, by a thermometer and a clock that are made up."""

from __future__ import annotations

import pytest

from edgebench.devices.reading import Reading
from edgebench.harness.cooldown import Cooldown


class Device:
    """Cools by half a degree a second of sleep, never below its floor."""

    def __init__(self, celsius: float, floor: float = 40.0) -> None:
        self.celsius = celsius
        self.floor = floor
        self.now_s = 0.0
        self.reads = 0

    def temperature(self) -> Reading:
        self.reads += 1
        return Reading(self.celsius)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.celsius = max(self.floor, self.celsius - seconds / 2)

    def cooldown(self, within: float = 3.0, at_most_s: float = 300.0) -> Cooldown:
        return Cooldown(
            within, at_most_s, self.temperature, now=lambda: self.now_s, sleep=self.sleep
        )


def test_it_waits_until_the_first_temperature_is_near_again() -> None:
    """From 60 to 43 °C at half a degree a second: 34 s."""
    device = Device(40.0)
    cooldown = device.cooldown()
    device.celsius = 60.0
    waited = cooldown.wait(1000.0, first=False)
    assert waited.seconds == pytest.approx(34.0)
    assert (waited.celsius, waited.reference, waited.reached) == (43.0, 40.0, True)
    # About once a second, and not all the time.
    assert device.reads == pytest.approx(36, abs=1)


def test_a_cool_device_waits_for_nothing() -> None:
    """Two degrees above the first are within three."""
    device = Device(40.0)
    cooldown = device.cooldown()
    device.celsius = 42.0
    assert cooldown.wait(1000.0, first=False).seconds == 0.0


def test_it_gives_up_at_the_limit_and_says_so() -> None:
    """A room that became warmer would keep it waiting for ever."""
    device = Device(40.0, floor=50.0)
    cooldown = device.cooldown(at_most_s=20.5)
    device.celsius = 70.0
    waited = cooldown.wait(1000.0, first=False)
    assert waited.seconds == pytest.approx(20.5)
    assert waited.reached is False
    assert waited.celsius == pytest.approx(59.75)


def test_it_waits_no_longer_than_there_is_time() -> None:
    """Beyond the time budget nothing would be measured."""
    device = Device(40.0)
    cooldown = device.cooldown()
    device.celsius = 90.0
    assert cooldown.wait(5.0, first=False).seconds == pytest.approx(5.0)
    assert cooldown.wait(-1.0, first=False).seconds == 0.0


def test_without_a_sensor_there_is_the_fixed_pause() -> None:
    """But not before the first block, and with the reason."""
    slept: list[float] = []
    cooldown = Cooldown(
        3, 300, lambda: Reading.missing("no CPU temperature"), pause_s=7.0,
        now=lambda: sum(slept), sleep=slept.append,
    )  # fmt: skip
    assert cooldown.why_blind == "no CPU temperature"
    assert cooldown.wait(1000.0, first=True).seconds == 0.0
    waited = cooldown.wait(1000.0, first=False)
    assert waited.seconds == 7.0
    assert (waited.celsius, waited.reached, waited.why) == (None, None, "no CPU temperature")


def test_a_sensor_that_falls_silent_ends_the_wait() -> None:
    """It does not wait for what it can't see."""
    readings = iter([Reading(40.0), Reading(60.0), Reading.missing("gone")])
    cooldown = Cooldown(3, 300, lambda: next(readings), now=lambda: 0.0, sleep=lambda _: None)
    waited = cooldown.wait(1000.0, first=False)
    assert (waited.celsius, waited.reached, waited.why) == (None, None, "gone")
