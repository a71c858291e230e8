"""A stretch of work from generations and a window that are made up; every figure by hand."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Level, Window
from edgebench.harness.errors import InvalidResultError, RunnerTimeoutError
from edgebench.harness.prompts import Prompt
from edgebench.harness.results.measured import Measured
from edgebench.harness.sustained import Stretch, edge_s, interval_s
from edgebench.harness.work import Sustaining, _Sustained
from edgebench.runners.base import Generation, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.harness.results.sustained import SustainedRecord

S = 1_000_000_000
READINGS = (
    *("peak_rss", "peak_anon", "peak_file", "peak_shared", "pss", "cpu_time", "minor_faults"),
    *("major_faults", "voluntary_switches", "involuntary_switches", "others", "clock"),
    "temperature",
)
ZERO = 7 * S
"""When the first prompt was handed over."""


def window(**changes: object) -> Window:
    fields: dict[str, object] = dict.fromkeys(READINGS, Reading(None, "not read"))
    fields |= {"begin_ns": 0, "end_ns": 0, "samples": (), "energy": ()}
    fields |= {"energy_reason": "no power meter was found"}
    return Window(**{**fields, **changes})  # type: ignore[arg-type]


def generation(start_s: float, prefill_s: float, token_s: float, tokens: int) -> Generation:
    first = ZERO + round((start_s + prefill_s) * S)
    stamps = [first + round(place * token_s * S) for place in range(tokens)]
    return Generation(
        token_ids=[1] * tokens,
        submitted_ns=ZERO + round(start_s * S),
        token_ns=stamps,
        prompt_tokens=4,
        finish_reason="length",
    )


def stretch(token_s: Callable[[float], float], asked_s: float = 100.0) -> Stretch:
    """Generations of 9 tokens that begin every 10 s, with 2 s of prefill; 8 gaps of about 1 s."""
    made = []
    for number in count():
        start = number * 10.0
        if start >= asked_s:
            break
        made.append(generation(start, 2.0, token_s(start), 9))
    return Stretch(asked_s, tuple(made))


def test_rates_leave_the_prefills_out() -> None:
    """8 tokens in the 8 s after each prefill: one a second, though 10 s pass."""
    metrics, record = stretch(lambda _start: 1.0).outcome(window())
    assert metrics["burst_rate"].value == pytest.approx(1.0)
    assert metrics["sustained_rate"].value == pytest.approx(1.0)
    assert metrics["sustained_ratio"].value == pytest.approx(1.0)
    assert (record.generations, record.tokens) == (10, 90)
    assert record.lasted_s == pytest.approx(100.0)
    assert [each.started_s for each in record.spans] == [10.0 * each for each in range(10)]
    assert record.spans[3].first_token_s == pytest.approx(32.0)


def test_the_first_and_the_last_tenth_are_compared() -> None:
    """1 token/s for the first 50 s, then 8 gaps of 0.8 s: 1.25 token/s."""
    made = stretch(lambda start: 1.0 if start < 50 else 0.8)
    metrics, record = made.outcome(window())
    # The last generation ends at 90 + 2 + 6.4 s, and its decoding fills the last 9.84 s but 2 s.
    assert record.lasted_s == pytest.approx(98.4)
    assert record.edge_s == pytest.approx(9.84)
    assert metrics["burst_rate"].value == pytest.approx(1.0)
    assert metrics["sustained_rate"].value == pytest.approx(1.25)
    assert metrics["sustained_ratio"].value == pytest.approx(1.25)


def test_a_token_counts_in_each_interval_by_its_part() -> None:
    """Gaps of 4 s in intervals of 5/3 s: a quarter of a token a second in each with decoding."""
    made = Stretch(100.0, (generation(0.0, 0.0, 4.0, 26),))
    _metrics, record = made.outcome(window())
    assert record.interval_s == pytest.approx(100 / 60)
    assert len(record.t_s) == 60
    assert record.decode_rate == pytest.approx([0.25] * 60)
    assert record.t_s[0] == pytest.approx(100 / 120, abs=1e-3)


def test_an_interval_of_prefill_alone_has_no_rate() -> None:
    """4 s of prefill, and nothing was decoded within the first intervals of a second."""
    made = Stretch(12.0, (generation(0.0, 4.0, 1.0, 9),))
    _metrics, record = made.outcome(window())
    assert record.decode_rate[:4] == [None] * 4
    assert record.decode_rate[4:] == pytest.approx([1.0] * 8)


def test_tokens_that_come_together_all_count() -> None:
    """Two tokens at each stamp, a second apart: two a second."""
    stamps = [ZERO + second * S for second in range(13) for _twice in range(2)]
    made = Generation([1] * 26, ZERO, stamps, 4, "length")
    _metrics, record = Stretch(12.0, (made,)).outcome(window())
    # The first two come out of the prefill: of the pairs, 12 follow in 12 s.
    assert record.decode_rate == pytest.approx([2.0] * 12)


def test_clock_heat_and_power_are_means_of_each_interval() -> None:
    """Levels within an interval, and 6 W from a counter that rises by 0.3 J every 50 ms."""
    points = tuple(
        EnergyPoint(ZERO + round(step * 0.05 * S), step * 0.3) for step in range(-20, 2100)
    )
    seen = window(
        clocks=(Level(ZERO + S // 2, 2.0e9), Level(ZERO + S, 1.0e9), Level(ZERO + 2 * S, 3.0e9)),
        temperatures=(Level(ZERO - 1, 99.0), Level(ZERO + 3 * S, 50.0)),
        energy=(EnergyTrace("bench:supply", "observed", points),),
        energy_reason=None,
    )
    metrics, record = stretch(lambda _start: 1.0).outcome(seen)
    # Intervals of 1.667 s: the first two levels are of the first, the third of the second.
    assert record.clock_hz[:3] == [1.5e9, 3.0e9, None]
    # What was read before the first prompt counts nowhere.
    assert record.temperature_celsius[:3] == [None, 50.0, None]
    assert record.power_w == pytest.approx([6.0] * 60)
    assert record.power_source == "observed"
    assert metrics["mean_power_w"].value == pytest.approx(6.0)
    assert metrics["sustained_power_w"].value == pytest.approx(6.0)


def test_an_estimated_power_stays_one() -> None:
    """The label goes where the figure goes."""
    points = tuple(EnergyPoint(ZERO + round(step * S), 2.0 * step) for step in range(-1, 102))
    trace = EnergyTrace("estimate:tdp", "estimated", points)
    metrics, record = stretch(lambda _s: 1.0).outcome(window(energy=(trace,), energy_reason=None))
    assert record.power_source == "estimated"
    assert metrics["mean_power_w"].source == "estimated"
    assert metrics["mean_power_w"].value == pytest.approx(2.0)


def supply(step_s: float, until_s: float, watts: float = 6.0, **more: object) -> EnergyTrace:
    """A meter that is read, and changes, every so many seconds."""
    points = tuple(
        EnergyPoint(ZERO + round(step * step_s * S), watts * step * step_s)
        for step in range(-3, round(until_s / step_s) + 3)
    )
    return EnergyTrace("bench:supply", "observed", points, resolution_s=step_s, **more)  # type: ignore[arg-type]


def test_without_a_meter_power_is_null_with_the_reason() -> None:
    """Never a zero."""
    metrics, record = stretch(lambda _start: 1.0).outcome(window())
    assert metrics["mean_power_w"].value is None
    assert metrics["mean_power_w"].reason == "no power meter was found"
    assert set(record.power_w) == {None}
    assert record.power_reason == "no power meter was found"


@pytest.mark.parametrize(
    ("asked_s", "step_s", "over_s"), [(100.0, 0.5, 5.0), (600.0, 1.1, 20.0), (100.0, 0.3, 10 / 3)]
)
def test_a_slow_meter_shows_power_over_several_intervals(
    asked_s: float, step_s: float, over_s: float
) -> None:
    """Ten changes are needed: of intervals of 5/3 or 10 s so many are taken together."""
    made = stretch(lambda _start: 1.0, asked_s)
    seen = window(energy=(supply(step_s, asked_s),), energy_reason=None)
    _metrics, record = made.outcome(seen)
    assert record.power_w == pytest.approx([6.0] * 60)
    assert record.power_over_s == pytest.approx(over_s)
    assert record.power_reason is None


def test_what_a_slow_meter_leaves_over_at_the_end_joins_the_part_before() -> None:
    """Intervals of 1 s in threes, and 14 of them: the last two are not left without a value."""
    made = Stretch(14.0, (generation(0.0, 0.0, 1.0, 15),))
    seen = window(energy=(supply(0.17, 14.0),), energy_reason=None)
    _metrics, record = made.outcome(seen)
    assert record.power_w == pytest.approx([6.0] * 14)
    assert record.power_over_s in (2.0, 3.0)


def test_power_that_can_not_be_told_has_its_reason() -> None:
    """Too slow for a fifth of the stretch; and lost in the middle, which the metrics tell too."""
    made = stretch(lambda _start: 1.0)
    slow = window(energy=(supply(3.0, 100.0),), energy_reason=None)
    metrics, record = made.outcome(slow)
    assert metrics["mean_power_w"].value == pytest.approx(6.0)
    assert "it takes 30 s" in str(metrics["sustained_power_w"].reason)
    assert set(record.power_w) == {None}
    assert "it takes 30 s" in str(record.power_reason)
    lost = window(energy=(supply(0.1, 50.0, reason="it was pulled out"),), energy_reason=None)
    metrics, record = made.outcome(lost)
    assert metrics["mean_power_w"].reason == record.power_reason == "it was pulled out"


def test_a_meter_that_stalls_for_a_while_leaves_a_gap_there_only() -> None:
    """The other intervals keep their values."""
    points = tuple(
        EnergyPoint(ZERO + round(step * 0.05 * S), 0.3 * min(step, 800) + 0.3 * max(0, step - 1000))
        for step in range(-20, 2100)
    )
    trace = EnergyTrace("bench:supply", "observed", points, resolution_s=0.05)
    seen = window(energy=(trace,), energy_reason=None)
    _metrics, record = stretch(lambda _start: 1.0).outcome(seen)
    # It stood still from 40 to 50 s: those intervals of 5/3 s that lie within have nothing.
    assert record.power_w[:23] == pytest.approx([6.0] * 23)
    assert record.power_w[24:29] == [None] * 5
    assert record.power_w[31:] == pytest.approx([6.0] * 29)
    assert "stood still" in str(record.power_reason)


def test_every_meter_has_its_mean_power() -> None:
    """Of the whole stretch; prefill and decoding are not told apart."""
    seen = window(energy=(supply(0.1, 100.0), supply(20.0, 100.0)), energy_reason=None)
    fields = _Sustained(stretch(lambda _start: 1.0)).fields(seen)
    fast, slow = fields["power"]  # type: ignore[misc]
    assert fast.mean_power_w == pytest.approx(6.0)
    assert (fast.prefill_j, fast.decode_j) == (None, None)
    assert "not told apart" in fast.reason
    assert slow.mean_power_w is None
    assert "it takes 200 s" in slow.reason


def test_a_fall_with_the_clock_is_found_in_a_stretch() -> None:
    """A device that halves its clock after 60 of 100 s, seen through the whole path."""
    clocks = tuple(
        Level(ZERO + second * S, 2.0e9 if second < 60 else 1.0e9) for second in range(101)
    )
    made = []
    start = 0.0
    while start < 100:
        made.append(generation(start, 0.1, 0.1 if start < 60 else 0.2, 21))
        start = (made[-1].token_ns[-1] - ZERO) / S
    _metrics, record = Stretch(100.0, tuple(made)).outcome(window(clocks=clocks))
    assert record.throttled is True
    assert record.throttled_at_s == pytest.approx(60.0, abs=4.0)


def halved(lasts_s: float, after_s: float, clock_after_s: float) -> SustainedRecord:
    """Twice the rate until a moment, twice the clock until another; 0.3 s of prefill at first."""
    noise = random.Random(3)
    made, now = [], 0.0
    while now < lasts_s:
        submitted, now = now, now + 0.3
        stamps = []
        for _token in range(64):
            stamps.append(ZERO + round(now * S))
            now += (0.05 if now < after_s else 0.1) * (1 + noise.gauss(0, 0.05))
        asked = ZERO + round(submitted * S)
        made.append(Generation([1] * 64, asked, stamps, 4, "length"))
    clocks = tuple(
        Level(ZERO + second * S, 2.0e9 if second < clock_after_s else 1.0e9)
        for second in range(round(now))
    )
    _metrics, record = Stretch(lasts_s, tuple(made)).outcome(window(clocks=clocks))
    return record


@pytest.mark.parametrize("after_s", [10, 15, 20, 28, 40, 95, 300, 575])
def test_a_boost_of_seconds_and_a_late_fall_are_throttling(after_s: float) -> None:
    """Most devices leave their boost within half a minute, of a stretch of ten."""
    record = halved(600, after_s, after_s)
    assert record.throttled is True, record.throttled_because
    assert record.throttled_at_s == pytest.approx(after_s, abs=1.5)
    assert record.throttled_because.startswith("the rate fell by 50 % after")
    assert record.throttled_because.endswith("and the clock by 50 %")


@pytest.mark.parametrize(("after_s", "clock_after_s"), [(300, 210), (300, 450), (20, 100)])
def test_a_clock_that_falls_at_another_moment_is_not_the_cause(
    after_s: float, clock_after_s: float
) -> None:
    """90 s before, 150 s and 80 s after the rate."""
    record = halved(600, after_s, clock_after_s)
    assert record.throttled is False
    assert "fell by 50 %, but not at that moment" in record.throttled_because


def test_generations_that_overlap_are_refused() -> None:
    """One process makes one text at a time."""
    made = (generation(0.0, 1.0, 1.0, 9), generation(8.0, 1.0, 1.0, 9))
    with pytest.raises(InvalidResultError, match="go back from one generation to the next"):
        Stretch(10.0, made).check()


@pytest.mark.parametrize(
    ("asked_s", "interval", "edge"),
    [(10, 1.0, 1.0), (60, 1.0, 6.0), (300, 5.0, 30.0), (600, 10.0, 60.0), (7200, 10.0, 60.0)],
)
def test_how_long_intervals_and_ends_are(asked_s: float, interval: float, edge: float) -> None:
    """60 intervals of 1 to 10 s; a minute at each end, or a tenth."""
    assert interval_s(asked_s) == pytest.approx(interval)
    assert edge_s(asked_s) == pytest.approx(edge)


class ScriptedSession:
    """Answers `generate` from a list, whose exceptions it raises."""

    def __init__(self, answers: Iterator[Generation | Exception]) -> None:
        self._answers = answers
        self.asked = 0

    def call(self, method: str, _params: object = None, *, timeout_s: float) -> dict[str, Any]:
        assert (method, timeout_s) == ("generate", 30)
        self.asked += 1
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return to_wire(answer)


PROMPT = Prompt("long", (1, 2, 3, 4), None, (), 9, sustained_s=25.0)


def sustaining() -> Sustaining:
    work = Sustaining()
    work._generating._vocabulary_size = 100  # as a load would tell
    return work


def test_it_generates_until_the_runners_own_clock_says_so() -> None:
    """10 s a generation by its stamps: the third one passes 25 s, and is not cut off."""
    session = ScriptedSession(generation(10.0 * each, 2.0, 1.0, 9) for each in count())
    fields = sustaining().run(session, PROMPT, 30).fields(window())  # type: ignore[arg-type]
    assert session.asked == 3
    assert fields["sustained"].generations == 3  # type: ignore[attr-defined]
    assert fields["sustained"].asked_s == 25.0  # type: ignore[attr-defined]
    assert "tokens" not in fields


def test_a_generation_that_fails_ends_the_stretch() -> None:
    """It is a failure like any other."""
    answers = iter([generation(0.0, 2.0, 1.0, 9), RunnerTimeoutError("took more than 30 s")])
    with pytest.raises(RunnerTimeoutError):
        sustaining().run(ScriptedSession(answers), PROMPT, 30)  # type: ignore[arg-type]


def test_a_warm_up_knows_the_idle_power() -> None:
    """What a meter showed before the block was measured, whatever kind of work follows."""
    idle = Measured(value=4.0, unit="W", source="observed")
    work = Sustaining(idle)
    work._generating._vocabulary_size = 100  # as a load would tell
    session = ScriptedSession(iter([generation(0.0, 2.0, 1.0, 9)]))
    seen = window(energy=(supply(0.05, 20.0, watts=6.0),), energy_reason=None)
    fields = work.warm_up(session, PROMPT, 30).fields(seen)  # type: ignore[arg-type]
    above = fields["metrics"]["power_above_idle_w"]  # type: ignore[index]
    assert above.value == pytest.approx(2.0)


def test_a_warm_up_is_one_generation() -> None:
    """More of it would heat the device before its burst is measured."""
    session = ScriptedSession(generation(10.0 * each, 2.0, 1.0, 9) for each in count())
    fields = sustaining().warm_up(session, PROMPT, 30).fields(window())  # type: ignore[arg-type]
    assert session.asked == 1
    assert "decode_rate" in fields["metrics"]  # type: ignore[operator]
