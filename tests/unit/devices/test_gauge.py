"""Energy out of readings of power: the right area, and no area where nothing was read."""

from __future__ import annotations

import math
import random
import threading
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.gauge import GaugeMeter, NotMeasuringError, change_interval, prove
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

S = 1_000_000_000


class Hand:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def gauge(clock: Hand, *, averages: bool = False) -> GaugeMeter:
    return GaugeMeter(
        "hwmon:VDD_IN", clock, longest_gap_s=0.5, resolution_s=0.05, averages=averages
    )


def feed(meter: GaugeMeter, clock: Hand, seconds: float, watts: float) -> None:
    clock.now_ns = round(seconds * S)
    meter.add(clock.now_ns, watts)


def ramp(t: float) -> float:
    return 2.0 + 0.8 * t


def square(t: float) -> float:
    return 12.0 if t % 2.0 < 0.7 else 4.0


def spikes(t: float) -> float:
    """A bump of 30 W, a fifth of a second wide, on 5 W, every 1.5 s."""
    phase = t % 1.5 - 0.75
    return 5.0 + 30.0 * math.exp(-((phase / 0.1) ** 2))


# The areas by hand, over 60 s: 2 x 60 + 0.8 x 60^2 / 2; 30 periods of 0.7 x 12 + 1.3 x 4; and 40
# periods of 5 x 1.5 + 30 x 0.1 x sqrt(pi).
AREAS = (
    (ramp, 1560.0),
    (square, 408.0),
    (spikes, 300.0 + 120.0 * math.sqrt(math.pi)),
)


@pytest.mark.parametrize(("power", "joules"), AREAS, ids=("ramp", "square", "spikes"))
@pytest.mark.parametrize("seed", range(5))
def test_known_curve_has_its_energy(
    power: Callable[[float], float], joules: float, seed: int
) -> None:
    """Twenty readings a second at uneven times give the energy of a curve to half a percent."""
    chance, clock = random.Random(seed), Hand()
    meter = gauge(clock)
    feed(meter, clock, 0.0, power(0.0))
    start = meter.read_j()
    # Every reading up to 40 % of an interval early or late, the last one at the very end.
    for step in range(1, 1200):
        moment = 0.05 * (step + chance.uniform(-0.4, 0.4))
        feed(meter, clock, moment, power(moment))
    feed(meter, clock, 60.0, power(60.0))

    assert meter.read_j() - start == pytest.approx(joules, rel=0.005)


def test_counter_may_be_read_between_readings() -> None:
    """Between two readings the counter goes on with the power of the last one, and never back."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 1.0, 10.0)
    clock.now_ns = round(1.2 * S)
    assert meter.read_j() == pytest.approx(2.0)

    feed(meter, clock, 1.2, 0.0)  # the mean of 10 and 0 over 0.2 s is 1 J, and 2 J were told

    assert meter.read_j() == pytest.approx(2.0)
    feed(meter, clock, 1.6, 10.0)  # 1 J and 5 W x 0.4 s
    assert meter.read_j() == pytest.approx(3.0)


def test_means_over_an_interval_are_not_halved() -> None:
    """A source that tells the mean since its last reading is worth that mean times the time."""
    clock = Hand()
    meter = gauge(clock, averages=True)
    for seconds, watts in ((1.0, 50.0), (1.2, 10.0), (1.4, 20.0)):
        feed(meter, clock, seconds, watts)

    assert meter.read_j() == pytest.approx(0.2 * 10 + 0.2 * 20)


def test_hole_is_told_once_and_not_bridged() -> None:
    """After a silence the counter says that its energy is not known, then counts on."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 1.0, 10.0)
    before = meter.read_j()
    feed(meter, clock, 9.0, 10.0)

    with pytest.raises(OSError, match=r"^it said nothing for 8\.0 s, so the energy is not known$"):
        meter.read_j()
    after = meter.read_j()
    feed(meter, clock, 9.1, 10.0)
    assert after == before
    assert meter.read_j() - after == pytest.approx(1.0)


def test_no_hole_hides_between_two_reads() -> None:
    """While a source is silent for nearly too long, the counter can't be read: 20 reads a second
    see every hole, also one that ends between two of them."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 1.0, 10.0)
    clock.now_ns = round(1.45 * S)

    with pytest.raises(OSError, match=r"^it has said nothing for 0\.5 s$"):
        meter.read_j()


@pytest.mark.parametrize(
    ("watts", "why"),
    [
        (math.nan, "it says what is no number"),
        (math.inf, "it says what is no number"),
        (-3.0, "it says -3 W, and no machine draws less than nothing"),
        (65_535_000.0, r"it says 6\.5535e\+07 W, which can't be"),
    ],
)
def test_what_cannot_be_is_no_reading(watts: float, why: str) -> None:
    """No number, less than nothing and megawatts leave a hole with that reason."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 0.0, 10.0)
    for step in range(1, 12):
        feed(meter, clock, step / 20, watts)

    with pytest.raises(OSError, match=f"^{why}$"):
        meter.read_j()


