"""Scores of the fake runner: probabilities that a test can compute by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure, Scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.runners.base import ScoreRequest

FAVOURITE = 3 + ord(" ")
"""The token that a skewed distribution gives one half to; the others share the rest evenly."""

HIDES_TOP = ("candidates", "likelihoods")
HIDES_CANDIDATES = ("likeliest", "likelihoods")


def score(
    request: ScoreRequest, vocabulary: int, probabilities: str, tells: str, fail: str, at: int
) -> Scores:
    """Rate tokens by one distribution at every position.

    Args:
        request: as the protocol has it.
        vocabulary: how many tokens share the probability.
        probabilities: the option of that name.
        tells: the option of that name.
        fail: what of the option of that name spoils an answer.
        at: which of the scored tokens is rated with no number where that fails.

    Raises:
        RunnerFailure: it was told to rate nothing (unsupported), or to refuse (framework).
    """
    if tells == "none":
        msg = "the fake framework was told to rate nothing"
        raise RunnerFailure(msg, reason="unsupported")
    if fail == "refuse":
        msg = "the fake framework was told to refuse this rating"
        raise RunnerFailure(msg)
    skewed = probabilities == "skewed"

    def rate(ids: Sequence[int]) -> list[float]:
        if not skewed:
            return [-math.log(vocabulary)] * len(ids)
        others = -math.log(2 * (vocabulary - 1))
        return [-math.log(2) if number == FAVOURITE else others for number in ids]

    rated = rate(request.ids[request.start :])
    top_ids = [FAVOURITE if skewed else 0] * len(rated)
    if fail == "nan":
        rated[min(at, len(rated) - 1)] = math.nan
    elif fail == "ids":
        top_ids[0] = vocabulary
    elif fail == "count":
        rated.pop()
    candidates = [rate(ids) for ids in request.candidates] or None
    return Scores(
        log_likelihoods=rated,
        top_ids=None if tells in HIDES_TOP else top_ids,
        candidates=None if tells in HIDES_CANDIDATES else candidates,
    )
