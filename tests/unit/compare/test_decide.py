"""Answers to many questions at once: what they say, and what must not change them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from edgebench.harness.compare.decide import (
    MOST_CONFIDENCE,
    decide,
    families_of,
    repetitions_for,
)
from edgebench.harness.compare.model import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.metrics.definitions import Better

SIZES = st.floats(1e-300, 1e300)


def question(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    better: Better = "lower",
    paired: bool = True,
) -> Question:
    """A question of one run on each side."""
    other = "a" if paired else "b"
    return Question(
        {("a", block): float(value) for block, value in enumerate(baseline)},
        {(other, block): float(value) for block, value in enumerate(candidate)},
        better,
    )


def noisy(
    seed: int, blocks: int, *, questions: int = 1, slower: float = 0.0, paired: bool = True
) -> list[Question]:
    """Questions of times with 1 % of noise, the first of which got slower."""
    generator = np.random.default_rng(seed)
    made = []
    for at in range(questions):
        baseline = np.exp(0.01 * generator.normal(size=blocks))
        candidate = np.exp(0.01 * generator.normal(size=blocks)) * (1 + slower * (at == 0))
        made.append(question(list(baseline), list(candidate), paired=paired))
    return made


def test_seven_pairs_are_enough_at_99_percent_for_any_number_of_questions() -> None:
    """A clear slowdown in one of 40 cells has the smallest chance of 7 sign flips: 1 in 128."""
    answers = decide(noisy(1, 7, questions=40, slower=0.10), confidence=0.99)
    assert answers[0].p_worse == pytest.approx(1 / 128)
    assert min(each.p_worse or 0 for each in answers[1:]) > 0.01


def test_five_blocks_on_each_side_are_enough_at_99_percent() -> None:
    """A clear slowdown between two separate runs has the smallest chance: 1 of 252 choices."""
    (answer,) = decide(noisy(3, 5, slower=0.30, paired=False), confidence=0.99)
    assert not answer.paired
    assert answer.p_worse == pytest.approx(1 / 252)


def test_the_ratio_is_that_of_the_candidate_to_the_baseline() -> None:
    """A rate that halves everywhere has the ratio 0.5 without any doubt, and is worse."""
    baseline = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]
    (answer,) = decide([question(baseline, [each / 2 for each in baseline], better="higher")])
    assert (answer.ratio, answer.low, answer.high) == pytest.approx((0.5, 0.5, 0.5))
    assert answer.p_worse == pytest.approx(1 / 128)
    assert answer.p_better == 1.0
    assert answer.n == 7


@pytest.mark.parametrize("paired", [True, False])
def test_equal_constant_sides_are_certainly_not_different(paired: bool) -> None:
    """Nothing varies and nothing differs: ratio 1 from 1 to 1, and no evidence of a change."""
    (answer,) = decide([question([3.0] * 8, [3.0] * 8, paired=paired)])
    assert (answer.ratio, answer.low, answer.high) == (1.0, 1.0, 1.0)
    assert (answer.p_worse, answer.p_better) == (1.0, 1.0)


@pytest.mark.parametrize("paired", [True, False])
def test_one_repetition_says_nothing_about_certainty(paired: bool) -> None:
    """A ratio without an interval or a chance, and the sentence why."""
    (answer,) = decide([question([2.0], [3.0], paired=paired)])
    assert answer.ratio == pytest.approx(1.5)
    assert answer.n == 1
    assert answer.p_worse is answer.p_better is answer.low is answer.noticeable is None
    assert answer.no_interval == "one repetition says nothing about certainty"


def test_few_pairs_have_no_interval_and_say_how_many_are_enough() -> None:
    """Five pairs can't have a 95 % interval; six can."""
    (few,) = decide([question([1.0] * 5, [1.1, 1.2, 1.1, 1.2, 1.1])])
    (enough,) = decide([question([1.0] * 6, [1.1, 1.2, 1.1, 1.2, 1.1, 1.2])])
    assert few.low is None
    assert few.no_interval == "5 pairs are too few for an interval; 6 are enough"
    assert (enough.low, enough.high) == (pytest.approx(1.1), pytest.approx(1.2))


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ([], [1.0], "the baseline has no value"),
        ([1.0], [], "the candidate has no value"),
        ([1.0, 0.0], [1.0, 2.0], "the baseline has a value of 0 or below"),
        ([1.0, 2.0], [1.0, -2.0], "the candidate has a value of 0 or below"),
        ([1.0, 2.0], [math.nan, 2.0], "the candidate has a value that is no number"),
        ([math.inf, 2.0], [1.0, 2.0], "the baseline has a value that is no number"),
    ],
)
def test_values_without_a_ratio_are_refused_with_a_reason(
    baseline: list[float], candidate: list[float], said: str
) -> None:
    """Nothing is divided by zero; the others of the family are answered all the same."""
    answers = decide([question(baseline, candidate), *noisy(4, 8)])
    assert answers[0].ratio is answers[0].p_worse is None
    assert said in (answers[0].reason or "")
    assert answers[1].p_worse is not None


