"""One figure of several goals, by the user's weights, and how sure its order is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.metrics.statistics import RESAMPLES
from edgebench.harness.results.cell import Summary
from edgebench.reports.format import NOT_MEASURED, Shown, number
from edgebench.reports.selection.goals import is_higher_better, with_source
from edgebench.reports.selection.samples import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from edgebench.harness.results.measured import Source
    from edgebench.reports.selection.goals import Stand
    from edgebench.reports.selection.samples import Floats

SURE: Final = 0.975
"""Share of resamples from which on the best is called so without reserve."""

POSSIBLE: Final = 0.025
"""Share of resamples above which another one can't be ruled out."""

_SAME = 1e-12

_DECIMALS: Final = 3
"""Of every score, so that those of a column can be compared at a glance."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of variants.

    Attributes:
        by_variant: from 0 to 1, 1 for the best in everything; with its interval where all that
            is weighed has one.
        wins: of the variants that none dominates, the share of resamples in which each has the
            highest score; None where an interval is missing.
    """

    by_variant: Mapping[str, Summary]
    wins: Mapping[str, float] | None

    def of(self, variant: str) -> float:
        """The score of a variant."""
        return self.by_variant[variant].median or 0.0


def scored(
    variants: Sequence[str],
    by_goal: Mapping[str, Mapping[str, Stand]],
    weights: Mapping[str, float],
) -> tuple[Scores, dict[str, Floats]]:
    """Score variants: the weighted geometric mean of each value relative to the best one.

    Ratios are what the goals have in common, and the geometric mean does not depend on what they
    are relative to: another best one changes all scores by the same factor, and no order. Fleming
    and Wallace, How Not to Lie with Statistics: The Correct Way to Summarize Benchmark Results,
    Communications of the ACM 29 (3), 1986.

    Args:
        variants: those that are compared, each with a known value in each goal that is weighed.
        by_goal: by goal and variant.
        weights: by goal; they add up to 1.

    Returns:
        The scores, and the logarithm of each under each resampling, of the variants for which
        that is known. `Scores.wins` is for `with_wins` to add.
    """
    points = np.zeros(len(variants))
    drawn = np.zeros((len(variants), RESAMPLES))
    known = np.ones(len(variants), dtype=bool)
    for goal, weight in weights.items():
        stands = [by_goal[goal][each] for each in variants]
        sign = 1 if is_higher_better(goal) else -1
        values = sign * np.log([each.value for each in stands])
        points += weight * (values - values.max())
        known &= [each.drawn is not None for each in stands]
        own = np.array(
            [
                # What has no interval stands still, and says so by having none.
                np.full(RESAMPLES, value) if each.drawn is None else sign * each.drawn
                for each, value in zip(stands, values, strict=True)
            ]
        )
        drawn += weight * (own - own.max(axis=0))
    summaries = {}
    for place, variant in enumerate(variants):
        low, high = interval(np.exp(drawn[place])) if known[place] else (None, None)
        summaries[variant] = Summary(
            median=math.exp(points[place]),
            ci_low=low,
            ci_high=high,
            n=min((by_goal[goal][variant].summary.n for goal in weights), default=0),
            unit="1",
            source=weakest(by_goal[goal][variant].summary.source for goal in weights),
        )
    logs = {each: drawn[place] for place, each in enumerate(variants) if known[place]}
    return Scores(summaries, None), logs


def with_wins(scores: Scores, front: Sequence[str], logs: Mapping[str, Floats]) -> Scores:
    """The scores with how often each variant of the front is the best; equal ones share a win.

    Where any variant lacks an interval, also one that is dominated, that is not known.
    """
    if not front or any(each not in logs for each in scores.by_variant):
        return scores
    drawn = np.stack([logs[each] for each in front])
    first = drawn >= drawn.max(axis=0) - _SAME
    shares = (first / first.sum(axis=0)).mean(axis=1)
    return Scores(scores.by_variant, dict(zip(front, map(float, shares), strict=True)))


def weakest(sources: Iterable[Source]) -> Source:
    """The source of what is made of such values: estimated where one is, else derived."""
    return "estimated" if "estimated" in sources else "derived"


def certainty_of(best: str, scores: Scores, compared: int) -> str:
    """How sure it is that a variant is the best.

    Args:
        best: the variant of the front with the highest score.
        scores: with the wins, if they are known.
        compared: how many variants are left to choose from.

    Returns:
        ``alone``, ``unsure``, ``sure`` or ``tie``; see `edgebench.reports.selection.view.Measured`.
    """
    if compared == 1:
        return "alone"
    if scores.wins is None:
        return "unsure"
    return "sure" if scores.wins[best] >= SURE else "tie"


def contenders(best: str, scores: Scores) -> tuple[str, ...]:
    """The best variant, then those that can't be ruled out, the most frequent winner first."""
    wins = scores.wins or {}
    others = sorted((each for each in wins if each != best), key=lambda each: -wins[each])
    possible = [each for each in others if wins[each] > POSSIBLE]
    # Many rare winners together may leave the best one short of certain.
    return (best, *(possible or others[:1]))


def score_words(score: Summary) -> str:
    """A score in a sentence: with its interval, and whether it is made of an estimate."""
    return with_source(str(score_text(score)), score)


def score_text(score: Summary) -> Shown:
    """A score with its interval, all scores with the same number of decimals."""
    if score.median is None:
        return Shown(NOT_MEASURED)
    value = number(score.median, _DECIMALS)
    if score.ci_low is None or score.ci_high is None:
        return Shown(value)
    low, high = (number(each, _DECIMALS) for each in (score.ci_low, score.ci_high))
    return Shown(value, "" if low == high else f"[{low}, {high}]")
