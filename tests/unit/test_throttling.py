"""Whether a device slowed itself down: rates and clocks that are made up, verdicts by hand."""

from __future__ import annotations

import random

import pytest

from edgebench.harness.throttling import LEAST_INTERVALS, judged

COUNT = 60
TIMES = [float(second) for second in range(COUNT)]
NOTHING = [None] * COUNT


def varied(levels: list[float], spread: float = 0.01, seed: int = 1) -> list[float]:
    noise = random.Random(seed)
    return [level * (1 + noise.gauss(0, spread)) for level in levels]


def falls(high: float, low: float, at: int = 40) -> list[float]:
    return [high] * at + [low] * (COUNT - at)


RATE = varied(falls(20.0, 15.0))
"""A quarter of the rate is lost after 40 of 60 seconds."""


def test_a_rate_that_falls_with_the_clock_is_throttling() -> None:
    """20 to 15 tokens/s and 2.4 to 1.8 GHz at the same moment, at 85 °C."""
    celsius = [60.0 + second for second in range(25)] + [85.0] * (COUNT - 25)
    verdict = judged(TIMES, RATE, falls(2.4e9, 1.8e9), celsius)
    assert verdict.throttled is True
    assert verdict.at_s == pytest.approx(39.5)
    assert verdict.because == "the rate fell by 25 % after 40 s, and the clock by 25 %, at 85 °C"


def test_a_rate_that_falls_alone_has_another_cause() -> None:
    """The clock stays where it was, but for its noise."""
    verdict = judged(TIMES, RATE, varied([2.4e9] * COUNT, 0.002), NOTHING)
    assert verdict.throttled is False
    assert verdict.at_s is not None
    assert "something else took the time" in verdict.because


def test_a_clock_that_falls_by_far_less_than_the_rate_is_not_the_cause() -> None:
    """A twentieth of the clock does not take a quarter of the rate."""
    verdict = judged(TIMES, RATE, varied(falls(2.4e9, 2.28e9), 0.001), NOTHING)
    assert verdict.throttled is False
    assert "the clock fell by 5 % only" in verdict.because


def test_without_a_clock_the_cause_is_not_known() -> None:
    """The fall is named all the same."""
    verdict = judged(TIMES, RATE, NOTHING, NOTHING)
    assert verdict.throttled is None
    assert verdict.at_s == pytest.approx(39.5)
    assert verdict.because.startswith("the rate fell by 25 % after 40 s, and the clock can't be")


def test_a_clock_that_never_moves_says_nothing() -> None:
    """A virtual machine shows the same number at all times, whatever the processor does."""
    verdict = judged(TIMES, RATE, [2.1e9] * COUNT, NOTHING)
    assert verdict.throttled is None
    assert "reads the same at all times" in verdict.because


def test_a_steady_rate_is_no_throttling_whatever_its_noise() -> None:
    """Of 200 steady series with 5 % of noise hardly any is called a fallen one."""
    false_alarms = sum(
        judged(TIMES, varied([20.0] * COUNT, 0.05, seed), falls(2.4e9, 1.8e9), NOTHING).at_s
        is not None
        for seed in range(200)
    )
    assert false_alarms <= 2


def test_a_clock_that_falls_alone_is_named() -> None:
    """Decoding that waits for memory need not follow it."""
    verdict = judged(TIMES, varied([20.0] * COUNT), varied(falls(2.4e9, 1.8e9), 0.002), NOTHING)
    assert verdict.throttled is False
    assert verdict.because == "the rate did not fall; the clock alone fell by 25 %"


def test_a_slow_decline_is_seen_too() -> None:
    """Heat may take the rate away little by little: a fifth over the whole stretch."""
    share = [1 - 0.2 * second / COUNT for second in range(COUNT)]
    rates = varied([20.0 * each for each in share])
    assert judged(TIMES, rates, [2.4e9 * each for each in share], NOTHING).throttled is True


