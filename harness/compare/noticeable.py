"""How small a change a test would have noticed, and how many blocks it would take for another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special, stats

from edgebench.harness.compare.max_t import LEAST_TOLD
from edgebench.harness.compare.paired import CLIP, clip_limits, middle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgebench.harness.compare.max_t import Floats
    from edgebench.harness.metrics.definitions import Better

POWER = 0.95
MOST_BLOCKS = 1_000_000
MOST_SHIFT = math.log(1_000.0)
BEYOND_ALL = 1_500.0
"""No two numbers above 0 have a ratio of which this is the logarithm."""
_ROUNDS, _CLOSE = 10, 1e-6


def shift_noticed(t: float, freedom: float, error: float) -> float | None:
    """The smallest true shift whose t exceeds a limit in `POWER` of cases.

    By the usual approximation of the noncentral t distribution (Johnson, Kotz and Balakrishnan,
    Continuous Univariate Distributions 2, chapter 31).

    Args:
        t: the limit.
        freedom: of t, above 0.
        error: the standard error of the shift.

    Returns:
        In the unit of the error; None where the limit can't be exceeded.
    """
    needed = errors_needed(t, freedom)
    return None if needed is None else needed * error


def errors_needed(t: float, freedom: float) -> float | None:
    """How many standard errors that shift is."""
    if not math.isfinite(t) or freedom <= 0:
        return None
    deviate = float(special.ndtri(POWER))
    return t * (1 - 1 / (4 * freedom)) + deviate * math.sqrt(1 + t * t / (2 * freedom))


class Noticed(NamedTuple):
    """A shift that is noticed, and the standard deviation of what the test sees there."""

    shift: float
    spread: float


def noticed_in_pairs(residuals: Floats, needed: float) -> Noticed:
    """The shift that is so many standard deviations, as the paired test sees them.

    The test clips differences by their median size, which grows with the shift: the larger that
    is, the more of a disturbed block it sees. Shift and spread are found in turn.

    Args:
        residuals: of at least two pairs, from their centre.
        needed: how many standard deviations of one pair.
    """
    both = np.r_[residuals, -residuals]
    share = len(residuals) / (len(residuals) - 1)
    spread = math.sqrt(float(np.mean(both**2)) * share)
    shift = needed * spread
    for _ in range(_ROUNDS):
        seen = both + shift
        limit = CLIP * float(np.median(np.abs(seen)))
        seen = np.clip(seen, -limit, limit)
        spread, before = math.sqrt(float(np.var(seen)) * share), shift
        shift = needed * spread + shift - float(np.mean(seen))
        if math.isclose(shift, before, rel_tol=_CLOSE):
            break
    return Noticed(shift, spread)


def noticed_apart(baseline: Floats, candidate: Floats, needed: float) -> Noticed:
    """The same as the test of separate runs sees it.

    Args:
        baseline: its residuals, from their own centre.
        candidate: the same; at least three of both together.
        needed: how many standard deviations of one block.
    """
    least, most = len(baseline), len(candidate)
    freedom = least + most - 2
    spread = math.sqrt(float(np.sum(baseline**2) + np.sum(candidate**2)) / freedom)
    shift = needed * spread
    for _ in range(_ROUNDS):
        seen = np.r_[baseline, candidate + shift][:, None]
        seen = clip_apart(seen, np.array([least]), np.array([most]))[:, 0]
        one, other = seen[:least], seen[least:]
        spread, before = (
            math.sqrt(float(least * np.var(one) + most * np.var(other)) / freedom),
            shift,
        )
        shift = needed * spread + shift - float(np.mean(other) - np.mean(one))
        if math.isclose(shift, before, rel_tol=_CLOSE):
            break
    return Noticed(shift, spread)


def clip_apart(values: Floats, baseline: NDArray[np.int_], candidate: NDArray[np.int_]) -> Floats:
    """Values about their median without far outliers; NaN becomes 0.

    Which side a value is of doesn't count, or exchanging blocks would be no exact test. So that the
    smaller side is not taken for outliers where it differs, half of its number always remain.

    Args:
        values: of both sides, one row a block, one column a question.
        baseline: how many known values each question has on this side.
        candidate: the same.
    """
    values = values - middle(values)
    limits = clip_limits(values)
    half = (np.minimum(baseline, candidate) + 1) // 2
    ordered = np.sort(values, axis=0)  # NaN at the end
    high = np.take_along_axis(ordered, (baseline + candidate - half)[None, :], axis=0)[0]
    low = np.take_along_axis(ordered, (half - 1)[None, :], axis=0)[0]
    return np.nan_to_num(np.clip(values, np.minimum(-limits, low), np.maximum(limits, high)))


def as_worsening(shift: float, better: Better) -> float | None:
    """The share of the baseline by which it got worse, of a shift of logarithms.

    None beyond a factor of a thousand: nobody asks whether that would have been noticed.
    """
    if not shift < MOST_SHIFT:
        return None
    return -math.expm1(-shift) if better == "higher" else math.expm1(shift)


def as_shift(worsening: float, better: Better) -> float:
    """The reverse; more than there is where a rate would fall by all of itself."""
    if better == "higher":
        return min(-math.log1p(-worsening), BEYOND_ALL) if worsening < 1 else BEYOND_ALL
    return min(math.log1p(worsening), BEYOND_ALL)


def shift_in_blocks(
    n: int, *, spread: float, paired: bool, inflation: float, level: float, questions: int
) -> float | None:
    """The smallest true shift that so many blocks on each side notice in `POWER` of cases.

    Args:
        n: blocks.
        spread: of one pair, or of one block.
        paired: whether blocks are pairs.
        inflation: of the standard error.
        level: the accepted chance of a false alarm in the family.
        questions: in the family.

    Returns:
        Of logarithms, without any noise floor; None where so few can never be certain.
    """
    freedom = n - 1 if paired else 2 * n - 2
    rarest = -n * math.log(2) if paired else log_chance(n, n)
    if freedom < 1 or rarest > math.log(level) + 1e-9:
        return None
    limit = float(stats.t.isf(level / questions, freedom))
    error = spread * inflation * math.sqrt((1 if paired else 2) / n)
    return shift_noticed(limit, freedom, error)


def blocks_for(
    shift: float, *, spread: float, paired: bool, inflation: float, level: float, questions: int
) -> int | None:
    """How many blocks on each side notice a shift.

    Args:
        shift: of logarithms, the noise floor taken off.
        spread: of one pair, or of one block.
        paired: whether blocks are pairs.
        inflation: of the standard error.
        level: the accepted chance of a false alarm in the family.
        questions: in the family.

    Returns:
        The least number; None where no number up to a million is enough, or the level is one that
        the draws of the tests can't tell.
    """
    if shift <= 0 or level < LEAST_TOLD:
        return None

    def enough(n: int) -> bool:
        needed = shift_in_blocks(
            n, spread=spread, paired=paired, inflation=inflation, level=level, questions=questions
        )
        return needed is not None and needed <= shift

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_BLOCKS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def log_chance(n: int, m: int) -> float:
    """The logarithm of the chance of one way of choosing n of n + m blocks."""
    return math.lgamma(n + 1) + math.lgamma(m + 1) - math.lgamma(n + m + 1)