def test_one_bad_reading_is_bridged() -> None:
    """A bus that fails once costs no window: the next reading follows soon enough."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 0.0, 10.0)
    meter.fail("Remote I/O error")
    feed(meter, clock, 0.1, 10.0)

    assert meter.read_j() == pytest.approx(1.0)


def test_time_that_goes_back_adds_nothing() -> None:
    """A reading that is not later than the last one is left out."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 1.0, 10.0)
    meter.add(round(0.5 * S), 1000.0)
    feed(meter, clock, 1.1, 10.0)

    assert meter.read_j() == pytest.approx(1.0)


def test_poller_vanishing_source_says_why() -> None:
    """A sensor that is gone makes the counter unreadable, with the system's reason, until it is
    back."""
    clock, broken = Hand(), [False]

    def read_w() -> float:
        if broken[0]:
            raise OSError(19, "No such device")
        return 6.0

    poller = Poller(clock, 0.05, wait=lambda _seconds: True)
    meter = poller.gauge("hwmon:VDD_IN", read_w, 0.01)
    assert meter.read_j() == 0.0
    broken[0] = True
    for _ in range(12):
        clock.now_ns += S // 20
        poller.read_once()
    with pytest.raises(OSError, match=r"^No such device$"):
        meter.read_j()

    broken[0] = False
    poller.read_once()

    with pytest.raises(OSError, match="so the energy is not known"):
        meter.read_j()
    start = meter.read_j()
    clock.now_ns += S // 20
    poller.read_once()
    assert meter.read_j() - start == pytest.approx(0.3)
    assert meter.resolution_s == 0.05  # never finer than the readings
    meter.close()
    meter.close()


def test_poller_source_that_does_not_measure_stops_at_once() -> None:
    """No second of a charged battery's readings is taken for the machine's."""
    clock, plugged = Hand(), [False]

    def read_w() -> float:
        if plugged[0]:
            raise NotMeasuringError(5, "the machine is on mains power now")
        return 6.0

    poller = Poller(clock, 0.05, wait=lambda _seconds: True)
    meter = poller.gauge("battery", read_w, 1.0)
    meter.read_j()
    plugged[0] = True
    poller.read_once()

    with pytest.raises(OSError, match=r"^the machine is on mains power now$"):
        meter.read_j()
    meter.close()


def test_poller_reads_by_itself_and_ends_with_its_last_meter() -> None:
    """The thread starts with the first question, and ends when no meter is open any more."""
    clock, rounds = Hand(), []

    def wait(_seconds: float) -> bool:
        rounds.append(clock.now_ns)
        clock.now_ns += S // 20
        return len(rounds) > 10

    poller = Poller(clock, 0.05, wait=wait)
    one = poller.gauge("hwmon:VDD_IN", lambda: 8.0, 0.05)
    two = poller.gauge("hwmon:VDD_SOC", lambda: 2.0, 0.05)
    assert rounds == []

    one.read_j()
    one.close()
    two.close()

    assert len(rounds) == 11
    assert one.read_j() == pytest.approx(8.0 * 0.55)  # ten rounds, and the time since the last
    assert two.read_j() == pytest.approx(2.0 * 0.55)


def test_one_bad_reading_is_waited_past_and_an_end_is_not() -> None:
    """After a nan the next reading is waited for; where the source ended, nothing is."""
    clock = Hand()
    meter = gauge(clock)
    feed(meter, clock, 1.0, 5.0)
    feed(meter, clock, 1.05, math.nan)
    next_one = threading.Timer(0.05, feed, (meter, clock, 1.1, 5.0))
    next_one.start()
    meter.wait_past(round(1.05 * S), 30.0)
    assert meter.points_from(0)[-1].t_ns == round(1.1 * S)
    next_one.join()

    meter.fail("it ended", measures=False)
    meter.wait_past(2 * S, 3600.0)  # returns at once


def test_how_often_a_source_changes() -> None:
    """A gauge with something new every 40 ms is found out, whatever the reads between."""
    clock = Hand()

    def tick() -> int:
        clock.now_ns += 1_000_000
        return clock.now_ns

    found = change_interval(lambda: clock.now_ns // 40_000_000, tick, limit_s=1.0)

    assert found == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("value", "finding"),
    [
        (5.0, "hwmon:VDD_IN: it said the same for 0.5 s, so it measures nothing"),
        (-1.0, "hwmon:VDD_IN: it says -1 W, and no machine draws less than nothing"),
    ],
)
def test_source_without_proof_is_refused(value: float, finding: str) -> None:
    """What stands still, and what says impossible things, is no meter."""
    times = iter(range(0, 10**12, 10**6))

    assert prove("hwmon:VDD_IN", lambda: value, times.__next__, limit_s=0.5) == Refusal(finding)
