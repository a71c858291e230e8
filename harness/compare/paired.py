"""The test for two things that were measured in the same blocks.

Which of the two came first in a block was a coin's choice. If nothing differs, the difference of a
block might as well have had the other sign, whatever the noise looks like and however it drifts:
that is exact, and asks for no distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.compare.max_t import (
    CHUNK,
    SEED,
    Critical,
    Scale,
    StepDown,
    ceiling_of,
    draws_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from edgebench.harness.compare.max_t import Floats

CLIP = 3.0
"""Differences count up to so many times the median size: one disturbed block is no evidence."""
ALL_UP_TO = 13
"""Blocks up to which all sign patterns are tried: 8192."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What sign flips say about a family.

    Attributes:
        worse, better: adjusted chances of positive and of negative differences.
        limits: what t would be called worse; infinite where none is.
    """

    worse: Floats
    better: Floats
    limits: Floats


def paired_test(differences: Floats, *, level: float, centres: Floats | None = None) -> PairedTest:
    """Test many questions at once.

    Args:
        differences: one row a block, one column a question, positive where the candidate is worse;
            NaN where a question has no pair in a block.
        level: the accepted chance of calling any question worse where none is.
        centres: of the differences of each question; their medians if None.

    Returns:
        P-values adjusted for all questions, and what would have been called worse.
    """
    clipped = clip(differences)
    moving = np.sum(clipped != 0.0, axis=0).astype(float)
    unit, scale, able = _scaled(clipped, moving, level)
    observed = scale.scores(unit.sum(axis=0)[:, None])[:, 0]
    worse, better = StepDown(observed, able), StepDown(-observed, able)
    # Pairs that are equal now would not be if something had changed.
    pairs = np.sum(~np.isnan(differences), axis=0).astype(float)
    centres = middle(differences) if centres is None else centres
    residuals = clip(differences - centres)
    noise, noise_scale, changeable = _scaled(residuals, pairs, level)
    critical = Critical(noise_scale, changeable)
    for signs in _signs(len(unit), draws_for(level)):
        scores = scale.scores(unit.T @ signs.T)
        for test in (worse, better):
            test.add(scores)
            test.add(-scores)
        scores = noise_scale.scores(noise.T @ signs.T)
        critical.add(scores)
        critical.add(-scores)
    every = len(unit) <= ALL_UP_TO
    return PairedTest(worse.p(every=every), better.p(every=every), critical.t(level, every=every))


def _scaled(
    values: Floats, moving: Floats, level: float
) -> tuple[Floats, Scale, NDArray[np.bool_]]:
    """Columns whose sums are correlations with signs; their scale; whether they reach the level."""
    norms = np.sqrt(np.sum(values * values, axis=0) * np.maximum(moving, 1.0))
    rarest = 0.5**moving
    scale = Scale(np.maximum(moving - 1.0, 0.0), ceiling_of(rarest))
    return values / np.where(norms > 0.0, norms, 1.0), scale, rarest <= level * (1 + 1e-9)


def clip(values: Floats) -> Floats:
    """Bring each column within `clip_limits`; NaN becomes 0."""
    limits = clip_limits(values)
    return np.nan_to_num(np.clip(values, -limits, limits))


def clip_limits(values: Floats) -> Floats:
    """Of each column `CLIP` times the median size of what is not 0."""
    sizes = np.abs(values)
    if np.all(sizes > 0.0):
        return np.asarray(CLIP * np.median(sizes, axis=0), dtype=np.float64)
    sizes[sizes == 0.0] = np.nan
    known = ~np.all(np.isnan(sizes), axis=0)
    limits = np.zeros(values.shape[1])
    limits[known] = CLIP * np.nanmedian(sizes[:, known], axis=0)
    return limits


def middle(values: Floats) -> Floats:
    """The median of each column without NaN, of which each has some; quick where none is NaN."""
    gaps = bool(np.any(np.isnan(values)))
    found = np.nanmedian(values, axis=0) if gaps else np.median(values, axis=0)
    return np.asarray(found, dtype=np.float64)


def _signs(blocks: int, draws: int) -> Iterator[Floats]:
    """Patterns of signs, the observed one (all positive) first; the opposite of each is meant too.

    Where the patterns are drawn, that they come with their opposites makes the answer the same,
    mirrored, for swapped sides.
    """
    if blocks <= ALL_UP_TO:
        patterns = np.arange(2 ** (blocks - 1))[:, None] >> np.arange(blocks)
        whole = 1.0 - 2.0 * (patterns & 1)
        for start in range(0, len(whole), CHUNK):
            yield np.asarray(whole[start : start + CHUNK], dtype=np.float64)
        return
    generator = np.random.default_rng(SEED)
    yield np.ones((1, blocks))
    left = draws // 2 - 1
    while left > 0:
        size = min(CHUNK, left)
        yield np.asarray(1 - 2 * generator.integers(0, 2, (size, blocks)), dtype=np.float64)
        left -= size
