"""Steps and drift in series of runs: what is found, where, and what is not made up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from edgebench.harness.history import student, trend
from edgebench.harness.history.changes import MOST_RUNS, find
from edgebench.harness.history.segments import SHORTEST, cuts, prepared


def noisy(count, spread=0.01, seed=1, level=100.0):
    return level * np.exp(np.random.default_rng(seed).normal(0, spread, count))


def test_a_step_is_found_with_its_place_and_size():
    """A fall of 10 % at run 20 is one change, at run 20, and its interval holds the truth."""
    values = noisy(40)
    values[20:] *= 0.9
    found = find(values)
    assert [each.at for each in found.changes] == [20]
    change = found.changes[0]
    assert change.low < 0.9 < change.high
    assert change.ratio == pytest.approx(0.9, rel=0.01)
    assert change.after / change.before == pytest.approx(change.ratio)
    assert change.earliest <= 20 <= change.latest
    assert change.p < 1e-6
    assert found.drifts == ()
    assert found.spread == pytest.approx(0.01, rel=0.3)


def test_a_rise_and_a_fall_are_two_changes():
    """A stretch of better runs in the middle is found by both of its ends."""
    values = noisy(60)
    values[20:35] *= 1.08
    assert [each.at for each in find(values).changes] == [20, 35]


def test_a_slow_fall_is_a_drift_and_no_stairs():
    """10 % over 50 runs, 0.2 % a run at a noise of 1 %, is one drift over the whole span."""
    found = find(noisy(50) * np.linspace(1, 0.9, 50))
    assert found.changes == ()
    assert [(each.start, each.last) for each in found.drifts] == [(0, 49)]
    assert found.drifts[0].low < 0.9 < found.drifts[0].high


def test_a_drift_after_a_steady_time_begins_where_it_begins():
    """Steady for 30 runs, then falling by 12 % over 30: the drift's span leaves most of the first
    part out, and no step is told."""
    values = noisy(60, spread=0.005) * np.concatenate([np.ones(30), np.linspace(1, 0.88, 30)])
    found = find(values)
    assert found.changes == ()
    assert len(found.drifts) == 1
    assert 20 <= found.drifts[0].start <= 38
    assert found.drifts[0].last == 59


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_found_in_noise(seed):
    """Steady runs say nothing."""
    found = find(noisy(50, spread=0.02, seed=seed))
    assert (found.changes, found.drifts) == ((), ())


def test_a_few_outliers_are_no_change():
    """Single disturbed runs, and two in a row, are neither a step nor a drift."""
    values = noisy(50)
    for place in (7, 8, 23, 41):
        values[place] *= 0.7
    found = find(values)
    assert (found.changes, found.drifts) == ((), ())


def test_successive_runs_that_resemble_each_other_need_more_to_alarm():
    """A step that independent noise would make certain is not in noise that wanders."""
    chance = np.random.default_rng(4)
    wander = np.zeros(60)
    for place in range(1, 60):
        wander[place] = 0.75 * wander[place - 1] + chance.normal(0, 0.01)
    assert find(100 * np.exp(wander)).changes == ()


def test_values_that_are_all_equal_have_no_change():
    """No noise at all is no division by zero."""
    found = find([5.0] * 30)
    assert (found.changes, found.drifts) == ((), ())


def test_a_step_without_any_noise_is_certain():
    """Memory that is the same byte for byte, and then 5 % more."""
    found = find([100.0] * 15 + [105.0] * 6)
    assert [each.at for each in found.changes] == [15]
    assert found.changes[0].ratio == pytest.approx(1.05)
    assert (found.changes[0].earliest, found.changes[0].latest) == (15, 15)


def test_a_change_too_small_to_be_news_is_not_told():
    """0.2 % is certain where nothing varies, and nobody wants to know."""
    assert find([1000.0] * 20 + [1002.0] * 20).changes == ()


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_values_that_are_not_above_zero_have_a_change_without_a_ratio(low):
    """Of 0 there is no share; the step is found all the same."""
    found = find([low] * 12 + [40.0] * 12)
    assert [each.at for each in found.changes] == [12]
    assert found.changes[0].ratio is None
    assert found.changes[0].after == pytest.approx(40.0)


def test_all_zero_is_no_change():
    """Counts that are always 0 are steady."""
    found = find([0.0] * 30)
    assert (found.changes, found.drifts, found.reason) == ((), (), None)


@pytest.mark.parametrize("count", [1, 3, 2 * SHORTEST - 1])
def test_too_few_runs_have_a_reason(count):
    """Of a handful of runs nothing is said."""
    found = find(noisy(count))
    assert found.reason == f"fewer than {2 * SHORTEST} runs"
    assert found.spread is None


def test_the_newest_of_many_runs_are_looked_at_and_keep_their_places():
    """Of a very long series the end counts, and a place is one among all runs."""
    values = noisy(MOST_RUNS + 200)
    values[MOST_RUNS + 100 :] *= 0.9
    assert [each.at for each in find(values).changes] == [MOST_RUNS + 100]


def test_more_series_need_more_certainty():
    """The p of a step is adjusted for how many series are looked at together."""
    values = noisy(40)
    values[20:] *= 0.95
    few, many = find(values).changes[0], find(values, family=4000).changes[0]
    assert many.p == pytest.approx(100 * few.p)


def test_an_upturned_series_says_the_same_upside_down():
    """Twice as fast is half the time: the ratio of the inverse is the inverse of the ratio."""
    values = noisy(40)
    values[25:] *= 1.07
    up, down = find(values).changes[0], find(1 / values).changes[0]
    assert up.at == down.at
    assert up.ratio == pytest.approx(1 / down.ratio)


@pytest.mark.parametrize("freedom", [1, 2, 8, 48, 198])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, 7.0, 40.0])
def test_students_distribution_is_that_of_scipy(freedom, t):
    """Chances down to the smallest, and the quantile of a 95 % interval."""
    assert student.two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9)
    assert student.quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom))


def test_the_cuts_are_the_best_of_all():
    """Dynamic programming finds what trying all places finds."""
    y = np.random.default_rng(3).normal(size=17)
    series = prepared(np.exp(y))

    def squares(edges):
        return sum(
            float(np.sum((series.y[a:b] - series.y[a:b].mean()) ** 2))
            for a, b in itertools.pairwise(edges)
        )

    for edges in cuts(series):
        inner = len(edges) - 2
        tried = [
            [0, *places, 17]
            for places in itertools.combinations(range(1, 17), inner)
            if min(b - a for a, b in itertools.pairwise([0, *places, 17])) >= SHORTEST
        ]
        assert squares(edges) == pytest.approx(min(map(squares, tried)))


def test_the_line_is_the_one_of_scipy():
    """Theil and Sen's slope, and Kendall's test where runs do not resemble each other."""
    values = noisy(30, seed=9) * np.linspace(1, 0.95, 30)
    series = prepared(values)
    line = trend.line(series, 0, 30)
    slope = stats.theilslopes(series.y, np.arange(30)).slope
    assert line.total == pytest.approx(29 * slope)
    assert line.low < line.total < line.high
    # Widened for resemblance, so never more certain than Kendall's own.
    own = stats.kendalltau(np.arange(30), series.y, method="asymptotic").pvalue
    assert line.chance >= own
    noise = series.noise_of(trend.residuals(series.y), 2, trend.CAUTION)
    z = stats.norm.isf(own / 2)
    assert stats.norm.isf(line.chance / 2) == pytest.approx(
        z / math.sqrt(noise.inflation), rel=0.02
    )
