"""The scales of `litert_quantize.to_int4` for weights that are levels already, found by counting.

A block of Q4_0 has 16 levels. How often each occurs tells what every scale that is tried would
lose, whatever the order of the weights: with levels c in steps of the source's scale, codes k of
a new one, and their ratio r, the squares of c - r k add up to ``sum(c c) - 2 r sum(c k) + r r
sum(k k)``, and each sum is a product of the counts with a fixed row. So eight scales cost little
more than one. Where two are too close for that arithmetic, the weights themselves decide.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.litert_quantize import (
    INT4_LEAST,
    INT4_MOST,
    STEPS_TO_LARGEST,
    kept_scales,
    pack,
    rounded,
    searched_scales,
)
from edgebench.runners.stored_levels import LEVEL_BYTES, MIDDLE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.stored_levels import Levels

    Floats = NDArray[np.float32]
    Halves = NDArray[np.float16]
    Bytes = NDArray[np.uint8]

LEVELS = 2 * MIDDLE
LARGEST = (8, 7)
"""How far the furthest level of a block is from zero, in nearly all blocks; others take longer."""

SMALLEST_SCALE, LARGEST_SCALE = 2.0**-13, 2.0**12
"""Source's scales between which the new ones are rounded alike, whatever the exponent: none is a
subnormal float16, and none is cut."""

LEAN = 2.0**-9
"""How far the rounding of a scale can shift a weight, as a share of it."""

CLOSE, CLOSE_SQUARES = 1e-3, 4e-3
"""Losses that differ by less, as a share and in squared steps of the source, aren't told apart:
some times what float32 makes of sums up to 2048, and of the same sums by the weights."""

COLUMNS = 1 << 10
"""Of a product of matrices: OpenBLAS gives larger ones to threads, which cost more than they save
here and wait for each other on busy cores."""

AT_ONCE = 1 << 14
"""Blocks counted at once: what they take stays in a processor's cache."""

ROUNDED_AT_ONCE = 1 << 11
"""Blocks rounded at once, for the same reason: their weights take four times as much."""


def to_int4(levels: Levels) -> tuple[Bytes, Halves]:
    """What `litert_quantize.to_int4` makes of the same weights, in blocks of 32, bit for bit.

    Returns:
        Codes, flat, two to a byte, the first in the lower half; and a scale for each block.
    """
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    count = len(levels.scales)
    packed = np.empty((count, LEVEL_BYTES), np.uint8)
    scales = np.empty(count, np.float32)
    for start in range(0, count, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        scales[part] = _best_scales(levels[part])
    for start in range(0, count, ROUNDED_AT_ONCE):
        part = slice(start, start + ROUNDED_AT_ONCE)
        values = levels[part].weights()
        rounded(values, scales[part], values)
        packed[part] = pack(values)
    return packed.reshape(-1), scales.astype(np.float16)


def _best_scales(levels: Levels) -> Floats:
    import numpy as np  # noqa: PLC0415

    counts = _counts(levels)
    sizes = np.abs(levels.scales.astype(np.float32))
    usual = (sizes >= SMALLEST_SCALE) & (sizes <= LARGEST_SCALE)
    lowest = counts[:, 0] > 0
    next_to_it = ~lowest & ((counts[:, 1] | counts[:, -1]) > 0)
    negative = np.signbit(levels.scales)
    best = np.zeros(len(sizes), np.float32)
    for largest, reached in zip(LARGEST, (lowest, next_to_it), strict=True):
        for mirrored in (False, True):
            some = np.flatnonzero(usual & reached & (negative == mirrored))
            tried = _tried(largest, mirrored=mirrored)
            steps = tried.steps(counts[some], levels.scales[some])
            told = steps > 0
            # As the largest weight of each is divided.
            furthest = sizes[some[told]] * np.float32(largest)
            best[some[told]] = kept_scales(furthest / steps[told])
    unsettled = np.flatnonzero(best == 0)
    if len(unsettled):
        best[unsettled] = searched_scales(levels[unsettled].weights())
    return best


def _counts(levels: Levels) -> Bytes:
    """How often each level occurs in each block: (blocks, 16)."""
    import numpy as np  # noqa: PLC0415

    two = np.ascontiguousarray(levels.packed.view("<u2").T)
    each = np.take(_counts_of_two_bytes(), two, mode="clip")
    # A byte for each level, none of which overflows: a block has 32 weights.
    added: Bytes = each.view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.uint8)
    return added.reshape(-1, LEVELS)


