"""How small a change a test would have noticed, and how many blocks it would take for another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special, stats

from edgebench.harness.compare.paired import CLIP

if TYPE_CHECKING:
    from edgebench.harness.compare.max_t import Floats
    from edgebench.harness.metrics.definitions import Better

POWER = 0.95
MOST_BLOCKS = 1_000_000
MOST_SHIFT = math.log(1_000.0)
_ROUNDS = 10


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
        spread = math.sqrt(float(np.var(seen)) * share)
        shift = needed * spread + shift - float(np.mean(seen))
    return Noticed(shift, spread)


def noticed_apart(residuals: Floats, needed: float) -> Noticed:
    """The same as the test of separate runs sees it.

    Args:
        residuals: of both sides, each from its own centre; at least three.
        needed: how many standard deviations of one block.
    """
    share = len(residuals) / (len(residuals) - 2)
    spread = math.sqrt(float(np.mean(residuals**2)) * share)
    shift = needed * spread
    for _ in range(_ROUNDS):
        slow, fast = residuals + shift / 2, residuals - shift / 2
        limit = CLIP * float(np.median(np.abs(np.r_[slow, fast])))
        slow, fast = np.clip(slow, -limit, limit), np.clip(fast, -limit, limit)
        spread = math.sqrt(float(np.var(slow) + np.var(fast)) / 2 * share)
        shift = needed * spread + shift - float(np.mean(slow) - np.mean(fast))
    return Noticed(shift, spread)


def as_worsening(shift: float, better: Better) -> float | None:
    """The share of the baseline by which it got worse, of a shift of logarithms.

    None beyond a factor of a thousand: nobody asks whether that would have been noticed.
    """
    if not shift < MOST_SHIFT:
        return None
    return -math.expm1(-shift) if better == "higher" else math.expm1(shift)


def as_shift(worsening: float, better: Better) -> float:
    """The reverse; infinite where a rate would fall by all of itself."""
    if better == "higher":
        return -math.log1p(-worsening) if worsening < 1 else math.inf
    return math.log1p(worsening)


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
        The least number; None where no number up to a million is enough.
    """
    if shift <= 0:
        return None

    def enough(n: int) -> bool:
        freedom = n - 1 if paired else 2 * n - 2
        rarest = -n * math.log(2) if paired else log_chance(n, n)
        if freedom < 1 or rarest > math.log(level) + 1e-9:
            return False
        limit = float(stats.t.isf(level / questions, freedom))
        error = spread * inflation * math.sqrt((1 if paired else 2) / n)
        needed = shift_noticed(limit, freedom, error)
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