def test_a_fall_that_is_too_small_to_matter_is_none() -> None:
    """3 % for certain are still 3 % only."""
    verdict = judged(TIMES, varied(falls(20.0, 19.4), 0.001), falls(2.4e9, 2.3e9), NOTHING)
    assert (verdict.throttled, verdict.at_s) == (False, None)


def test_where_the_rate_varies_wildly_nothing_can_be_said() -> None:
    """A neighbour took turns with the work: a fall of a fifth would not have been seen in it."""
    noise = random.Random(5)
    rates = [noise.choice([5.0, 10.0, 20.0]) for _each in range(COUNT)]
    verdict = judged(TIMES, rates, [2.4e9] * COUNT, NOTHING)
    assert (verdict.throttled, verdict.at_s) == (None, None)
    assert verdict.because.startswith("the rate varied so much that no fall below")


def test_a_rate_that_rises_is_no_fall() -> None:
    """A device that was still busy at the beginning."""
    verdict = judged(TIMES, varied(falls(15.0, 20.0)), NOTHING, NOTHING)
    assert verdict.throttled is False


def test_too_few_intervals_can_not_be_judged() -> None:
    """Nor do those count in which nothing was decoded."""
    rates: list[float | None] = [20.0] * (LEAST_INTERVALS - 1) + [None] * 5
    verdict = judged(TIMES[: len(rates)], rates, [None] * len(rates), [None] * len(rates))
    assert verdict.throttled is None
    assert verdict.because.startswith(f"too short to tell: {LEAST_INTERVALS - 1} intervals")


def test_intervals_without_a_rate_do_not_move_the_place() -> None:
    """A long prefill leaves a gap; the time of the fall is that of the record."""
    rates: list[float | None] = [*RATE]
    rates[10] = rates[20] = None
    verdict = judged(TIMES, rates, falls(2.4e9, 1.8e9), NOTHING)
    assert (verdict.throttled, verdict.at_s) == (True, pytest.approx(39.5))


def test_seconds_of_a_boost_are_a_level() -> None:
    """The first three of 60 intervals, twice as fast."""
    rates = varied(falls(20.0, 10.0, at=3))
    verdict = judged(TIMES, rates, falls(2.4e9, 1.2e9, at=3), NOTHING)
    assert (verdict.throttled, verdict.at_s) == (True, pytest.approx(2.5))


def test_a_rate_that_ends_clearly_lower_never_did_not_fall() -> None:
    """A fast interval is an outlier by itself; the burst rate of the record has it."""
    rates = varied(falls(20.0, 10.0, at=1))
    assert judged(TIMES, rates, NOTHING, NOTHING).throttled is False
    verdict = judged(TIMES, rates, NOTHING, NOTHING, kept_share=0.75)
    assert (verdict.throttled, verdict.at_s) == (None, None)
    assert verdict.because == (
        "the rate was 25 % lower at the end than at the beginning, and varied so much that this "
        "may be chance"
    )


def test_noise_that_lasts_is_told_from_longer_parts() -> None:
    """Seconds that resemble those before them by 0.97, with a spread of 5 %: no fall in 100."""
    alarms = 0
    for seed in range(100):
        noise, level, rates = random.Random(seed), 0.0, []
        for _second in range(600):
            level = 0.97 * level + noise.gauss(0, 0.05 * (1 - 0.97**2) ** 0.5)
            rates.append(20.0 * (1 + level))
        times = [float(second) for second in range(600)]
        verdict = judged(times, rates, [None] * 600, [None] * 600)
        alarms += verdict.at_s is not None
    assert alarms <= 1


def test_the_temperature_is_the_next_one_that_was_read() -> None:
    """Read every second, of intervals that need not hold a reading each."""
    celsius: list[float | None] = [80.0 if second % 3 == 2 else None for second in range(COUNT)]
    verdict = judged(TIMES, RATE, falls(2.4e9, 1.8e9), celsius)
    assert verdict.because.endswith("at 80 °C")
