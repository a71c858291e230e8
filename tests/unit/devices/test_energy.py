"""Energy between two moments, against integrals worked out by hand."""

from __future__ import annotations

import bisect
import math
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.collector import Collector
from edgebench.devices.counter_log import CounterLog
from edgebench.devices.energy import energy_between
from edgebench.devices.gauge import GaugeMeter
from edgebench.devices.rapl import RaplMeter, Zone
from edgebench.devices.window import EnergyPoint, EnergyTrace, Gap
from edgebench.harness.metrics.system import energy_metrics
from edgebench.runners.base import Generation

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
S = 1_000_000_000


def trace(joules_at, *, every_ms: int = 50, until_ms: int = 10_000, **more: object) -> EnergyTrace:
    readings = tuple(EnergyPoint(t * MS, joules_at(t / 1000)) for t in range(0, until_ms, every_ms))
    return EnergyTrace("bench:supply", more.pop("source", "observed"), readings, **more)


def stair(power_w: float, step_s: float, *, phase_s: float = 0.0):
    """A counter that is right every `step_s` and stands in between."""
    return lambda t: power_w * (math.floor((t - phase_s) / step_s) * step_s + phase_s)


def test_counter_that_changes_seldom_is_read_at_its_steps() -> None:
    """At a constant 7 W, a counter of 0.3 s tells 35 J in 5 s, wherever the window begins."""
    seen = trace(stair(7.0, 0.3, phase_s=0.11), resolution_s=0.3)
    for start_ms in (1000, 1130, 1270):
        found = energy_between(seen, start_ms * MS, (start_ms + 5000) * MS)
        # Steps are seen up to one reading late, at both ends: 0.05 s of 5 s.
        assert found.value == pytest.approx(35.0, rel=0.01)


def test_counter_of_a_battery_needs_a_long_window() -> None:
    """With a change every 10 s, 30 s tell nothing, and the reason says how long it takes."""
    seen = trace(stair(7.0, 10.0), resolution_s=10.0, until_ms=200_000)
    short = energy_between(seen, 20 * S, 50 * S)
    assert short.value is None
    assert short.reason == (
        "the window is too short for bench:supply, which changes every 10 s: it takes 100 s"
    )
    assert energy_between(seen, 20 * S, 150 * S).value == pytest.approx(910.0, rel=0.01)


@pytest.mark.parametrize(
    ("joules_at", "reason"),
    [
        (lambda _t: 5.0, "stood still in the window, so it measured nothing"),
        (lambda t: 9 * min(t, 2.0), "stood still in the window, so it measured nothing"),
        (lambda t: 9 * t if t < 3 else 9 * t - 20, "went back, so it does not count energy"),
    ],
    ids=["frozen", "freezes meanwhile", "goes back"],
)
def test_counter_that_does_not_count_has_no_energy(joules_at, reason) -> None:
    """An energy of zero, or of half the window, is never made of a frozen counter."""
    found = energy_between(trace(joules_at, resolution_s=0.001), S, 8 * S)
    assert (found.value, found.reason) == (None, f"bench:supply {reason}")


def test_estimate_of_an_idle_machine_is_zero() -> None:
    """Where no CPU was busy, an estimate is 0 J: nothing is frozen."""
    found = energy_between(trace(lambda _t: 5.0, source="estimated", resolution_s=0.01), S, 8 * S)
    assert found.value == 0.0


def test_reason_of_a_lost_meter_is_kept() -> None:
    """What the collector said of a meter that vanished stands at its energy."""
    lost = trace(lambda t: 9 * t, reason="bench:supply can't be read any more: unplugged")
    assert energy_between(lost, S, 11 * S).reason == lost.reason
    assert energy_between(lost, S, 2 * S).value == pytest.approx(9.0)  # before it was lost


def test_only_what_touches_a_gap_is_lost() -> None:
    """9 W with a hole from 4 s to 6 s: 2 s before and 2 s after it are 18 J, across is nothing.

    Before and after are told apart, though the counter began anew from nothing.
    """
    points = trace(lambda t: 9 * t).points
    kept = tuple(
        each if each.t_ns <= 4 * S else replace(each, joules=each.joules - 54)
        for each in points
        if not 4 * S < each.t_ns < 6 * S
    )
    holed = EnergyTrace(
        "bench:supply", "observed", kept, gaps=(Gap(4 * S, 6 * S, "it was unplugged"),)
    )

    assert energy_between(holed, S, 3 * S).value == pytest.approx(18)
    assert energy_between(holed, 2 * S, 4 * S).value == pytest.approx(18)
    assert energy_between(holed, 6 * S, 8 * S).value == pytest.approx(18)
    for start, end in ((3, 5), (5, 8), (1, 9)):
        assert energy_between(holed, start * S, end * S).reason == "it was unplugged"