@functools.cache
def _counts_of_two_bytes() -> NDArray[np.complex128]:
    """Sixteen counts of one byte for each pair of bytes, as numbers of sixteen bytes."""
    import numpy as np  # noqa: PLC0415

    pairs = np.arange(1 << 16)
    counts = np.zeros((1 << 16, LEVELS), np.uint8)
    for shift in (0, 4, 8, 12):
        counts[pairs, (pairs >> shift) & 15] += 1
    return counts.view(np.complex128).reshape(-1)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What the scales lose that are tried for blocks with the same largest level.

    Attributes:
        squares: what a weight of each level adds to the first sum; (16,).
        products: to the second, times -2; (2 roundings, 8 scales, 16), flat in the first two.
        code_squares: to the third; likewise.
        ratios: of new scales to the source's, by the significand of that; (8 scales, 1024).
    """

    squares: Floats
    products: Floats
    code_squares: Floats
    ratios: Floats

    def steps(self, counts: Bytes, scales: Halves) -> Floats:
        """Which of `STEPS_TO_LARGEST` loses least, or 0 where that can't be told; (blocks,)."""
        import numpy as np  # noqa: PLC0415

        numbers = counts.T.astype(np.float32, order="C")
        ratios = np.take(self.ratios, scales.view(np.uint16) & np.uint16(0x3FF), axis=1)
        tried = len(STEPS_TO_LARGEST)
        lost = _product(self.code_squares, numbers).reshape(2, tried, -1)
        lost *= ratios
        lost += _product(self.products, numbers).reshape(2, tried, -1)
        lost *= ratios
        # A weight in the middle of two codes goes to the nearer, on whichever side the rounding of
        # the scale has put it.
        least = np.minimum(lost[0], lost[1])
        least += np.einsum("l,lb->b", self.squares, numbers)
        bound = least.min(axis=0) * np.float32(1 + CLOSE) + np.float32(CLOSE_SQUARES)
        close = (least <= bound).astype(np.float32)
        alone = close.sum(axis=0) == 1
        steps: Floats = np.einsum("s,sb->b", np.array(STEPS_TO_LARGEST, np.float32), close)
        return np.where(alone, steps, np.float32(0))


def _product(fixed: Floats, numbers: Floats) -> Floats:
    """The product of two matrices of whole numbers, exact, by this thread alone."""
    import numpy as np  # noqa: PLC0415

    product = np.empty((len(fixed), numbers.shape[1]), np.float32)
    for start in range(0, numbers.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        np.matmul(fixed, numbers[:, part], out=product[:, part])
    return product


@functools.cache
def _tried(largest: int, *, mirrored: bool) -> _Tried:
    import numpy as np  # noqa: PLC0415

    levels = np.arange(-MIDDLE, MIDDLE, dtype=np.float64)
    levels = -levels if mirrored else levels
    steps = np.array(STEPS_TO_LARGEST, np.float32)  # exact
    places = levels * steps[:, None] / largest
    leaning = np.stack([places * (1 - LEAN), places * (1 + LEAN)])
    codes = np.clip(np.rint(leaning), INT4_LEAST, INT4_MOST).reshape(-1, LEVELS)
    scales = np.arange(1024, 2048, dtype=np.float32) / np.float32(1024)
    kept = kept_scales(scales * np.float32(largest) / steps[:, None])
    return _Tried(
        squares=(levels**2).astype(np.float32),
        products=(-2 * codes * levels).astype(np.float32),
        code_squares=(codes**2).astype(np.float32),
        ratios=kept / scales,
    )
