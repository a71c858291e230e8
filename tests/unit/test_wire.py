"""What the harness takes for scores, and what it refuses."""

from __future__ import annotations

import json

import pytest

from edgebench.harness import wire
from edgebench.harness.errors import InvalidResultError, RunnerProtocolError
from edgebench.runners.base import ScoreRequest

REQUEST = ScoreRequest([5, 6, 7], start=1, candidates=[[1, 2], [3]])
RIGHT = {
    "log_likelihoods": [-1.5, -0.25],
    "top_ids": [6, 9],
    "candidates": [[-2.0, -3], [-4.0]],
}
VOCABULARY = 10


def test_right_scores_are_taken_as_they_are() -> None:
    """Each number stands where it was sent."""
    scores = wire.scores(RIGHT, REQUEST, VOCABULARY)
    assert list(scores.log_likelihoods) == [-1.5, -0.25]
    assert scores.top_ids is not None
    assert list(scores.top_ids) == [6, 9]
    assert scores.candidates is not None
    assert [list(numbers) for numbers in scores.candidates] == [[-2.0, -3.0], [-4.0]]


def test_what_a_framework_hides_stays_hidden() -> None:
    """Neither likeliest tokens nor candidates are made up."""
    scores = wire.scores({"log_likelihoods": [-1.0, -1.0]}, REQUEST, VOCABULARY)
    assert scores.top_ids is None
    assert scores.candidates is None


def test_candidates_that_nobody_asked_for_are_left_out() -> None:
    """An empty list and None mean the same there."""
    answer = {"log_likelihoods": [-1.0], "candidates": [[]]}
    assert wire.scores(answer, ScoreRequest([1, 2]), VOCABULARY).candidates is None


def test_rounding_above_0_is_0() -> None:
    """A token that is certain may come out a hair above 0, which no likelihood is."""
    answer = RIGHT | {"log_likelihoods": [1e-7, -1.0], "candidates": [[5e-7, -3.0], [-4.0]]}
    scores = wire.scores(answer, REQUEST, VOCABULARY)
    assert list(scores.log_likelihoods) == [0.0, -1.0]
    assert scores.candidates is not None
    assert list(scores.candidates[0]) == [0.0, -3.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_likelihoods": [-1.0]}, "1 scores for 2 tokens"),
        ({"log_likelihoods": [-1.0, 2e-6]}, "a log-likelihood above 0: 2e-06"),
        ({"top_ids": [1]}, "1 likeliest tokens for 2 positions"),
        ({"top_ids": [1, 10]}, "a token id outside of the vocabulary of 10"),
        ({"top_ids": [-1, 1]}, "a token id outside of the vocabulary of 10"),
        ({"candidates": [[-1.0], [-1.0]]}, "2 rated candidates of 3 asked for"),
        ({"candidates": [[-1.0], [-1.0, -1.0]]}, "3 rated candidates of 3 asked for, or at other"),
        ({"candidates": [[-1.0, 0.5], [-1.0]]}, "a log-likelihood above 0: 0.5"),
        # JSON has no infinity, and numbers that are too large for any other.
        (json.loads('{"log_likelihoods": [-1.0, -1e999]}'), "token 7 at position 2 is -inf"),
        (json.loads('{"candidates": [[-1.0, -1e999], [-1.0]]}'), "token 2 at position 1 is -inf"),
    ],
)
def test_scores_that_can_not_be_true_are_refused(change: dict[str, object], words: str) -> None:
    """Other shapes than asked for, foreign ids and likelihoods above 1 are no results."""
    with pytest.raises(InvalidResultError) as caught:
        wire.scores(RIGHT | change, REQUEST, VOCABULARY)
    assert words in caught.value.message


@pytest.mark.parametrize("change", [{"log_likelihoods": None}, {"top_ids": [1.5, 2]}])
def test_scores_of_other_types_are_no_protocol(change: dict[str, object]) -> None:
    """A malformed answer names the place."""
    with pytest.raises(RunnerProtocolError, match=r"scores is malformed: (log_like|top_ids)"):
        wire.scores(RIGHT | change, REQUEST, VOCABULARY)