def test_no_question_has_no_answer() -> None:
    """An empty comparison is answered by nothing."""
    assert decide([]) == []


def test_only_common_blocks_are_pairs() -> None:
    """Blocks that only one side has are left out where others are common."""
    baseline = {("s", block): 1.0 for block in range(8)} | {("t", 0): 900.0}
    candidate = {("s", block): 2.0 for block in range(8)} | {("u", 0): 0.001}
    (answer,) = decide([Question(baseline, candidate, "lower")])
    assert answer.paired
    assert (answer.n, answer.ratio) == (8, pytest.approx(2.0))


def test_families_share_the_chance_of_a_false_alarm() -> None:
    """Questions of two kinds, and of one more decided elsewhere, triple each chance."""
    pair, apart = noisy(5, 7, slower=0.1), noisy(6, 7, slower=0.5, paired=False)
    alone, (beside, other) = decide(pair), decide([*pair, *apart], other_families=1)
    assert alone[0].p_worse == pytest.approx(1 / 128)
    assert beside.p_worse == pytest.approx(3 / 128)
    assert other.p_worse == pytest.approx(3 / math.comb(14, 7))
    assert families_of([beside, other], others=1) == 3
    assert families_of(alone) == families_of([]) == 1


@pytest.mark.parametrize("sizes", [(6, 6), (20, 20), (10, 25)])
def test_swapping_separate_runs_swaps_the_chances(sizes: tuple[int, int]) -> None:
    """Also where choices of blocks are drawn, and where the sides are of unequal size."""
    generator = np.random.default_rng(16)
    one, other = (list(np.exp(0.01 * generator.normal(size=size))) for size in sizes)
    forward = decide([question(one, other, paired=False)], noise_floor=0.001)[0]
    backward = decide([question(other, one, paired=False)], noise_floor=0.001)[0]
    assert (forward.p_worse, forward.p_better) == (backward.p_better, backward.p_worse)


@pytest.mark.parametrize("blocks", [8, 20])
def test_swapping_the_sides_inverts_the_ratio_and_swaps_the_chances(blocks: int) -> None:
    """B against A says exactly the opposite of A against B."""
    questions = noisy(7, blocks, questions=5, slower=0.01)
    swapped = [Question(each.candidate, each.baseline, each.better) for each in questions]
    for one, other in zip(decide(questions), decide(swapped), strict=True):
        assert one.ratio is not None
        assert one.low is not None
        assert other.ratio == pytest.approx(1 / one.ratio)
        assert other.high == pytest.approx(1 / one.low)
        assert (other.p_worse, other.p_better) == (one.p_better, one.p_worse)


@pytest.mark.parametrize("paired", [True, False])
def test_units_and_the_order_of_questions_do_not_matter(paired: bool) -> None:
    """Seconds or nanoseconds, first or last: the same answer."""
    questions = noisy(8, 9, questions=4, slower=0.02, paired=paired)
    scaled = [
        Question(
            {key: 1e9 * value for key, value in each.baseline.items()},
            {key: 1e9 * value for key, value in each.candidate.items()},
            each.better,
        )
        for each in questions
    ]
    forward, backward = decide(questions), decide(scaled[::-1])[::-1]
    for one, other in zip(forward, backward, strict=True):
        assert one.ratio == pytest.approx(other.ratio)
        assert one.p_worse == pytest.approx(other.p_worse)
        assert one.noticeable == pytest.approx(other.noticeable)


@pytest.mark.parametrize("paired", [True, False])
def test_a_rate_and_its_time_are_judged_alike(paired: bool) -> None:
    """Tokens per second and seconds per token are as certain to be worse, if they are."""
    (time,) = noisy(9, 9, slower=0.03, paired=paired)
    rate = Question(
        {key: 1 / value for key, value in time.baseline.items()},
        {key: 1 / value for key, value in time.candidate.items()},
        "higher",
    )
    for one, other in zip(
        decide([time], noise_floor=0), decide([rate], noise_floor=0), strict=True
    ):
        assert one.p_worse == pytest.approx(other.p_worse)
        assert other.ratio == pytest.approx(1 / (one.ratio or 0))


