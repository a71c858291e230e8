"""What docs/sustained.md promises of verdicts, on series that are made up here."""

from __future__ import annotations

import math
import random
import re

import pytest

from edgebench.harness.throttling import Verdict, judged

SERIES = 40


def series(levels: list[float], spread: float, seed: int, alike: float = 0.0) -> list[float]:
    noise, off, made = random.Random(seed), random.Random(seed).gauss(0, 1), []
    for level in levels:
        off = alike * off + (1 - alike**2) ** 0.5 * noise.gauss(0, 1)
        made.append(20.0 * level * (1 + spread * off))
    return made


def verdicts(
    levels: list[float], *, clock: bool, spread: float = 0.02, alike: float = 0.0
) -> list[Verdict]:
    """Of so many series with these levels; the clock has 1 % of noise of its own."""
    count = len(levels)
    found = []
    for seed in range(SERIES):
        rates = series(levels, spread, seed, alike)
        clocks = series(levels if clock else [1.0] * count, 0.01, 1000 + seed)
        edge = count // 10
        kept = sum(rates[-edge:]) / sum(rates[:edge])
        times = [second + 0.5 for second in range(count)]
        found.append(judged(times, rates, clocks, [None] * count, kept_share=kept))
    return found


def steps(count: int, number: int, share: float) -> list[float]:
    return [(1 - share) ** (second * (number + 1) // count) for second in range(count)]


def declines(count: int, share: float) -> list[float]:
    return [1 - share * second / count for second in range(count)]


def slow_v(count: int, share: float) -> list[float]:
    """Down from a fifth to the middle, and up until four fifths."""
    off = [abs(second / count - 0.5) / 0.3 for second in range(count)]
    return [1 - share * max(0.0, 1 - each) for each in off]


def waves(count: int, share: float, number: int) -> list[float]:
    turn = 2 * math.pi * number / count
    return [1 - share * (1 - math.cos(turn * second)) / 2 for second in range(count)]


def cycles(count: int, share: float, each_s: int, *, low_first: bool = False) -> list[float]:
    low = 0 if low_first else 1
    return [1 - share if second // each_s % 2 == low else 1.0 for second in range(count)]


def lower(count: int, share: float, start: int, end: int) -> list[float]:
    return [1 - share if start <= second < end else 1.0 for second in range(count)]


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("count", [60, 600])
def test_a_steady_rate_is_never_throttled_however_its_noise_lasts(count: int, alike: float) -> None:
    """5 % of noise, of seconds that resemble each other by so much: at most one fall in 40."""
    found = verdicts([1.0] * count, clock=False, spread=0.05, alike=alike)
    assert not any(each.throttled for each in found)
    assert sum(each.at_s is not None for each in found) <= 1


@pytest.mark.parametrize(
    ("levels", "least"),
    [
        (steps(600, 8, 0.05), 30),
        (steps(600, 5, 0.07), 39),
        (steps(60, 8, 0.05), 35),
        (declines(60, 0.2), 37),
        (declines(600, 0.2), 39),
        (lower(60, 0.3, 20, 40), 39),
        (lower(600, 0.1, 200, 320), 39),
    ],
)
def test_steps_declines_and_passing_falls_are_found(levels: list[float], least: int) -> None:
    """Of 40 with the clock so many are a yes, and none is a no."""
    found = verdicts(levels, clock=True)
    assert sum(each.throttled is True for each in found) >= least
    assert not any(each.throttled is False for each in found)


@pytest.mark.parametrize(
    "levels", [declines(60, 0.1), declines(600, 0.1), declines(60, 0.3), steps(60, 5, 0.07)]
)
def test_another_cause_is_never_named_where_the_clock_declines_alike(levels: list[float]) -> None:
    """Rather nothing is known, of a decline that is hard to see in 3 % of noise."""
    found = verdicts(levels, clock=True, spread=0.03)
    assert not any(each.throttled is False and each.at_s is not None for each in found)


@pytest.mark.parametrize("levels", [lower(60, 0.3, 40, 60), lower(600, 0.3, 200, 400)])
def test_a_clock_that_stays_is_never_the_cause(levels: list[float]) -> None:
    """A fall for good and one that came back."""
    found = verdicts(levels, clock=False)
    assert {each.throttled for each in found} == {False}
    assert all("something else took the time" in each.because for each in found)


def test_a_fall_that_came_back_says_so() -> None:
    """30 % lower from 20 to 40 of 60 s, with the clock."""
    (verdict, *_others) = verdicts(lower(60, 0.3, 20, 40), clock=True)
    assert verdict.throttled is True
    assert verdict.at_s == pytest.approx(20.0)
    assert "from 20 s to 40 s and came back, and the clock by" in verdict.because


@pytest.mark.parametrize("count", [60, 600, 3600])
def test_the_last_seconds_are_no_fall_for_good(count: int) -> None:
    """Three of them at 0.3 of the rate: at the very end, and nothing more is known."""
    found = verdicts(lower(count, 0.7, count - 3, count), clock=False)
    assert {each.throttled for each in found} == {None}
    assert all("at the very end: whether for good can't be told" in each.because for each in found)


@pytest.mark.parametrize("start", [20, 30, 45])
def test_three_bad_seconds_are_a_hiccup(start: int) -> None:
    """At 0.3 of the rate, in a minute: it did not fall, and what else there is can be told."""
    found = verdicts(lower(60, 0.7, start, start + 3), clock=False)
    assert sum(each.throttled is False for each in found) >= 35
    assert all(each.at_s is None for each in found)


def test_a_clock_whose_readings_lag_is_the_cause_all_the_same() -> None:
    """By 4 s, as where the system shows a mean."""
    rates = series(lower(60, 0.3, 30, 60), 0.02, 1)
    clocks = [2e9 * (each / 20.0) for each in series(lower(60, 0.3, 34, 60), 0.01, 2)]
    times = [float(second) for second in range(60)]
    assert judged(times, rates, clocks, [None] * 60).throttled is True


@pytest.mark.parametrize(
    "levels",
    [
        *(slow_v(count, share) for count in (60, 600) for share in (0.12, 0.2, 0.3)),
        waves(60, 0.25, 1),
        waves(600, 0.25, 1),
        waves(600, 0.3, 3),
        cycles(600, 0.1, 60),
        cycles(60, 0.4, 3),
        lower(60, 0.1, 20, 32),
        lower(60, 0.1, 40, 46),
        lower(600, 0.1, 300, 360),
    ],
)
def test_a_dip_of_a_tenth_is_never_called_none(levels: list[float]) -> None:
    """Gradual or abrupt, with the clock or without one: of 40, none is a no."""
    for clock in (True, False):
        found = verdicts(levels, clock=clock)
        assert not any("did not fall" in each.because.split(", and")[0] for each in found)
    assert not any(each.throttled is False for each in verdicts(levels, clock=True))


@pytest.mark.parametrize(
    ("levels", "times", "first_s"),
    [
        (cycles(600, 0.4, 30), 10, 30.0),
        (cycles(600, 0.2, 60), 5, 60.0),
        (cycles(600, 0.4, 30, low_first=True), 9, 60.0),
        (lower(600, 0.4, 120, 210)[:360] + lower(240, 0.4, 0, 90), 2, 120.0),
    ],
)
def test_what_goes_up_and_down_did_not_fall_for_good(
    levels: list[float], times: int, first_s: float
) -> None:
    """Its first fall is named, by what that one lost, and the number of them; all by the clock."""
    share = 100 * (1 - min(levels))
    for verdict in verdicts(levels, clock=True):
        assert verdict.throttled is True
        assert verdict.at_s == pytest.approx(first_s, abs=1.5)
        assert f"again and again, {times} times, first after" in verdict.because
        (lost,) = re.findall(r"first after \d+ s by (\d+) %", verdict.because)
        assert float(lost) == pytest.approx(share, abs=2)


def test_a_dip_before_it_takes_no_fall_for_good_away() -> None:
    """Half a minute early on, then the whole second half."""
    levels = lower(300, 0.4, 100, 130) + [0.6] * 300
    for verdict in verdicts(levels, clock=True):
        assert verdict.throttled is True
        assert "again and again" not in verdict.because


@pytest.mark.parametrize("count", [60, 600])
def test_shares_beside_each_other_are_of_the_same_seconds(count: int) -> None:
    """Rate and clock decline alike by a fifth: so do the shares that one sentence names."""
    said = [each.because for each in verdicts(declines(count, 0.2), clock=True) if each.throttled]
    assert said
    for because in said:
        clock = float(re.findall(r"the clock by (\d+) %", because)[0])
        rate = float(re.findall(r"(?:fell|moment) by (\d+) %", because)[-1])
        assert clock == pytest.approx(rate, abs=3)
