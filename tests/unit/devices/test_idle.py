"""Idle power, over a clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edgebench.devices.idle import idle_watts

S = 1_000_000_000


@dataclass
class Machine:
    """Time passes while it sleeps."""

    now_ns: int = 0
    slept_s: float = 0.0

    def clock(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * S)
        self.slept_s += seconds


@dataclass
class Meter:
    machine: Machine
    watts: float
    resolution_s: float | None = None
    fails: tuple[int, ...] = ()
    name: str = "bench:supply"
    source: str = "observed"
    reads: int = 0

    def read_j(self) -> float:
        self.reads += 1
        if self.reads in self.fails:
            raise OSError(19, "No such device")
        now_s = self.machine.now_ns / S
        step = self.resolution_s
        return self.watts * (int(now_s / step) * step if step else now_s)

    def close(self) -> None:
        """Nothing is open."""


def idle(machine: Machine, *meters: Meter, seconds: float = 1.0):
    return idle_watts(meters, seconds, clock=machine.clock, sleep=machine.sleep)


def test_each_meter_has_its_own_idle_power():
    """3 W and 8 W over a second, from the same time asleep."""
    machine = Machine()
    one, other = idle(machine, Meter(machine, 3.0), Meter(machine, 8.0, 0.001))

    assert (one.value, other.value) == (pytest.approx(3.0), pytest.approx(8.0, rel=0.01))
    assert machine.slept_s == pytest.approx(1.0)


def test_slow_meter_is_waited_for():
    """A counter that changes every 0.5 s gets the 6 s that it takes for ten changes."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 0.5))

    assert found.value == pytest.approx(3.0, rel=0.02)
    assert machine.slept_s == pytest.approx(6.0)


def test_too_slow_meter_has_none():
    """Where no wait would do, nobody waits; the reason says how long it takes."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 10.0))

    assert machine.slept_s == pytest.approx(1.0)
    assert found.reason == (
        "bench:supply changes every 10 s, so it takes 120 s; no block waits for longer than 15 s"
    )


def test_slow_meter_does_not_stop_the_wait_for_another():
    """One meter of 0.5 s, one of 10 s: the first is waited for, the second is not."""
    machine = Machine()
    one, other = idle(machine, Meter(machine, 3.0, 0.5), Meter(machine, 3.0, 10.0))

    assert machine.slept_s == pytest.approx(6.0)
    assert one.value == pytest.approx(3.0, rel=0.02)
    assert other.value is None


def test_meter_of_a_second_is_waited_for():
    """A line each second is what many plugs give: 12 s before a block, and idle power."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 1.0))

    assert found.value == pytest.approx(3.0, rel=0.02)
    assert machine.slept_s == pytest.approx(12.0)


def test_lost_meter_is_told():
    """A meter that goes meanwhile has the reason; what it says once of before is no fault."""
    machine = Machine()
    lost, fine = idle(machine, Meter(machine, 3.0, fails=(5,)), Meter(machine, 3.0, fails=(1,)))

    assert lost.reason == "bench:supply could not be read for a while: No such device"
    assert fine.value == pytest.approx(3.0)


def test_without_meters_nobody_waits():
    """No meter, no time."""
    machine = Machine()
    assert idle(machine) == ()
    assert machine.slept_s == 0.0
