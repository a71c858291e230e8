"""Which variants another one beats in quality or in cost without losing anything in the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from edgebench.reports.data import bounds
from edgebench.reports.differences import compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.results.cell import Summary
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

    One variant dominates another if it is better in cost or in perplexity, and not worse in the
    other of the two. Perplexities differ where the 95 % interval of their ratio, over pairs of
    windows, excludes 1; costs where their intervals share no value, or, without intervals, by more
    than `ALIKE_COST`. What can't be told apart counts as equal.

    Args:
        places: where each variant stands.
        higher: whether more of the cost is better, as with a rate.

    Returns:
        Of several that dominate a variant, one that none dominates if there is one, and the one
        of the lowest perplexity among those; see `without_circles`.
    """
    names = list(places)
    costs = cost_orders([places[each].cost for each in names], higher=higher)
    beats = without_circles(
        np.array(
            [
                [
                    one != other and _beats(places[one], places[other], int(costs[row, column]))
                    for column, other in enumerate(names)
                ]
                for row, one in enumerate(names)
            ],
            dtype=bool,
        ).reshape(len(names), len(names))
    )
    beaten = {each for column, each in enumerate(names) if beats[:, column].any()}
    return {
        one: min(
            (names[int(row)] for row in np.flatnonzero(beats[:, column])),
            key=lambda each: (each in beaten, places[each].perplexity, each),
            default="",
        )
        for column, one in enumerate(names)
    }


def cost_orders(
    costs: Sequence[Summary], *, higher: bool, beyond_doubt: bool = False
) -> NDArray[np.int8]:
    """Which costs are better than which, as far as can be told.

    Args:
        costs: with a median each.
        higher: whether more is better, as with a rate.
        beyond_doubt: whether two of which not both have an interval count as equal, however far
            apart they are; else their medians decide, up to `ALIKE_COST`.

    Returns:
        Shape (costs, costs): 1 where that of the row is better than that of the column, -1 where
        it is worse, 0 where they can't be told apart.
    """
    values = np.array([each.median or 0.0 for each in costs], dtype=np.float64)
    ends = [bounds(each) or (np.nan, np.nan) for each in costs]
    low, high = np.array(ends, dtype=np.float64).reshape(len(costs), 2).T
    overlap = (low[:, None] <= high[None, :]) & (low[None, :] <= high[:, None])
    known = ~np.isnan(low)
    size = np.maximum(np.abs(values)[:, None], np.abs(values)[None, :])
    near = beyond_doubt | (np.abs(values[:, None] - values[None, :]) <= ALIKE_COST * size)
    alike = np.where(known[:, None] & known[None, :], overlap, near)
    sign = np.sign(values[:, None] - values[None, :]) * (1 if higher else -1)
    return np.where(alike, 0, sign).astype(np.int8)


def perplexity_order(one: Place, other: Place) -> int:
    """1 where the first is better as far as can be told, -1 where it is worse, 0 else."""
    low, high = sorted((one, other), key=lambda each: each.perplexity)
    difference = compared(high.windows, low.windows)
    if difference.low is None or difference.high is None:
        alike = high.perplexity <= (1 + ALIKE_PERPLEXITY) * low.perplexity
    else:
        alike = difference.low <= 1 <= difference.high
    return 0 if alike else 1 if one is low else -1


def without_circles(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Who dominates whom, so that at least one is dominated by none.

    To be equal as far as can be told is no order: of three variants the first may be equal to the
    second and the second to the third, while the first is better than the third. So each pair is
    judged by itself, and who is dominated may dominate others. Several can even dominate each
    other in a circle; who is in one is not dominated by the others in it.

    Args:
        beats: shape (variants, variants), whether that of the row beats that of the column.
    """
    if not beats.size:
        return beats
    size = len(beats)
    rows, columns = np.nonzero(beats)
    graph = csr_array((np.ones(rows.size, dtype=np.int8), (rows, columns)), shape=(size, size))
    _, circle = connected_components(graph, directed=True, connection="strong")
    kept: NDArray[np.bool_] = beats & (circle[:, None] != circle[None, :])
    return kept


def _beats(one: Place, other: Place, cost: int) -> bool:
    mine, theirs = one.perplexity, other.perplexity
    # Resampling is dear; here both answers would lead to the same.
    if cost < 0 or (cost > 0 and mine <= theirs):
        return cost > 0
    quality = perplexity_order(one, other)
    return quality > 0 or (cost > 0 and quality == 0)