# Through the collector --------------------------------------------------------------------------

CURVE = ((0.0, 2.0), (1.0, 2.0), (1.2, 14.0), (3.0, 11.0), (3.001, 25.0), (4.5, 9.0), (9.0, 9.0))
"""Watts at a moment, straight lines between: idle, a rise, a slow fall, a spike, a plateau."""


def joules(t: float) -> float:
    """The curve's integral from 0, a trapezoid for each stretch."""
    total = 0.0
    for (t0, w0), (t1, w1) in pairwise(CURVE):
        end = min(t, t1)
        if end <= t0:
            break
        total += (end - t0) * (w0 + (w0 + (w1 - w0) * (end - t0) / (t1 - t0))) / 2
    return total


@dataclass
class Clock:
    """A clock that a test moves; each look at it takes a microsecond."""

    now_ns: int = 0

    def __call__(self) -> int:
        self.now_ns += 1000
        return self.now_ns


@dataclass
class CurveMeter:
    """A perfect counter of the curve, which changes every so many seconds."""

    clock: Clock
    resolution_s: float | None
    name: str = "bench:curve"
    source: str = "observed"

    def read_j(self) -> float:
        now = self.clock.now_ns / S
        step = self.resolution_s
        return joules(math.floor(now / step) * step if step else now)

    def close(self) -> None:
        """Nothing is open."""


def watched(meters, clock: Clock, until_s: float, seed: int, tmp_path: Path):
    """A window with readings at irregular times: 50 ms apart, and up to 30 ms late."""
    late = random.Random(seed)
    collector = Collector(
        1, meters=meters, no_meter_reason="", procfs=tmp_path, sysfs=tmp_path, clock=clock
    )
    collector.begin()
    while clock.now_ns < until_s * S:
        clock.now_ns += round((0.05 + late.uniform(0, 0.03)) * S)
        collector.tick(slow=False)
    window = collector.end()
    collector.close()
    return window


@pytest.mark.parametrize(("resolution_s", "within"), [(None, 0.005), (0.001, 0.005), (0.02, 0.02)])
@pytest.mark.parametrize("seed", range(4))
def test_energy_of_a_known_curve(
    tmp_path: Path, resolution_s: float | None, within: float, seed: int
) -> None:
    """Prefill, decode and a token's energy are those of the curve to half a percent.

    A counter that is up to 20 ms old where the power rises from 2 W to 13 W can't tell the prefill
    better than by 0.02 s x 11 W of 10 J.
    """
    clock = Clock()
    window = watched([CurveMeter(clock, resolution_s)], clock, 8.5, seed, tmp_path)
    tokens = [1.73 + 0.061 * n for n in range(100)]
    made = Generation(
        token_ids=[1] * 100,
        submitted_ns=round(0.31 * S),
        token_ns=[round(t * S) for t in tokens],
        prompt_tokens=4,
        finish_reason="length",
    )
    found = {key: each.value for key, each in energy_metrics(window, made).items()}
    prefill, decode = joules(1.73) - joules(0.31), joules(tokens[-1]) - joules(1.73)
    assert found["prefill_energy_j"] == pytest.approx(prefill, rel=within)
    assert found["decode_energy_j"] == pytest.approx(decode, rel=within)
    assert found["energy_per_token_j"] == pytest.approx(decode / 99, rel=within)
    assert found["mean_power_w"] == pytest.approx(decode / (0.061 * 99), rel=within)


