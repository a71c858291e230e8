"""A stretch of work from generations and a window that are made up; every figure by hand."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Level, Window
from edgebench.harness.errors import InvalidResultError, RunnerTimeoutError
from edgebench.harness.prompts import Prompt
from edgebench.harness.sustained import Stretch, edge_s, interval_s
from edgebench.harness.work import Sustaining
from edgebench.runners.base import Generation, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    # Readings a second apart: none of the intervals, of 1.67 s, holds three of them.
    assert record.power_w == [None] * 60


def test_without_a_meter_power_is_null_with_the_reason() -> None:
    """Never a zero."""
    metrics, record = stretch(lambda _start: 1.0).outcome(window())
    assert metrics["mean_power_w"].value is None
    assert metrics["mean_power_w"].reason == "no power meter was found"
    assert set(record.power_w) == {None}


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


def test_a_warm_up_is_one_generation() -> None:
    """More of it would heat the device before its burst is measured."""
    session = ScriptedSession(generation(10.0 * each, 2.0, 1.0, 9) for each in count())
    fields = sustaining().warm_up(session, PROMPT, 30).fields(window())  # type: ignore[arg-type]
    assert session.asked == 1
    assert "decode_rate" in fields["metrics"]  # type: ignore[operator]
