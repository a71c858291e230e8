"""Which variants no other one beats: not in two goals, as in a plot, but in all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgebench.reports.dominance import cost_orders, without_circles
from edgebench.reports.selection.goals import QUALITY, is_higher_better
from edgebench.reports.selection.samples import TAIL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.reports.selection.goals import Stand
    from edgebench.reports.selection.samples import Floats


def dominated_by(
    variants: Sequence[str],
    by_goal: Mapping[str, Mapping[str, Stand]],
    scores: Mapping[str, float],
) -> dict[str, str]:
    """For each variant the one that dominates it; empty where none does.

    One variant dominates another if it is better beyond doubt in one goal, and worse beyond doubt
    in none. Values differ beyond doubt where their 95 % intervals share nothing; perplexities, of
    the same windows, where the interval of their ratio over pairs of windows excludes 1. Without
    intervals of both nothing is beyond doubt.

    Args:
        variants: those that are compared.
        by_goal: by goal and variant, a known value of each.
        scores: by variant, which tells which of several that dominate one is named.

    Returns:
        Of several that dominate a variant, one that none dominates if there is one, and the one
        of the highest score among those. At least one variant is dominated by none.
    """
    size = len(variants)
    better = np.zeros((size, size), dtype=bool)
    worse = np.zeros((size, size), dtype=bool)
    # Quality last: its pairs are dear, and most are decided by then.
    for goal in sorted(by_goal, key=lambda each: each == QUALITY):
        stands = [by_goal[goal][each] for each in variants]
        orders = (
            _perplexity_orders(stands, better, worse)
            if goal == QUALITY
            else cost_orders(
                [each.summary for each in stands],
                higher=is_higher_better(goal),
                beyond_doubt=True,
            )
        )
        better |= orders > 0
        worse |= orders < 0
    beats = without_circles(better & ~worse)
    beaten = {each for column, each in enumerate(variants) if beats[:, column].any()}
    found = {}
    for column, variant in enumerate(variants):
        by = [variants[int(row)] for row in np.flatnonzero(beats[:, column])]
        found[variant] = max(by, key=lambda each: (each not in beaten, scores[each]), default="")
    return found


def _perplexity_orders(
    stands: Sequence[Stand], better: NDArray[np.bool_], worse: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """As `cost_orders`, of perplexities; 0 also where it makes no difference any more."""
    size = len(stands)
    orders = np.zeros((size, size), dtype=np.int8)
    # Better in one goal and worse in another already: neither can dominate the other.
    open_pairs = ~(worse & worse.T) & ~(better & worse)
    open_pairs |= open_pairs.T
    drawn = [each.drawn for each in stands]
    for row in range(size):
        columns = np.flatnonzero(open_pairs[row, row + 1 :]) + row + 1
        if columns.size:
            orders[row, columns] = _against(drawn, row, columns)
    return (orders - orders.T).astype(np.int8)


def _against(
    drawn: Sequence[Floats | None], row: int, columns: NDArray[np.int64]
) -> NDArray[np.int8]:
    """1 where the perplexity of the row is lower beyond doubt than that of a column, -1, or 0."""
    own = drawn[row]
    others = [drawn[column] for column in columns]
    if own is None or any(each is None for each in others):
        # Too few windows for an interval, which is so for all of them at once.
        return np.zeros(columns.size, dtype=np.int8)
    gaps = np.stack([each for each in others if each is not None]) - own
    low, high = np.quantile(gaps, [TAIL, 1 - TAIL], axis=1)
    orders: NDArray[np.int8] = (np.sign(low) * (np.sign(low) == np.sign(high))).astype(np.int8)
    return orders
