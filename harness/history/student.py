"""Student's distribution, without the half second that importing scipy for it takes."""

from __future__ import annotations

import math

_TINY = 1e-300
_CLOSE = 1e-15
_MOST_TERMS = 500


def two_sided(t: float, freedom: int) -> float:
    """The chance of a value at least so far from 0, on either side.

    The incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8, 26.7.1).
    """
    x = freedom / (freedom + t * t)
    if x >= 1:
        return 1.0
    a, b = freedom / 2, 0.5
    # The fraction converges fast on one side of the mean; on the other, that of the complement.
    if x < (a + 1) / (a + b + 2):
        return _beta(a, b, x)
    return 1 - _beta(b, a, 1 - x)


def quantile(share: float, freedom: int) -> float:
    """The value that a share of at least one half stays below, by halving an interval."""
    low, high = 0.0, 1.0
    while 1 - two_sided(high, freedom) / 2 < share:
        high *= 2
    for _step in range(100):
        middle = (low + high) / 2
        if 1 - two_sided(middle, freedom) / 2 < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    if x <= 0:
        return 0.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # Lentz's method.
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    total = d
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            c = 1 + term / c
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            total *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return front * total / a
