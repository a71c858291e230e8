"""Which variants another one beats in quality or in cost without losing anything in the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.data import intervals_overlap
from edgebench.reports.differences import compared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.model import Summary
    from edgebench.harness.results.quality import WindowRecord

ALIKE_COST = 0.02
"""Costs without intervals count as equal up to this share of the larger."""

ALIKE_PERPLEXITY = 0.01
"""The same for perplexities that have too few windows for an interval of their ratio."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variant stands in a plane.

    Attributes:
        cost: what it costs.
        perplexity: its perplexity.
        windows: those that the perplexity is of, the same ones of each variant.
    """

    cost: Summary
    perplexity: float
    windows: tuple[WindowRecord, ...]


def dominating(places: Mapping[str, Place], *, higher: bool) -> dict[str, str]:
    """For each variant the one that dominates it; empty where none does.

    One variant dominates another if it is better beyond doubt in cost or in perplexity, and not
    worse beyond doubt in the other of the two. Perplexities differ beyond doubt where the 95 %
    interval of their ratio, over pairs of windows, excludes 1; costs where their intervals share
    no value. What can't be told apart counts as equal.

    That is no order: of three variants the first may be equal to the second and the second to
    the third, while the first is better than the third. So each pair is judged by itself, and who
    is dominated may dominate others. Four or more can even dominate each other in a circle; who
    is in one is not dominated by the others in it. So at least one variant never is.

    Args:
        places: where each variant stands.
        higher: whether more of the cost is better, as with a rate.

    Returns:
        Of several that dominate a variant, one that none dominates if there is one, and the one
        of the lowest perplexity among those.
    """
    by = {one: {other for other in places if _beats(places, other, one, higher)} for one in places}
    reached = {one: _reached(one, by) for one in places}
    by = {one: {each for each in found if one not in reached[each]} for one, found in by.items()}
    return {
        one: min(
            found, key=lambda each: (bool(by[each]), places[each].perplexity, each), default=""
        )
        for one, found in by.items()
    }


def _beats(places: Mapping[str, Place], one: str, other: str, higher: bool) -> bool:  # noqa: FBT001
    if one == other:
        return False
    cost = _cost_order(places[one].cost, places[other].cost, higher=higher)
    mine, theirs = places[one].perplexity, places[other].perplexity
    # Resampling is dear; here both answers would lead to the same.
    if cost < 0 or (cost > 0 and mine <= theirs):
        return cost > 0
    quality = _perplexity_order(places[one], places[other])
    return quality > 0 or (cost > 0 and quality == 0)


def _reached(one: str, by: Mapping[str, set[str]]) -> set[str]:
    """All that dominate a variant, or one of those, and so on."""
    found: set[str] = set()
    left = [one]
    while left:
        new = by[left.pop()] - found
        found |= new
        left.extend(new)
    return found


def _cost_order(one: Summary, other: Summary, *, higher: bool) -> int:
    """1 where the first is better beyond doubt, -1 where it is worse, 0 else."""
    mine, theirs = one.median or 0.0, other.median or 0.0
    overlap = intervals_overlap(one, other)
    if overlap is None:
        overlap = abs(mine - theirs) <= ALIKE_COST * max(abs(mine), abs(theirs))
    if overlap or mine == theirs:
        return 0
    return 1 if (mine > theirs) == higher else -1


def _perplexity_order(one: Place, other: Place) -> int:
    """1 where the first is better beyond doubt, -1 where it is worse, 0 else."""
    low, high = sorted((one, other), key=lambda each: each.perplexity)
    difference = compared(high.windows, low.windows)
    if difference.low is None or difference.high is None:
        alike = high.perplexity <= (1 + ALIKE_PERPLEXITY) * low.perplexity
    else:
        alike = difference.low <= 1 <= difference.high
    return 0 if alike else 1 if one is low else -1
