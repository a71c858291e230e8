"""The tests and intervals behind the answers, against enumeration, tables' values and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from edgebench.harness.compare.drift import drift_of
from edgebench.harness.compare.intervals import one_sample, two_samples
from edgebench.harness.compare.noticeable import shift_noticed
from edgebench.harness.compare.paired import paired_test
from edgebench.harness.compare.unpaired import unpaired_test

# No value is more than three times the median size, so that none is clipped.
DIFFERENCES = np.array([0.9, -0.7, 1.3, 0.6, 1.1, -0.5, 1.6, 0.8])
BASELINE = np.array([1.0, 1.9, 3.1, 4.2, 5.3])
CANDIDATE = np.array([2.4, 3.7, 4.9, 5.8, 6.6])
NO_FLOOR = np.zeros(1)
NO_INFLATION = np.ones(1)


def test_a_single_pair_test_is_the_exact_sign_flip_test() -> None:
    """As scipy permutes paired samples, in both directions."""
    test = paired_test(DIFFERENCES[:, None], level=0.05)
    for found, alternative in ((test.worse, "greater"), (test.better, "less")):
        expected = stats.permutation_test(
            (DIFFERENCES,), np.sum, permutation_type="samples", alternative=alternative
        )
        assert found[0] == pytest.approx(expected.pvalue)


def test_several_questions_are_adjusted_by_the_greatest_of_each_flip() -> None:
    """Step-down max-T, as in a plain enumeration of all 128 sign patterns."""
    generator = np.random.default_rng(1)
    table = np.sign(generator.normal(size=(7, 4))) * generator.uniform(0.8, 1.2, size=(7, 4))
    table[:, 0] = np.abs(table[:, 0])
    table[1:, 1] = np.abs(table[1:, 1])

    def statistics(signs: tuple[int, ...]) -> list[float]:
        return [
            sum(sign * value for sign, value in zip(signs, column, strict=True))
            / math.sqrt(sum(value * value for value in column))
            for column in table.T
        ]

    patterns = [statistics(signs) for signs in itertools.product((1, -1), repeat=7)]
    observed = statistics((1,) * 7)
    expected = [0.0] * 4
    left, floor = sorted(range(4), key=lambda at: -observed[at]), 0.0
    while left:
        tops = [max(pattern[at] for at in left) for pattern in patterns]
        floor = max(floor, sum(top >= observed[left[0]] - 1e-9 for top in tops) / len(patterns))
        expected[left.pop(0)] = floor
    assert paired_test(table, level=0.05).worse == pytest.approx(expected)


def test_differences_of_zero_are_no_evidence() -> None:
    """Two of twelve blocks differ, both upwards: a chance of one in four, not less."""
    differences = np.zeros((12, 1))
    differences[[2, 7], 0] = 1.0, 1.1
    assert paired_test(differences, level=0.05).worse[0] == pytest.approx(1 / 4)


def test_questions_of_few_moving_blocks_do_not_drown_the_others() -> None:
    """Beside 30 that moved twice in 20 blocks, a clear slowdown keeps its chance."""
    generator = np.random.default_rng(2)
    table = np.zeros((20, 31))
    for column in range(1, 31):
        table[generator.choice(20, 2, replace=False), column] = 1.0
    table[:, 0] = generator.uniform(0.5, 1.5, size=20)
    alone = paired_test(table[:, :1], level=0.01).worse[0]
    assert paired_test(table, level=0.01).worse[0] == alone < 0.001


def test_a_single_test_of_separate_runs_is_the_exact_permutation_test() -> None:
    """As scipy exchanges values between independent samples, 252 ways."""
    test = unpaired_test(
        BASELINE[:, None],
        CANDIDATE[:, None],
        floors=NO_FLOOR,
        inflation=NO_INFLATION,
        level=0.05,
    )
    expected = stats.permutation_test(
        (BASELINE, CANDIDATE), lambda one, two: np.mean(two) - np.mean(one), alternative="greater"
    )
    assert test.worse[0] == pytest.approx(expected.pvalue)


def test_a_gap_in_one_question_leaves_the_others_alone() -> None:
    """A block that one question lacks is exchanged without it."""
    one, two = np.stack([BASELINE, BASELINE], axis=1), np.stack([CANDIDATE, CANDIDATE], axis=1)
    one[4, 1] = np.nan
    test = unpaired_test(one, two, floors=np.zeros(2), inflation=np.ones(2), level=0.5)
    assert np.all((test.worse > 0) & (test.worse <= 1))
    assert np.argmin(test.worse) in (0, 1)


def test_a_shift_within_the_noise_floor_is_no_difference() -> None:
    """Half a unit worse with a floor of one is no evidence, with none it is."""
    one = np.linspace(0.0, 0.1, 6)[:, None]
    for floor, most in ((0.0, 0.01), (1.0, 1.0)):
        test = unpaired_test(
            one, one + 0.5, floors=np.array([floor]), inflation=NO_INFLATION, level=0.05
        )
        assert (test.worse[0] < 0.01) == (most == 0.01)


def test_the_centre_of_three_differences_is_the_median_of_their_six_means() -> None:
    """Of 1, 2, 4: means 1, 1.5, 2, 2.5, 3, 4, in the middle 2.25."""
    assert one_sample([4.0, 1.0, 2.0]).centre == 2.25


def test_the_shift_of_two_samples_is_the_median_of_all_differences() -> None:
    """From 1 and 2 to 4 and 8: 2, 3, 6, 7, in the middle 4.5."""
    assert two_samples([1.0, 2.0], [4.0, 8.0]).centre == 4.5


@pytest.mark.parametrize("n", [6, 10, 25])
def test_the_interval_of_pairs_is_what_the_signed_rank_test_accepts(n: int) -> None:
    """Just inside its ends scipy's exact test accepts the shift at 5 %, just outside not."""
    values = np.random.default_rng(n).normal(size=n)
    estimate = one_sample(values)
    assert estimate.low is not None
    assert estimate.high is not None
    for end, out in ((estimate.low, -1e-9), (estimate.high, 1e-9)):
        assert stats.wilcoxon(values - end - out, method="exact").pvalue <= 0.05
        assert stats.wilcoxon(values - end + out, method="exact").pvalue > 0.05


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 9), (20, 20)])
def test_the_interval_of_two_samples_is_what_the_rank_sum_test_accepts(n: int, m: int) -> None:
    """Just inside its ends scipy's exact test accepts the shift at 5 %, just outside not."""
    generator = np.random.default_rng(n)
    one, two = generator.normal(size=n), generator.normal(size=m)
    estimate = two_samples(one, two)
    assert estimate.low is not None
    assert estimate.high is not None
    for end, out in ((estimate.low, -1e-9), (estimate.high, 1e-9)):
        assert stats.mannwhitneyu(two - end - out, one, method="exact").pvalue <= 0.05
        assert stats.mannwhitneyu(two - end + out, one, method="exact").pvalue > 0.05


