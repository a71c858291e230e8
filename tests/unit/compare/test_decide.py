"""Answers to many questions at once: what they say, and what must not change them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebench.harness.compare.decide import decide, repetitions_for
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
