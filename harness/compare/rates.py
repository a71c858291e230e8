"""Rates of 0: nothing was made in all of a repetition, of which no logarithm can be taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Samples

FELL_TO_NOTHING: Final = "every value of the candidate is 0, and the baseline's are not"

_NEARLY_NOTHING: Final = 1e-3
"""Of the smallest rate that is not 0: far outside of all others, where robust statistics clip."""


def fell_to_nothing(baseline: Samples, candidate: Samples) -> bool:
    """Whether a rate is 0 in every repetition of the candidate, and was not in the baseline."""
    before, now = baseline.values, candidate.values
    same_unit = baseline.unit == candidate.unit
    return (
        same_unit and bool(now) and not any(now) and bool(before) and min(before) >= 0 < max(before)
    )


def without_zeros(baseline: Samples, candidate: Samples) -> tuple[Samples, Samples]:
    """The same with a thousandth of the smallest positive value of both in place of single zeros.

    A side of nothing but zeros, or with a value below 0, is as it was.
    """
    both = (baseline, candidate)
    if any(not any(each.values) or min(each.values) < 0 for each in both):
        return both
    least = min(value for each in both for value in each.values if value > 0) * _NEARLY_NOTHING
    first, second = (
        replace(each, values=tuple(value or least for value in each.values)) for each in both
    )
    return first, second
