"""Figures of windows: from first principles, and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgebench.harness.quality.figures import (
    UNITS,
    bits_per_byte,
    paired_difference,
    perplexity,
    quality_metrics,
    quality_summaries,
)
from edgebench.harness.results.quality import WindowRecord


def window(tokens, log_likelihood, **more):
    return WindowRecord(tokens=tokens, log_likelihood=log_likelihood, **more)


def uniform(vocabulary, tokens=10, size=40, count=6):
    return [window(tokens, -tokens * math.log(vocabulary), bytes=size) for _ in range(count)]


def test_uniform_probabilities_have_the_vocabulary_size_as_perplexity():
    found = quality_metrics(uniform(512), None, {})
    assert found["perplexity"].value == pytest.approx(512)
    # 9 bits a token, four bytes a token.
    assert found["bits_per_byte"].value == pytest.approx(9 / 4)
    assert set(found) == set(UNITS)
    assert {name: each.unit for name, each in found.items()} == UNITS


def test_a_fair_coin_costs_a_bit():
    coin = [window(8, 8 * math.log(0.5), bytes=1), window(16, 16 * math.log(0.5), bytes=2)]
    assert perplexity(coin) == pytest.approx(2)
    assert bits_per_byte(coin) == pytest.approx(8)


def test_windows_count_by_their_tokens():
    # Three tokens of 1/2 and one of 1/8 in windows of different lengths: 2**((3 + 3) / 4).
    parts = [window(3, 3 * math.log(0.5)), window(1, math.log(0.125))]
    assert perplexity(parts) == pytest.approx(2**1.5)


def test_against_the_reference():
    exact = [window(10, -20.0), window(10, -30.0)]
    mine = [
        window(10, -21.0, kl_divergence=1.0, top1=9, bytes=30, duration_s=2.0),
        window(10, -30.5, kl_divergence=3.0, top1=7, bytes=30, duration_s=3.0),
    ]
    found = quality_metrics(mine, exact, {}, np.arange(101) / 100, taken_in=50)
    assert found["perplexity_ratio"].value == pytest.approx(math.exp(1.5 / 20))
    assert found["kl_divergence"].value == pytest.approx(4 / 20)
    assert found["kl_divergence_p99"].value == pytest.approx(0.99)
    assert found["top1_agreement"].value == pytest.approx(16 / 20)
    assert found["scoring_rate"].value == pytest.approx(10)


def test_what_is_not_known_is_null_with_its_reason():
    found = quality_metrics([window(4, -8.0)], None, {"kl_divergence": "for this reason"})
    assert found["perplexity"].value == pytest.approx(math.exp(2))
    assert found["kl_divergence"].value is None
    assert found["kl_divergence"].reason == "for this reason"
    assert found["bits_per_byte"].value is None
    assert found["scoring_rate"].value is None


def test_a_perplexity_beyond_all_numbers_is_null():
    found = quality_metrics([window(2, -5e6)], [window(2, -2.0)], {})
    assert found["perplexity"].value is None
    assert "unlikely" in found["perplexity"].reason
    assert found["perplexity_ratio"].value is None
    summaries = quality_summaries(found, [window(2, -5e6)] * 6, None)
    assert summaries["perplexity"].ci_low is None


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        drawn = generator.normal(-30, 4, size=8)
        windows = [window(10, float(each)) for each in drawn]
        summary = quality_summaries(quality_metrics(windows, None, {}), windows, None)
        found = summary["perplexity"]
        covered += found.ci_low <= math.exp(3) <= found.ci_high
    # Binomial: 95 % of 300, give or take three standard deviations.
    assert 274 <= covered <= 296


def test_windows_without_a_whole_byte_give_no_interval() -> None:
    """Where characters are cut up that much, a resample might have no byte at all."""
    windows = [window(2, -4.0, bytes=size) for size in (0, 4, 0, 4, 4, 0, 4)]
    summary = quality_summaries(quality_metrics(windows, None, {}), windows, None)
    assert summary["bits_per_byte"].median == pytest.approx(28 / math.log(2) / 16)
    assert summary["bits_per_byte"].ci_low is None
    assert "no whole byte" in (summary["bits_per_byte"].reason or "")
    assert summary["perplexity"].ci_low == pytest.approx(math.exp(2))


def test_figures_beyond_all_numbers_are_none() -> None:
    """Of weights that are no model."""
    assert perplexity([window(2, -5e6)] * 7) is None
    difference = paired_difference([window(2, -5e6)] * 7, [window(2, -2.0)] * 7)
    assert difference.low is None
    assert "far apart" in (difference.reason or "")


def test_an_interval_needs_windows():
    windows = uniform(7, count=4)
    summary = quality_summaries(quality_metrics(windows, None, {}), windows, None)["perplexity"]
    assert summary.median == pytest.approx(7)
    assert summary.ci_low is None
    assert summary.reason == "an interval needs 6 windows, there are 4"
    assert summary.n == 4


def test_alike_windows_have_an_interval_of_one_point():
    windows = uniform(7)
    found = quality_summaries(quality_metrics(windows, None, {}), windows, None)["perplexity"]
    assert found.ci_low == pytest.approx(7)
    assert found.ci_high == pytest.approx(7)


def noisy(count, shift, seed=3):
    generator = np.random.default_rng(seed)
    base = generator.normal(-30, 6, size=count)
    other = base - shift - generator.normal(0, 0.2, size=count)
    return (
        [window(10, float(each)) for each in base],
        [window(10, float(each)) for each in other],
    )


def test_pairs_tell_apart_what_two_intervals_can_not():
    better, worse = noisy(16, shift=0.5)
    difference = paired_difference(worse, better)
    assert difference.ratio == pytest.approx(perplexity(worse) / perplexity(better))
    assert 1 < difference.low < difference.ratio < difference.high
    assert difference.p < 0.001
    alone = [
        quality_summaries(quality_metrics(each, None, {}), each, None)["perplexity"]
        for each in (better, worse)
    ]
    assert alone[0].ci_high > alone[1].ci_low


@pytest.mark.parametrize("count", [6, 10, 40])
@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1])
def test_the_test_of_signs_is_that_of_scipy(count, shift):
    one, other = noisy(count, shift)
    by = np.array([b.log_likelihood - a.log_likelihood for a, b in zip(one, other, strict=True)])
    expected = stats.permutation_test(
        (by,),
        np.sum,
        permutation_type="samples",
        n_resamples=10_000,
        rng=np.random.default_rng(11),
    )
    found = paired_difference(one, other)
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)
    assert found.windows == count


def test_equal_variants_are_equal():
    one, _ = noisy(9, 0.0)
    difference = paired_difference(one, one)
    assert (difference.ratio, difference.low, difference.high, difference.p) == (1, 1, 1, 1)


def test_few_windows_are_no_test():
    one, other = noisy(4, 0.3)
    difference = paired_difference(one, other)
    assert difference.p is None
    assert difference.low is None
    assert difference.reason == "an interval needs 6 windows, there are 4"


@pytest.mark.parametrize("other", [[], [window(9, -1.0)], [window(10, -1.0)] * 2])
def test_other_windows_are_refused(other):
    with pytest.raises(ValueError, match="not the same windows"):
        paired_difference([window(10, -1.0)], other)
