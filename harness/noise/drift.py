"""Whether a machine's pace changed within a run, by more than its noise explains.

The cells of a run are measured in the same blocks, and a slow minute slows all of them: they are
taken together, or their noise would look smaller than it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from edgebench.harness.compare.noticeable import as_worsening
from edgebench.harness.compare.paired import clip
from edgebench.harness.noise.model import Drift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.harness.compare.model import BlockKey, Compared

SIGNIFICANCE: Final = 0.01
"""The accepted chance that any metric of a machine without drift shows one."""

LEAST_HALF: Final = 3


def drifts_of(rows: Sequence[Compared]) -> tuple[Drift, ...]:
    """The metrics whose second half differs from the first beyond its own standard error.

    Args:
        rows: of one run against itself; each has values of both sides.
    """
    by_metric: dict[str, list[Compared]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    found: list[Drift] = []
    for key, group in by_metric.items():
        shift = _shift(group, SIGNIFICANCE / len(by_metric))
        worsening = None if shift is None else as_worsening(shift, group[0].better)
        if worsening is not None:
            found.append(Drift(key, worsening))
    return tuple(found)


def _shift(rows: Sequence[Compared], level: float) -> float | None:
    """By how much the logarithms moved towards worse; None where that may be chance."""
    series = _series(rows)
    half = len(series) // 2
    if half < LEAST_HALF:
        return None
    first, second = series[:half], series[len(series) - half :]
    error = math.sqrt((float(np.var(first, ddof=1)) + float(np.var(second, ddof=1))) / half)
    shift = float(np.mean(second) - np.mean(first))
    limit = float(stats.t.isf(level / 2, 2 * half - 2))
    # What differs in the last digits only is rounding.
    return shift if abs(shift) > max(limit * error, 1e-12) else None


def _series(rows: Sequence[Compared]) -> NDArray[np.float64]:
    """The mean over all cells and both sides of each block, from their own middles."""
    columns: list[dict[BlockKey, float]] = []
    for row in rows:
        sign = -1.0 if row.better == "higher" else 1.0
        for side in (row.pair.baseline, row.pair.candidate):
            values = side.metrics[row.metric].by_block()
            columns.append({key: sign * math.log(value) for key, value in values.items()})
    # In the order of time, which is that of their numbers.
    common = sorted(set.intersection(*(set(column) for column in columns)))
    if not common:
        return np.zeros(0)
    table = np.array([[column[key] for column in columns] for key in common])
    half = len(common) // 2
    # From the middle of each half, or a jump would look like far outliers and be clipped.
    middles = np.vstack(
        [
            np.tile(np.median(part, axis=0), (len(part), 1))
            for part in (table[:half], table[half:])
            if len(part)
        ]
    )
    together = np.asarray(np.mean(middles - middles.mean(axis=0) + clip(table - middles), axis=1))
    return together.astype(np.float64)