def test_large_samples_use_the_normal_limit() -> None:
    """At 80 pairs the ends are those that scipy's approximate test accepts, to one rank."""
    values = np.random.default_rng(3).normal(size=80)
    estimate = one_sample(values)
    assert estimate.low is not None
    step = 0.02
    assert stats.wilcoxon(values - estimate.low + step, method="approx").pvalue < 0.05
    assert stats.wilcoxon(values - estimate.low - step, method="approx").pvalue > 0.05


@pytest.mark.parametrize(("t", "freedom"), [(2.5, 6), (3.2, 19), (4.0, 38)])
def test_the_noticed_shift_has_the_power_of_the_noncentral_t(t: float, freedom: int) -> None:
    """Its t exceeds the limit in 95 % of cases by scipy's distribution, within 1 %."""
    shift = shift_noticed(t, float(freedom), 1.0)
    assert stats.nct.sf(t, freedom, shift) == pytest.approx(0.95, abs=0.01)


def test_independent_blocks_inflate_little_and_a_walk_much() -> None:
    """Over 40 questions, white noise is left alone, and a common trend allowed for."""
    generator = np.random.default_rng(4)
    white = [generator.normal(size=(20, 40)) for _ in range(2)]
    walks = [each + generator.normal(size=(20, 40)).cumsum(axis=0) for each in white]
    rising = [each + np.linspace(0, 4, 20)[:, None] for each in white]
    calm = drift_of(white[:1], white[1:])
    assert np.median(calm.inflation) < 1.6
    assert np.all(drift_of(walks[:1], walks[1:]).inflation > 3)
    # Both runs rise by 4, so that is how far apart they are for it.
    allowance = drift_of(rising[:1], rising[1:]).allowance
    assert np.median(allowance) == pytest.approx(4, rel=0.15)
    assert np.median(calm.allowance) < 0.2


def test_constant_values_show_no_drift() -> None:
    """Nothing varies, so nothing is inflated."""
    drift = drift_of([np.ones((8, 2))], [np.ones((8, 2))])
    assert list(drift.inflation) == [1.0, 1.0]
    assert list(drift.allowance) == [0.0, 0.0]


def test_runs_of_one_side_that_lie_apart_widen_what_is_told() -> None:
    """Three runs, each quiet but one standard deviation of ten apart, are no 60 blocks."""
    generator = np.random.default_rng(5)
    together = [generator.normal(size=(20, 10)) for _ in range(6)]
    apart = [run + 10 * generator.normal() for run in together]
    assert np.median(drift_of(together[:3], together[3:]).inflation) < 2
    assert np.min(drift_of(apart[:3], apart[3:]).inflation) > 10
