"""Estimates that a few disturbed blocks don't move, with exact intervals for them.

Hodges and Lehmann's estimates with the intervals that belong to Wilcoxon's tests (Hollander, Wolfe
and Chicken, Nonparametric Statistical Methods, 3.2-3.3 and 4.2-4.3): no distribution is assumed,
and swapping the sides mirrors both.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.harness.compare.max_t import Floats

COVERAGE = 0.95
LEAST_PAIRS = 6
"""With five, even the whole range misses in 1 of 16 cases."""
LEAST_BLOCKS = 4
"""On each side: with three, even the whole range misses in 1 of 10 cases."""
_EXACT_UP_TO = 40


class Estimate(NamedTuple):
    """A shift, with its interval where there are enough values."""

    centre: float
    low: float | None
    high: float | None


def one_sample(values: Sequence[float] | Floats) -> Estimate:
    """The centre of differences: the median of all means of two.

    Args:
        values: at least one; memory grows with the square of their number.
    """
    given = np.asarray(values, dtype=float)
    first, second = np.triu_indices(len(given))
    means = np.sort((given[first] + given[second]) / 2.0)
    beyond = _signed_rank_margin(len(given)) if len(given) >= LEAST_PAIRS else None
    return _estimate(means, beyond)


def two_samples(
    baseline: Sequence[float] | Floats, candidate: Sequence[float] | Floats
) -> Estimate:
    """How far the candidate lies above the baseline: the median of all differences.

    Args:
        baseline: at least one value; memory grows with the product of their numbers.
        candidate: the same.
    """
    one, other = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    differences = np.sort((other[:, None] - one[None, :]).ravel())
    enough = min(len(one), len(other)) >= LEAST_BLOCKS
    return _estimate(differences, _rank_sum_margin(len(one), len(other)) if enough else None)


def robust_spread(residuals: Floats, *, freedom: int = 1) -> float:
    """The standard deviation of residuals, none of which counts for more than 3 of a typical one.

    Args:
        residuals: from their own centres.
        freedom: how many centres were taken off.
    """
    if len(residuals) <= freedom:
        return 0.0
    typical = 1.4826 * float(np.median(np.abs(residuals)))
    if typical > 0:
        residuals = np.clip(residuals, -3 * typical, 3 * typical)
    return math.sqrt(float(np.sum(residuals**2)) / (len(residuals) - freedom))


def _estimate(ordered: Floats, beyond: int | None) -> Estimate:
    centre = float(np.median(ordered))
    if beyond is None:
        return Estimate(centre, None, None)
    return Estimate(centre, float(ordered[beyond]), float(ordered[-1 - beyond]))


@cache
def _signed_rank_margin(n: int) -> int:
    """How many means may be left out at each end."""
    if n <= _EXACT_UP_TO:
        counts = np.ones(1)
        for rank in range(1, n + 1):
            grown = np.zeros(len(counts) + rank)
            grown[: len(counts)] = counts
            grown[rank:] += counts
            counts = grown
        return _margin(counts / counts.sum())
    return _normal_margin(n * (n + 1) / 4.0, n * (n + 1) * (2 * n + 1) / 24.0)


@cache
def _rank_sum_margin(n: int, m: int) -> int:
    """How many differences may be left out at each end."""
    if max(n, m) <= _EXACT_UP_TO:
        # The Gaussian binomial coefficient, whose powers count the outcomes of each rank sum.
        counts = np.ones(1)
        for k in range(1, n + 1):
            grown = np.zeros(len(counts) + m + k)
            grown[: len(counts)] = counts
            grown[m + k :] -= counts
            for at in range(k, len(grown)):
                grown[at] += grown[at - k]
            counts = grown[: k * m + 1]
        return _margin(counts / counts.sum())
    return _normal_margin(n * m / 2.0, n * m * (n + m + 1) / 12.0)


def _margin(chances: NDArray[np.float64]) -> int:
    """How many may be left out at an end.

    The greatest k for which the rank statistic is k or less in at most half of the cases that the
    interval may miss; 0 where there is none.
    """
    below = np.cumsum(chances)
    return max(int(np.searchsorted(below, (1.0 - COVERAGE) / 2.0, side="right")) - 1, 0)


def _normal_margin(mean: float, variance: float) -> int:
    deviate = -special.ndtri((1.0 - COVERAGE) / 2.0)
    return max(int(np.floor(mean - deviate * np.sqrt(variance) - 0.5)), 0)
