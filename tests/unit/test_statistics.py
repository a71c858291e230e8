"""Statistics over repetitions, against hand-computed values and a library's own bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgebench.harness.metrics.statistics import (
    coefficient_of_variation,
    is_narrow,
    is_stable,
    median,
    median_interval,
)

FINITE = st.floats(-1e12, 1e12)


def test_the_median_of_an_even_number_is_between_the_middle_ones() -> None:
    """Two middle values give their mean."""
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


def test_variation_of_huge_nanoseconds_is_exact() -> None:
    """Values near 2**62 do not wrap around: 1e18 +- 1e9 vary by 1e-9 of their mean."""
    values = [1e18 - 1e9, 1e18, 1e18 + 1e9]
    assert coefficient_of_variation(values) == pytest.approx(1e-9, rel=1e-6)


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [1.0, -1.0]])
def test_variation_is_unknown_where_it_has_no_meaning(values: list[float]) -> None:
    """Fewer than two values, or a mean of 0, have no coefficient of variation."""
    assert coefficient_of_variation(values) is None


def test_the_interval_agrees_with_an_independent_bootstrap() -> None:
    """With one repetition a block it is the plain percentile bootstrap, as scipy computes it."""
    generator = np.random.default_rng(5)
    values = list(generator.lognormal(3, 0.1, size=41))
    ours = median_interval(values, range(41))
    theirs = stats.bootstrap(
        (np.array(values),), np.median, method="percentile", n_resamples=20_000, rng=7
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, rel=0.005)
    assert ours.high == pytest.approx(theirs.high, rel=0.005)


def test_repetitions_of_one_block_do_not_make_certainty() -> None:
    """Five blocks of equal values each are as uncertain as five single values."""
    centres = [10.0, 11.0, 12.0, 13.0, 14.0]
    many = median_interval(
        [value for value in centres for _ in range(20)],
        [block for block in range(5) for _ in range(20)],
    )
    single = median_interval(centres, range(5))
    assert (many.low, many.high) == (single.low, single.high)


def test_few_blocks_have_no_interval() -> None:
    """Four blocks give no interval, and the reason says how many are needed."""
    interval = median_interval([1.0, 2.0, 3.0, 4.0], [0, 1, 2, 3])
    assert (interval.low, interval.high) == (None, None)
    assert interval.reason == "an interval needs 5 blocks, there are 4"


@given(st.lists(st.tuples(FINITE, st.integers(0, 8)), min_size=5, max_size=40))
def test_an_interval_lies_within_the_samples(pairs: list[tuple[float, int]]) -> None:
    """Whatever the samples, the interval is ordered and inside their range."""
    values, blocks = zip(*pairs, strict=True)
    interval = median_interval(values, blocks)
    if interval.low is not None and interval.high is not None:
        assert min(values) <= interval.low <= interval.high <= max(values)


def test_coverage_is_near_what_is_promised() -> None:
    """Over 400 draws of 12 blocks from a known distribution, 95 % intervals hold the median."""
    generator = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        sample = list(generator.exponential(1.0, size=12))
        interval = median_interval(sample, range(12))
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= np.log(2) <= interval.high
    assert 0.90 <= held / 400 <= 0.99


@pytest.mark.parametrize(
    ("values", "stable"),
    [([100.0], False), ([100.0, 96.0], True), ([100.0, 94.0], False), ([50.0, 99.0, 100.0], True)],
)
def test_warm_up_is_over_when_the_last_two_agree(values: list[float], *, stable: bool) -> None:
    """Within 5 % of the larger of the last two; one value alone says nothing."""
    assert is_stable(values, 0.05) is stable


def test_repetitions_end_when_half_the_interval_is_small_enough() -> None:
    """Equal values are narrow at once; spread ones are not."""
    assert is_narrow([50.0] * 5, range(5), 0.001)
    assert not is_narrow([40.0, 50.0, 60.0, 45.0, 55.0], range(5), 0.02)
