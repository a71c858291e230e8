"""How small a change a test would have noticed, and how many blocks it would take for another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy import special, stats

if TYPE_CHECKING:
    from edgebench.harness.metrics.definitions import Better

POWER = 0.95
MOST_BLOCKS = 1_000_000
MOST_SHIFT = math.log(1_000.0)


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
    if not math.isfinite(t) or freedom <= 0:
        return None
    deviate = float(special.ndtri(POWER))
    needed = t * (1 - 1 / (4 * freedom)) + deviate * math.sqrt(1 + t * t / (2 * freedom))
    return needed * error


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