def test_two_packages_that_wrap_several_times(tmp_path: Path) -> None:
    """Counters of 5 J start again every 0.3 s or so, each on its own: 16 W and 3 W for 4 s."""
    clock, range_uj = Clock(), 5_000_000
    zones = []
    for number, start_uj in ((0, 4_900_000), (1, 1_000)):
        folder = tmp_path / f"intel-rapl:{number}"
        folder.mkdir()
        (folder / "energy_uj").write_text(f"{start_uj}\n")
        zones.append(Zone(f"package-{number}", folder, range_uj))
    meter = RaplMeter("rapl:package", zones)
    collector = Collector(
        1, meters=[meter], no_meter_reason="", procfs=tmp_path, sysfs=tmp_path, clock=clock
    )
    collector.begin()
    for _ in range(100):
        clock.now_ns += 50 * MS
        for zone, watts, start_uj in zip(zones, (16, 3), (4_900_000, 1_000), strict=True):
            now_uj = (start_uj + watts * clock.now_ns // 1000) % (range_uj + 1)
            (zone.folder / "energy_uj").write_text(f"{now_uj}\n")
        collector.tick(slow=False)
    (seen,) = collector.end().energy
    assert energy_between(seen, S // 2, S // 2 + 4 * S).value == pytest.approx(76.0, rel=0.001)


def test_meter_that_vanishes_costs_its_windows_only(tmp_path: Path) -> None:
    """A counter whose driver goes leaves null with the reason, then and later; nothing ends."""
    clock = Clock()
    kept = CurveMeter(clock, None)

    class Vanishing(CurveMeter):
        def read_j(self) -> float:
            if self.clock.now_ns > 2 * S:
                raise OSError(19, "No such device")
            return super().read_j()

    lost = Vanishing(clock, None, name="bench:lost")
    first = watched([lost, kept], clock, 4, 1, tmp_path)
    second = watched([lost, kept], clock, 8, 2, tmp_path)
    for window, (start, end) in ((first, (2.5, 3.5)), (second, (5.0, 7.0))):
        gone, there = window.energy
        missing = energy_between(gone, round(start * S), round(end * S))
        assert missing.reason == "bench:lost can't be read any more: No such device"
        found = energy_between(there, round(start * S), round(end * S))
        assert found.value == pytest.approx(joules(end) - joules(start), rel=0.005)


def test_meter_that_comes_back_is_read_again(tmp_path: Path) -> None:
    """A hole from 3 s to 4 s in a window of 9 s: the energy before and after it is known."""
    clock = Clock()

    class Interrupted(CurveMeter):
        def read_j(self) -> float:
            if 3 * S < self.clock.now_ns < 4 * S:
                raise OSError(110, "it has printed nothing for 5 s")
            return super().read_j()

    (seen,) = watched([Interrupted(clock, None, name="bench:lost")], clock, 9, 1, tmp_path).energy
    for start, end in ((1.0, 2.5), (4.5, 8.5)):
        found = energy_between(seen, round(start * S), round(end * S))
        assert found.value == pytest.approx(joules(end) - joules(start), rel=0.005)
    assert seen.reason is None
    assert energy_between(seen, 2 * S, 5 * S).reason == (
        "bench:lost could not be read for a while: it has printed nothing for 5 s"
    )


def test_wall_clock_has_no_part_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall clock that jumps by a day at every look changes no energy: nobody looks at it."""
    days = iter(range(10**6))
    monkeypatch.setattr("time.time", lambda: 86_400.0 * -next(days))
    monkeypatch.setattr("time.time_ns", lambda: 86_400 * S * -next(days))
    clock = Clock()
    (seen,) = watched([CurveMeter(clock, None)], clock, 5, 3, tmp_path).energy
    times = [point.t_ns for point in seen.points]
    assert times == sorted(times)
    assert bisect.bisect(times, 4 * S) > 40
    found = energy_between(seen, S, 4 * S).value
    assert found == pytest.approx(joules(4.0) - joules(1.0), rel=0.005)


# At the edges ------------------------------------------------------------------------------------


def jump(at_s: float, low_w: float, high_w: float):
    """Joules of a power that rises once."""
    return lambda t: low_w * min(t, at_s) + high_w * max(0.0, t - at_s)


def test_jump_at_an_edge_between_two_readings_is_told() -> None:
    """From 5 W to 105 W at 3.05 s, in the middle between two readings of a counter.

    By hand: 0.05 s x 0.05 s / 0.1 s x 100 W are 2.5 J that may be of before; of 105 J that is
    little. Up to 3.06 s there are 0.26 s x 5 W and 0.06 s x 55 W, of which 2.4 J may be of after.
    """
    seen = trace(jump(3.05, 5, 105), every_ms=100)
    assert energy_between(seen, 3050 * MS, 4050 * MS).value == pytest.approx(105 - 2.5)

    assert energy_between(seen, 2740 * MS, 3060 * MS).reason == (
        "power changed by 100 W within the 0.1 s that bench:supply leaves open at an edge of the "
        "window, so 2.4 of 4.6 J may be of before or after: it takes a faster meter or more tokens"
    )


def test_gauge_that_is_late_is_not_believed_at_a_jump() -> None:
    """A gauge of a second, 12 s at 20 W between 2 W: each edge may be a second off, 36 of 240 J.

    Of a minute they are 3 %, and its energy is known to that.
    """
    clock = Clock()
    for length_s, told in ((12, False), (60, True)):
        gauge = GaugeMeter("battery", clock, longest_gap_s=10, resolution_s=1.0)
        clock.now_ns = 0
        log = CounterLog(gauge, clock)
        for second in range(length_s + 40):
            clock.now_ns = round((second + 0.37) * S)
            gauge.add(clock.now_ns, 20.0 if 20 <= second + 0.37 < 20 + length_s else 2.0)
            log.read()
        found = energy_between(log.trace(), 20 * S, (20 + length_s) * S)
        if told:
            assert found.value == pytest.approx(20 * length_s, rel=0.03)
        else:
            assert found.reason is not None
            assert "within the 1 s that battery leaves open at an edge" in found.reason


GAUGE_CURVES = (
    # Whole periods of a wave of 3 s around 12 W; and two seconds within a stair's step of 15 W.
    (lambda t: 12 + 6 * math.sin(2 * math.pi * t / 3), 2.2, 8.2, 72.0),
    (lambda t: 15.0 if 2 < t < 6 else 3.0, 3.0, 5.0, 30.0),
)


@pytest.mark.parametrize(("watts", "start_s", "end_s", "joules"), GAUGE_CURVES)
@pytest.mark.parametrize("seed", range(4))
def test_gauge_tells_a_known_curve(
    tmp_path: Path, watts, start_s: float, end_s: float, joules: float, seed: int
) -> None:
    """A board's sensor, asked 20 times a second at uneven times: half a percent.

    The sampling thread comes at other times than the sensor's, and changes nothing by that.
    """
    clock, late = Clock(), random.Random(seed)
    gauge = GaugeMeter("hwmon:VDD_IN", clock, longest_gap_s=0.5, resolution_s=0.05)
    gauge.add(clock.now_ns, watts(0.0))
    collector = Collector(
        1, meters=[gauge], no_meter_reason="", procfs=tmp_path, sysfs=tmp_path, clock=clock
    )
    collector.begin()
    looks = [(n * 0.05 + late.uniform(0, 0.02), True) for n in range(1, 200)]
    looks += [(n * 0.05 + late.uniform(0, 0.03), False) for n in range(1, 200)]
    for at_s, is_sensor in sorted(looks):
        clock.now_ns = max(clock.now_ns, round(at_s * S))
        if is_sensor:
            gauge.add(clock.now_ns, watts(clock.now_ns / S))
        else:
            collector.tick(slow=False)
    (seen,) = collector.end().energy
    collector.close()
    found = energy_between(seen, round(start_s * S), round(end_s * S))
    assert found.value == pytest.approx(joules, rel=0.005)


@pytest.mark.parametrize("step_s", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("levels_w", [(75, 300, 60), (12, 90, 3), (90, 3, 40), (40, 1, 90)])
def test_stair_is_never_far_off_where_it_is_told(step_s: float, levels_w) -> None:
    """A counter of a card that changes every 20 to 200 ms, and jumps at both edges.

    The energies by hand: power by time. What can't be told to a tenth is null, wherever the steps
    are; and of the calm longest part most is told.
    """
    before_w, prefill_w, decode_w = levels_w
    told = 0
    for n in range(40):
        start_s, late = 1.0 + 0.013 * n, random.Random(n)
        first_s, last_s = start_s + 2.0, start_s + 8.0

        def shown(t: float, start_s: float = start_s, first_s: float = first_s) -> float:
            t = math.floor(t / step_s) * step_s
            parts_s = min(t, start_s), min(max(0, t - start_s), 2.0), max(0, t - first_s)
            return before_w * parts_s[0] + prefill_w * parts_s[1] + decode_w * parts_s[2]

        at_s, points = start_s - 0.03, []
        while at_s < last_s + 1.5 * step_s:
            points.append(EnergyPoint(round(at_s * S), shown(at_s)))
            at_s += 0.05 + late.uniform(0, 0.004)
        seen = EnergyTrace("nvidia:0", "observed", tuple(points), resolution_s=step_s)
        prefill = energy_between(seen, round(start_s * S), round(first_s * S))
        decode = energy_between(seen, round(first_s * S), round(last_s * S))
        for found, by_hand in ((prefill, 2.0 * prefill_w), (decode, 6.0 * decode_w)):
            if found.value is not None:
                told += 1
                assert found.value == pytest.approx(by_hand, rel=0.1)
    assert told > 0


def test_edge_beyond_the_first_and_last_step_counts_what_is_not_known() -> None:
    """A stair of 10 W in steps of 0.25 s, the first one at 0.25 s, read every 10 ms; by hand.

    A step is placed 5 ms before it is seen. With the last one at 5 s, 0.25 s of 0.1 s to 5.1 s are
    beyond: of 50 J, 2.5 J may be none or double. With the last one at 2.5 s, 0.47 s of 0.01 s to
    2.73 s are: 4.7 of 27.2 J, which is too much.
    """
    long = trace(stair(10.0, 0.25), every_ms=10, until_ms=5240, resolution_s=0.25)
    assert energy_between(long, 100 * MS, 5100 * MS).value == pytest.approx(50.0)
    short = trace(stair(10.0, 0.25), every_ms=10, until_ms=2740, resolution_s=0.25)
    assert "did not change for 0.235 s at an edge of the window, so 4.7 of 27.2 J" in str(
        energy_between(short, 10 * MS, 2730 * MS).reason
    )


def test_hiccup_elsewhere_is_no_matter_to_a_window() -> None:
    """10 Hz with a hole of 0.4 s: what does not touch it is told, what does takes 4 s."""
    points = tuple(EnergyPoint(n * 100 * MS, 0.9 * n) for n in range(100) if not 50 < n < 54)
    seen = EnergyTrace("hwmon:VDD_IN", "observed", points, resolution_s=0.1, own_points=True)
    assert energy_between(seen, 3 * S, 5 * S).value == pytest.approx(18.0)
    assert energy_between(seen, 5400 * MS, 7400 * MS).value == pytest.approx(18.0)
    assert energy_between(seen, 4 * S, 6 * S).reason == (
        "the window is too short for hwmon:VDD_IN, whose readings in it are up to 0.4 s apart: it "
        "takes 4 s"
    )
    assert energy_between(seen, 3 * S, 8 * S).value == pytest.approx(45.0)


def test_windows_end_waits_for_all_meters_at_once() -> None:
    """Three gauges that say nothing more, 0.3 s each, are waited for 0.45 s and not 1.35 s.

    The clock moves by what a meter was told to wait for.
    """
    clock = Clock()
    waits: list[float] = []

    class Silent(GaugeMeter):
        def wait_past(self, t_ns: int, limit_s: float) -> None:
            waits.append(limit_s)
            clock.now_ns += round(limit_s * S)

    logs = []
    for name in ("one", "two", "three"):
        gauge = Silent(name, clock, longest_gap_s=9.0, resolution_s=0.3)
        gauge.add(clock(), 5.0)
        logs.append(CounterLog(gauge, clock))
    end_ns = clock()
    for each in logs:
        each.read()
    for each in logs:
        each.settle(end_ns)
    assert waits == pytest.approx([0.45, 0.0, 0.0], abs=0.001)


def test_counter_is_read_until_it_changes_after_the_end() -> None:
    """A card's counter of 0.1 s that changed long before the end shows the end at its next step."""
    clock = Clock()
    meter = CurveMeter(clock, 0.1)
    shown = meter.read_j
    log = CounterLog(meter, clock)
    clock.now_ns = 5_090 * MS
    log.read()

    def moved() -> float:
        clock.now_ns += 10 * MS
        return shown()

    meter.read_j = moved  # type: ignore[method-assign]
    log.settle(5_090 * MS)
    before, after = log.trace().points
    # By hand: after 4.5 s there are 9 W.
    assert after.joules - before.joules == pytest.approx(0.9)


def test_gap_of_a_gauge_is_one_of_its_points() -> None:
    """A sensor that is silent from 2 s to 4 s: what lies before and after is known to its edge."""
    clock = Clock()
    gauge = GaugeMeter("hwmon:VDD_IN", clock, longest_gap_s=0.5, resolution_s=0.05)
    log = CounterLog(gauge, clock)
    for tick in range(121):
        clock.now_ns = tick * 50 * MS
        if not 40 < tick < 80:
            gauge.add(clock.now_ns, 9.0)
        log.read()
    seen = log.trace()

    (gap,) = seen.gaps
    assert (gap.start_ns, gap.end_ns) == (2 * S, 4 * S)
    assert energy_between(seen, S, 2 * S).value == pytest.approx(9.0)
    assert energy_between(seen, 4 * S, 5 * S).value == pytest.approx(9.0)
    assert energy_between(seen, S, 5 * S).value is None
