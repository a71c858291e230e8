"""Statistics over repetitions: raw samples in, median and certainty out.

The interval is a percentile bootstrap of the median that resamples blocks, not repetitions:
repetitions of one block share a process and a moment, so they say less than they seem to.
Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
    Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 20240607
"""Fixed, so that the same samples always give the same interval."""

CHUNK = 50_000
"""Values weighted at once: so many stay in a CPU's cache."""

NEAR = 3.0
"""How far from the middle medians of resamples are looked for first, in standard deviations of
their place (about the square root of all values times a block's size), or a little more."""

MIN_BLOCKS = 5
"""With fewer, even the whole range covers the median in less than 93 % of cases."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, or the reason why there is none."""

    low: float | None
    high: float | None
    reason: str | None = None


def median(values: Sequence[float]) -> float:
    """The middle value; the mean of the two middle ones where their number is even."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Sample standard deviation / mean; None for fewer than two values or a mean of 0."""
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:  # noqa: PLR2004
        return None
    largest = float(np.abs(array).max())
    # As shares of the largest: squares of huge values have no room in a float.
    shares = array / largest if largest else array
    mean = float(shares.mean())
    return float(shares.std(ddof=1)) / abs(mean) if mean else None


def median_interval(values: Sequence[float], blocks: Sequence[int]) -> Interval:
    """95 % interval of the median.

    Args:
        values: the samples.
        blocks: for each sample the block that it was measured in.
    """
    array = np.asarray(values, dtype=np.float64)
    names, block_of = np.unique(np.asarray(blocks, dtype=np.int64), return_inverse=True)
    if names.size < MIN_BLOCKS:
        reason = f"an interval needs {MIN_BLOCKS} blocks, there are {names.size}"
        return Interval(None, None, reason)
    if array[0] == array.min() == array.max():
        return Interval(float(array[0]), float(array[0]))
    order = np.argsort(array, kind="stable")
    array, block_of = array[order], block_of[order].astype(np.intp)
    medians = _resampled_medians(array, block_of, _draws(int(names.size)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(low), float(high))


def is_narrow(values: Sequence[float], blocks: Sequence[int], half_width: float) -> bool:
    """Whether half of the interval is at most `half_width` times the median."""
    interval = median_interval(values, blocks)
    if interval.low is None or interval.high is None:
        return False
    return (interval.high - interval.low) / 2 <= half_width * abs(median(values))


def is_stable(values: Sequence[float], within: float) -> bool:
    """Whether the last two values differ by at most the share `within` of the larger one."""
    if len(values) < 2:  # noqa: PLR2004
        return False
    before, last = values[-2:]
    return abs(last - before) <= within * max(abs(before), abs(last))


def _resampled_medians(ordered: Floats, block_of: NDArray[np.intp], draws: Ints) -> Floats:
    """Medians of one ordered sample under many drawings of its blocks, shape (resamples,).

    Each is the mean of the first values at and past half of the weight. They lie near the middle,
    so only a stretch around it is looked at, a wider one where that was not enough.
    """
    size = ordered.size
    sizes = np.bincount(block_of, minlength=draws.shape[1])
    whole = draws @ sizes
    reach = int(NEAR * math.sqrt(size * int(sizes.max())))
    while True:
        start, end = max(0, size // 2 - reach), min(size, size // 2 + reach)
        before = draws @ np.bincount(block_of[:start], minlength=draws.shape[1])
        lower, upper = np.empty(len(draws), np.int64), np.empty(len(draws), np.int64)
        enough = bool((2 * before < whole).all()) or start == 0
        step = max(1, CHUNK // (end - start))
        for row in range(0, len(draws), step):
            rows = slice(row, row + step)
            totals = np.cumsum(draws[rows][:, block_of[start:end]], axis=1, dtype=np.int32)
            totals += before[rows, np.newaxis].astype(np.int32)
            half = whole[rows, np.newaxis]
            lower[rows] = (2 * totals < half).sum(axis=1)
            upper[rows] = (2 * totals <= half).sum(axis=1)
        if enough and (end == size or int(upper.max()) < end - start):
            medians: Floats = (ordered[start + lower] + ordered[start + upper]) / 2
            return medians
        reach *= 2


@lru_cache(maxsize=64)
def _draws(blocks: int) -> Ints:
    """How often each block is drawn, `RESAMPLES` times over: shape (RESAMPLES, blocks)."""
    generator = np.random.default_rng(SEED)
    drawn = generator.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
    return drawn.astype(np.int32)
