"""Scores from logits, compared with a softmax in float64 written here."""

from __future__ import annotations

import numpy as np
import pytest

from edgebench.runners import rated_logits
from edgebench.runners.base import RunnerFailure, ScoreRequest
from edgebench.runners.rated_logits import RatedLogits, positions_at_once

VOCABULARY = 5000
START = 3
COUNT = 40


def exact(rows: np.ndarray) -> np.ndarray:
    """Log-likelihoods of a whole vocabulary, (positions, vocabulary)."""
    wide = rows.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    logs: np.ndarray = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    return logs


def logits(kind: str) -> np.ndarray:
    """Of `COUNT` positions."""
    chance = np.random.default_rng(3)
    rows = chance.standard_normal((COUNT, VOCABULARY)).astype(np.float32)
    if kind == "peaked":
        rows[np.arange(COUNT), chance.integers(0, VOCABULARY, COUNT)] += 60
    elif kind == "wide":
        rows *= 40
    elif kind == "far from zero":
        rows += 3000
    elif kind == "flat":
        rows[:] = -7.25
    return rows


@pytest.mark.parametrize("kind", ["plain", "peaked", "wide", "far from zero", "flat"])
@pytest.mark.parametrize("block", [4 * VOCABULARY, 4 * VOCABULARY * 7, 1 << 30])
def test_scores_are_those_of_float64(
    kind: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 1e-6 nat, however the positions come and however many are worked on at once."""
    monkeypatch.setattr(rated_logits, "BLOCK_BYTES", block)
    rows = logits(kind)
    wanted = exact(rows)
    chance = np.random.default_rng(4)
    ids = chance.integers(0, VOCABULARY, START + COUNT).tolist()
    # Of each position another number of candidates, of the first one none.
    candidates = [chance.integers(0, VOCABULARY, 6 * at).tolist() for at in range(COUNT)]
    rated = RatedLogits(ScoreRequest(ids, START, candidates))
    for first, last in ((0, 1), (1, 30), (30, COUNT)):
        rated.add(rows[first:last])
    scores = rated.scores("it", "it is bad")
    tokens = np.array(ids[START:])
    found = np.array(scores.log_likelihoods)
    assert np.abs(found - wanted[np.arange(COUNT), tokens]).max() < 1e-6
    assert scores.top_ids == wanted.argmax(axis=1).tolist()
    assert scores.candidates is not None
    assert [len(each) for each in scores.candidates] == [6 * at for at in range(COUNT)]
    for at, (asked, each) in enumerate(zip(candidates, scores.candidates, strict=True)):
        assert np.abs(np.array(each) - wanted[at, asked]).max(initial=0) < 1e-6


def test_without_candidates_none_are_told() -> None:
    """None, and not a list of empty ones."""
    rated = RatedLogits(ScoreRequest([1, 2], 1))
    rated.add(np.zeros((1, 4), np.float32))
    scores = rated.scores("it", "it is bad")
    assert scores.candidates is None
    assert scores.log_likelihoods == pytest.approx([-np.log(4)], abs=1e-12)


@pytest.mark.parametrize(
    ("value", "limit", "said"),
    [
        (np.nan, np.inf, "token 77 as nan"),
        (np.inf, np.inf, "token 77 as inf"),
        (-np.inf, np.inf, "token 77 as -inf"),
        (3e38, 1e30, r"token 77 as 3e\+38"),
        (-3e38, 1e30, r"token 77 as -3e\+38"),
    ],
)
def test_a_logit_that_is_no_number_is_told_with_its_position(
    value: float, limit: float, said: str
) -> None:
    """The first one's, though none of the tokens that are asked for has it."""
    rows = logits("plain")
    rows[[17, 30], 77] = value
    rated = RatedLogits(ScoreRequest(list(range(100, 100 + START + COUNT)), START), limit)
    for first in range(0, COUNT, 10):
        rated.add(rows[first : first + 10])
    with pytest.raises(RunnerFailure, match=f"{said}, for position 20 of 43 .*: it is bad") as told:
        rated.scores("it", "it is bad")
    assert told.value.reason == "framework"


def test_logits_in_half_precision_are_rated_in_full() -> None:
    """As accurately as the same numbers in float32."""
    rows = logits("plain").astype(np.float16)
    rated = RatedLogits(ScoreRequest([5] * (COUNT + 1), 1))
    rated.add(rows)  # type: ignore[arg-type] # what a library may give all the same
    found = np.array(rated.scores("it", "it is bad").log_likelihoods)
    assert np.abs(found - exact(rows)[:, 5]).max() < 1e-6


def test_what_is_made_at_once_is_bounded() -> None:
    """By 64 MiB of logits and by what a framework takes, and it is never none."""
    assert positions_at_once(49152) == 341
    assert positions_at_once(262144) == 64
    assert positions_at_once(49152, 100) == 100
    assert positions_at_once(1 << 25) == 1
