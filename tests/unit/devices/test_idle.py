"""Idle power, over a clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edgebench.devices.gauge import GaugeMeter
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
    """A counter that changes every 0.5 s gets the 6.5 s that it takes for ten changes."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 0.5))

    assert found.value == pytest.approx(3.0, rel=0.02)
    assert machine.slept_s == pytest.approx(6.5)


def test_too_slow_meter_has_none():
    """Where no wait would do, nobody waits; the reason says how long it takes."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 10.0))

    assert machine.slept_s == pytest.approx(1.0)
    assert found.reason == (
        "bench:supply changes every 10 s, so it takes 130 s; no block waits for longer than 15 s"
    )


def test_slow_meter_does_not_stop_the_wait_for_another():
    """One meter of 0.5 s, one of 10 s: the first is waited for, the second is not."""
    machine = Machine()
    one, other = idle(machine, Meter(machine, 3.0, 0.5), Meter(machine, 3.0, 10.0))

    assert machine.slept_s == pytest.approx(6.5)
    assert one.value == pytest.approx(3.0, rel=0.02)
    assert other.value is None


def test_meter_of_a_second_is_waited_for():
    """A line each second is what many plugs give: 13 s before a block, and idle power."""
    machine = Machine()
    (found,) = idle(machine, Meter(machine, 3.0, 1.0))

    assert found.value == pytest.approx(3.0, rel=0.02)
    assert machine.slept_s == pytest.approx(13.0)


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


@pytest.mark.parametrize("resolution_s", [None, 0.001, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("begin_ms", [0, 7, 33, 50, 81])
def test_steady_power_is_told_as_it_is(resolution_s: float | None, begin_ms: int) -> None:
    """12.5 W are 12.5 W at every pace and from every moment on: nothing is drawn out at the ends.

    A change is seen up to 0.05 s late, at both ends: less than that of the time between.
    """
    machine = Machine(now_ns=begin_ms * S // 1000)
    (found,) = idle(machine, Meter(machine, 12.5, resolution_s), seconds=3.0)

    assert found.value == pytest.approx(12.5, rel=0.02)


def test_what_was_before_the_idle_time_is_not_in_it() -> None:
    """A meter with points of its own tells the last one of before too, after 80 W of work."""
    machine = Machine(now_ns=10 * S)
    gauge = GaugeMeter("hwmon:VDD_IN", machine.clock, longest_gap_s=1.0, resolution_s=0.1)
    gauge.add(round(9.95 * S), 80.0)

    def sleep(seconds: float) -> None:
        machine.sleep(seconds)
        gauge.add(machine.now_ns, 4.0)

    (found,) = idle_watts([gauge], 2.0, clock=machine.clock, sleep=sleep)
    assert found.value == pytest.approx(4.0)