@settings(max_examples=40, deadline=None)
@given(
    sides=st.lists(st.tuples(SIZES, SIZES), min_size=2, max_size=9),
    paired=st.booleans(),
    better=st.sampled_from(["higher", "lower"]),
)
def test_no_values_give_anything_but_numbers(
    sides: list[tuple[float, float]], paired: bool, better: Better
) -> None:
    """From 1e-300 to 1e300, equal or not: figures are finite or missing, chances are chances."""
    one, other = zip(*sides, strict=True)
    (answer,) = decide([question(one, other, better=better, paired=paired)])
    figures = (answer.ratio, answer.low, answer.high, answer.noticeable, answer.spread)
    assert all(figure is None or math.isfinite(figure) for figure in figures)
    assert answer.ratio is not None
    assert answer.ratio > 0
    for chance in (answer.p_worse, answer.p_better):
        assert chance is not None
        assert 0 < chance <= 1
    if answer.low is not None and answer.high is not None:
        assert answer.low <= answer.ratio * (1 + 1e-9)
        assert answer.ratio <= answer.high * (1 + 1e-9)


def test_many_samples_are_taken_together_and_stay_exact() -> None:
    """Of 20,000 pairs a change of 0.2 % is certain, and estimated to a tenth of it."""
    (answer,) = decide(noisy(10, 20_000, slower=0.002), confidence=0.99)
    assert answer.n == 20_000
    assert answer.p_worse is not None
    assert answer.p_worse < 0.001
    assert answer.ratio == pytest.approx(1.002, abs=0.0002)


def test_one_disturbed_block_is_no_regression() -> None:
    """A repetition ten times as slow moves neither the verdict nor, much, the estimate."""
    (quiet,) = noisy(11, 12)
    disturbed = dict(quiet.candidate)
    disturbed["a", 3] *= 10
    (answer,) = decide([Question(quiet.baseline, disturbed, "lower")])
    assert answer.ratio == pytest.approx(1.0, abs=0.01)
    assert answer.p_worse is not None
    assert answer.p_worse > 0.05


def test_repetitions_settle_what_they_are_said_to() -> None:
    """Least numbers for no noise: 7 pairs at 99 %, 5 blocks on each side of separate runs."""
    constant = decide([question([1.0] * 8, [1.1] * 8)])[0]
    apart = decide([question([1.0] * 8, [1.1] * 8, paired=False)])[0]
    assert repetitions_for(constant, 0.05, questions=40, confidence=0.99) == 7
    assert repetitions_for(apart, 0.05, questions=40, confidence=0.99) == 5


def test_repetitions_are_told_even_where_too_few_were_made() -> None:
    """Four pairs could never be certain at 99 %; how many could is still told."""
    (answer,) = decide(noisy(12, 4), confidence=0.99)
    assert answer.noticeable is None
    needed = repetitions_for(answer, 0.05, questions=1, confidence=0.99)
    assert needed is not None
    assert needed >= 7


def test_smaller_changes_and_more_questions_take_more_repetitions() -> None:
    """The number grows both ways, and there is none within the noise floor of separate runs."""
    (pair,) = decide(noisy(13, 20))
    (apart,) = decide(noisy(13, 20, paired=False))
    few = repetitions_for(pair, 0.05, questions=1, confidence=0.99) or 0
    assert few < (repetitions_for(pair, 0.01, questions=1, confidence=0.99) or 0)
    many = repetitions_for(pair, 0.01, questions=100, confidence=0.99) or 0
    assert many > (repetitions_for(pair, 0.01, questions=1, confidence=0.99) or 0)
    assert repetitions_for(apart, 0.01, questions=1) is None
    assert repetitions_for(apart, 0.0, questions=1) is None
    assert repetitions_for(apart, 0.05, questions=1) is not None


@pytest.mark.parametrize("paired", [True, False])
def test_two_blocks_are_answered_without_certainty(paired: bool) -> None:
    """Of several questions of two blocks each, none is certain, and none has an interval."""
    for answer in decide(noisy(14, 2, questions=3, slower=0.5, paired=paired)):
        assert answer.n == 2
        assert answer.p_worse is not None
        assert answer.p_worse > 0.05
        assert answer.noticeable is answer.low is None
        assert "too few for an interval" in (answer.no_interval or "")


