"""Quality, compared: the same windows of a text on both sides, pair by pair.

A text has one value on each side, which nothing makes less certain but which windows it is made of.
So the windows are what the test turns the signs of; see `edgebench.harness.quality.figures`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from edgebench.harness.compare.model import Answer
from edgebench.harness.quality.figures import MIN_WINDOWS, holm, paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import CellKey, Pair
    from edgebench.harness.quality.figures import Difference

TESTED: Final = frozenset({"perplexity", "perplexity_ratio", "bits_per_byte"})
"""Figures that the likelihoods of the scored tokens make: one test serves all three."""

NO_TEST: Final = "no test is made of it; the perplexity of the same text has one"
OTHER_WINDOWS: Final = "the two did not rate the same windows"
QUALITY_MARGIN: Final = 0.001
"""Of a figure of quality, up to which a change counts as none: 2 % of a perplexity is more than
most quantisations cost."""

_POWER: Final = 0.95


def quality_answers(
    pairs: Sequence[Pair], *, confidence: float, families: int
) -> dict[CellKey, Answer]:
    """Whether the candidate rates each text better or worse, by the candidate's cells.

    Args:
        pairs: whose texts both sides rated.
        confidence: of all families together.
        families: how many there are, this one among them.

    Returns:
        Answers about the perplexity; p are adjusted by Holm for all of `pairs`.
    """
    found: dict[CellKey, Difference] = {}
    reasons: dict[CellKey, str] = {}
    for pair in pairs:
        mine, theirs = pair.candidate.windows, pair.baseline.windows
        if not mine or [each.tokens for each in mine] != [each.tokens for each in theirs]:
            reasons[pair.candidate.key] = OTHER_WINDOWS
        else:
            found[pair.candidate.key] = paired_difference(mine, theirs)
    tested = {key: each.p / 2 for key, each in found.items() if each.p is not None}
    adjusted = holm(tested)
    level = (1 - confidence) / max(families, 1) / max(len(tested), 1)
    answers = {key: Answer(None, reason=reason) for key, reason in reasons.items()}
    for pair in pairs:
        difference = found.get(pair.candidate.key)
        if difference is None:
            continue
        p = adjusted.get(pair.candidate.key)
        answers[pair.candidate.key] = _answer(
            pair, difference, None if p is None else min(1.0, families * p), level
        )
    return answers


def of_bytes(answer: Answer, pair: Pair) -> Answer:
    """The same of the bits per byte: the same sums over the same bytes, without the exponential.

    The interval takes the baseline's own bits as given.
    """
    windows = pair.baseline.windows
    tokens = sum(each.tokens for each in windows)
    nat = -math.fsum(each.log_likelihood for each in windows) / tokens if tokens else 0.0
    if answer.ratio is None or nat <= 0:
        return answer

    def linear(ratio: float | None) -> float | None:
        return None if ratio is None else max(0.0, 1 + math.log(ratio) / nat)

    noticeable = answer.noticeable
    return Answer(
        ratio=linear(answer.ratio),
        low=linear(answer.low),
        high=linear(answer.high),
        paired=True,
        n=answer.n,
        p_worse=answer.p_worse,
        p_better=answer.p_better,
        noticeable=None if noticeable is None else math.log1p(noticeable) / nat,
        no_interval=answer.no_interval,
    )


def _answer(pair: Pair, difference: Difference, p: float | None, level: float) -> Answer:
    if not math.isfinite(difference.ratio):
        return Answer(None, paired=True, n=difference.windows, reason=difference.reason)
    by = np.array(
        [
            theirs.log_likelihood - mine.log_likelihood
            for mine, theirs in zip(pair.candidate.windows, pair.baseline.windows, strict=True)
        ]
    )
    if not by.any():
        # Equal in every window: nothing is to be tested, however few they are.
        return Answer(1.0, 1.0, 1.0, paired=True, n=len(by), p_worse=1.0, p_better=1.0)
    # The larger of the two directions is as good as certain not to be.
    other = None if p is None else 1.0
    worse = difference.ratio > 1
    return Answer(
        ratio=difference.ratio,
        low=difference.low,
        high=difference.high,
        paired=True,
        n=difference.windows,
        p_worse=p if worse else other,
        p_better=other if worse else p,
        noticeable=_noticeable(pair, by, level),
        no_interval=difference.reason,
    )


def _noticeable(
    pair: Pair, by: np.ndarray[tuple[int, ...], np.dtype[np.float64]], level: float
) -> float | None:
    """The increase of the perplexity that such windows tell in 95 % of cases, about."""
    if len(by) < MIN_WINDOWS:
        return None
    tokens = sum(each.tokens for each in pair.candidate.windows)
    error = math.sqrt(len(by)) * float(np.std(by, ddof=1)) / tokens
    needed = float(special.ndtri(1 - level) + special.ndtri(_POWER)) * error
    return math.expm1(min(needed, 700.0))