def test_several_runs_on_a_side_may_lack_a_question() -> None:
    """A cell that only one of three runs of a side has is compared by what there is."""
    generator = np.random.default_rng(15)

    def side(names: str) -> dict[tuple[str, int], float]:
        return {
            (name, block): float(np.exp(0.01 * generator.normal()))
            for name in names
            for block in range(5)
        }

    answers = decide(
        [Question(side("abc"), side("xyz"), "lower"), Question(side("b"), side("z"), "lower")]
    )
    assert [each.n for each in answers] == [15, 5]
    assert all(each.p_worse is not None and each.p_worse > 0.05 for each in answers)
    assert all(each.inflation >= 1 for each in answers)


@pytest.mark.parametrize("sizes", [(20, 7), (7, 20), (60, 5)])
def test_a_rate_that_halves_is_certain_on_sides_of_any_size(sizes: tuple[int, int]) -> None:
    """By 2 % of noise a half is 35 standard deviations: the least chance there is, not 0.05."""
    generator = np.random.default_rng(17)
    one, other = (np.exp(0.02 * generator.normal(size=size)) for size in sizes)
    apart = question(list(one), list(other / 2), better="higher", paired=False)
    (answer,) = decide([apart], confidence=0.99)
    assert answer.p_worse is not None
    assert answer.p_worse <= 0.001


@pytest.mark.parametrize("floor", [1.0, 2.0, 1e9])
def test_nothing_is_worse_than_a_floor_of_all(floor: float) -> None:
    """A rate can't fall by more than all of itself, so no fall is beyond such a floor."""
    fallen = question([100.0 + at for at in range(9)], [1.0] * 9, better="higher", paired=False)
    (answer,) = decide([fallen], noise_floor=floor)
    assert answer.p_worse == 1.0
    assert answer.noticeable is None


def test_a_change_does_not_hide_what_would_have_been_noticed() -> None:
    """The noise of eight pairs is the same whether all got twice as slow or not."""
    (equal,) = noisy(18, 8)
    slower = {key: 1.96 * value for key, value in equal.candidate.items()}
    (still,) = decide([equal], confidence=0.99)
    (moved,) = decide([Question(equal.baseline, slower, "lower")], confidence=0.99)
    assert moved.noticeable == pytest.approx(still.noticeable)
    pairs = [math.log(equal.candidate[key] / value) for key, value in equal.baseline.items()]
    limit = stats.t.isf(0.01, 7)
    needed = optimize.brentq(lambda shift: stats.nct.sf(limit, 7, shift) - 0.95, 1, 9)
    assert moved.noticeable == pytest.approx(needed * np.std(pairs, ddof=1) / 8**0.5, rel=0.5)


@pytest.mark.parametrize("blocks", [8, 20])
def test_values_that_never_varied_would_show_any_change(blocks: int) -> None:
    """Equal in every pair, or all but a page of memory: some change is too small, hardly any."""
    pages = [1e8 + 4096.0 * (at % 3 == 0) for at in range(blocks)]
    equal, moving = decide(
        [question([3.0] * blocks, [3.0] * blocks), question([1e8] * blocks, pages)],
        confidence=0.99,
    )
    assert equal.noticeable == pytest.approx(0.0, abs=1e-4)
    assert equal.noticeable != 0.0
    assert moving.noticeable == pytest.approx(4096 / 1e8, rel=5)


def test_memory_that_moves_by_pages_does_not_blunt_its_neighbours() -> None:
    """What would be noticed in a time is nearly the same with memory asked beside it."""
    (time,) = noisy(19, 10)
    pages = [1e8 + 4096.0 * (at % 4 == 0) for at in range(10)]
    memory = question([1e8] * 10, pages)
    alone, beside = decide([time], confidence=0.99)[0], decide([time, memory], confidence=0.99)[0]
    assert beside.noticeable == pytest.approx(alone.noticeable, rel=0.2)


@pytest.mark.parametrize("paired", [True, False])
def test_the_greatest_confidence_can_be_reached(paired: bool) -> None:
    """Of three families at 99.9 %, half for each direction, what is clear is certain enough."""
    (answer,) = decide(
        noisy(20, 20, slower=0.5, paired=paired), confidence=MOST_CONFIDENCE, other_families=2
    )
    assert answer.p_worse is not None
    assert answer.p_worse <= (1 - MOST_CONFIDENCE) / 2
    assert answer.noticeable is not None


def test_no_repetitions_reach_a_confidence_that_draws_do_not_tell() -> None:
    """A chance of one in a million is less than any number of drawn patterns says."""
    (answer,) = decide(noisy(21, 20))
    assert repetitions_for(answer, 0.5, questions=1, confidence=1 - 1e-6) is None
    assert repetitions_for(answer, 0.5, questions=1, confidence=MOST_CONFIDENCE) is not None
