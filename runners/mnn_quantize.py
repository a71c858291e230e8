"""Weights in the integers that MNN reads: blocks of a row with a scale and a zero of their own.

A weight is ``code * scale`` with symmetric blocks, ``code * scale + zero`` with others, where the
code is a signed integer of 4 or 8 bits. MNN stores it plus 8 or plus 128, four bits two to a byte,
the first of the two in the upper half. The scales are kept as float16, as MNN's own exporter keeps
them; codes are rounded to the scale as kept, so that its own rounding costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from edgebench.runners.stored_levels import BLOCK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.stored_levels import Levels

    Floats: TypeAlias = NDArray[np.float32]
    Halves: TypeAlias = NDArray[np.float16]
    Bytes: TypeAlias = NDArray[np.uint8]

Precision: TypeAlias = Literal["fp32", "fp16", "int8", "int4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

BYTE = 8

SHORTFALL = 2.0**-11
"""How much smaller, as a share, a scale may be when kept; float16's rounding stays within it."""

BITS: dict[Precision, int] = {"fp32": 32, "fp16": 16, "int8": 8, "int4": 4}


OFF_LEVEL = 1e-3
"""Of a step: more than float32 makes of a weight that lies on a level, less than of any other."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How the integers of a matrix are scaled.

    Attributes:
        bits: 4 or 8.
        size: how many neighbours in a row share a scale; it divides the row, and is even.
        symmetric: there is no zero, and the codes go from -7 to 7, or from -127 to 127.
    """

    bits: int
    size: int
    symmetric: bool

    @property
    def offset(self) -> int:
        """What is added to a code to store it."""
        return 1 << (self.bits - 1)


def repack(levels: Levels, blocks: Blocks) -> tuple[Bytes, Halves]:
    """Q4_0's weights without any rounding; gives what `quantize` gives.

    A weight is ``(level - 8) * scale``, which is a code and its scale already. With a negative
    scale it is ``(7 - level) * -scale - scale``: the codes the other way round, and a zero.

    Args:
        levels: with finite scales.
        blocks: of 4 bits, not symmetric, and of a size that divides 32.
    """
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    scales = np.abs(levels.scales)
    codes = levels.neighbours()
    negative = levels.scales < 0
    codes ^= np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None]
    # A scale is never 0, as in `quantize`; then the codes are.
    empty = scales == 0
    codes[empty] = blocks.offset * 0x11
    kept = np.maximum(scales, np.finfo(np.float16).smallest_subnormal)
    parameters = np.stack([np.where(negative, scales, np.float16(0)), kept], axis=1)
    return codes.reshape(-1), np.repeat(parameters, BLOCK // blocks.size, axis=0).reshape(-1)


def quantize(rows: Floats, blocks: Blocks, *, from_levels: bool = False) -> tuple[Bytes, Halves]:
    """Round the rows of a matrix, which are overwritten.

    Args:
        rows: finite, (rows, columns), contiguous.
        blocks: its size divides the columns.
        from_levels: the weights of a block may be evenly spaced already, at no more levels than
            there are codes; then they are kept. For blocks that are not symmetric.

    Returns:
        The codes as MNN stores them, flat, a byte each or half a byte; and for each block its
        scale, or its zero and its scale.
    """
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    offset = blocks.offset
    values = rows.reshape(-1, blocks.size)
    if blocks.symmetric:
        largest = np.maximum(values.max(axis=1), -values.min(axis=1))
        scale = _kept(largest / np.float32(offset - 1))
        least = 1 - offset
        parameters = scale
    else:
        low, high = values.min(axis=1), values.max(axis=1)
        scale = _kept((high - low) / np.float32(2 * offset - 1))
        # From the middle of the range rather than from its end: what the scale's rounding left
        # over or cut off is then shared by both ends.
        zero = ((low + high) / 2 + scale.astype(np.float32) / 2).astype(np.float16)
        if from_levels:
            steps = _steps(values, low, high, most=2 * offset - 1)
            even = steps > 0
            spacing = (high[even] - low[even]) / steps[even]
            scale[even] = _kept(spacing)
            zero[even] = low[even] + spacing * ((steps[even] + 1) // 2)
        values -= zero.astype(np.float32)[:, None]
        least = -offset
        parameters = np.stack([zero, scale], axis=1)
    values /= scale.astype(np.float32)[:, None]
    np.rint(values, out=values)
    np.clip(values, least, offset - 1, out=values)
    values += offset
    codes: Bytes = values.astype(np.uint8).reshape(-1)
    if blocks.bits < BYTE:
        codes = (codes[0::2] << np.uint8(blocks.bits)) | codes[1::2]
    return codes, parameters.reshape(-1)


def _steps(values: Floats, low: Floats, high: Floats, most: int) -> NDArray[np.int32]:
    """How many even steps lead from each block's least weight to its largest by way of all others.

    Returns:
        The largest number that does, up to `most`, or 0 where none does.
    """
    import numpy as np  # noqa: PLC0415

    steps = np.zeros(len(values), np.int32)
    left = np.flatnonzero(high > low)
    for count in range(most, 0, -1):
        if not len(left):
            break
        span = (high[left] - low[left])[:, None]
        places = (values[left] - low[left][:, None]) / span * np.float32(count)
        found = np.abs(places - np.rint(places)).max(axis=1) < OFF_LEVEL
        steps[left[found]] = count
        left = left[~found]
    return steps


def _kept(scale: Floats) -> Halves:
    """The nearest float16, or the next above where that falls short, and never 0.

    The nearest is short by half of a 2048th at most, a sixteenth of a step at the ends of 255 of
    them: nothing beside the half that rounding may take. Below float16's normal range it may be
    short by much more, which would cut off the largest weights.
    """
    import numpy as np  # noqa: PLC0415

    kept = scale.astype(np.float16)
    short = kept.astype(np.float32) < scale * np.float32(1 - SHORTFALL)
    kept[short] = np.nextafter(kept[short], np.float16(np.inf))
    return np.maximum(kept, np.finfo(np.float16).smallest_subnormal)


def in_bfloat16(values: Floats) -> NDArray[np.uint16]:
    """The nearest bfloat16 of finite numbers, halves to even, as their bits."""
    import numpy as np  # noqa: PLC0415

    bits = values.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)


def in_three_parts(rows: Floats) -> NDArray[np.uint16]:
    """Each row as three rows of bfloat16 bits, whose sum is exactly the row in float32.

    Eight bits of the significand each, cut rather than rounded: all three have one sign, and any
    two of them add up without rounding.

    Args:
        rows: (rows, columns), finite.

    Returns:
        (rows, 3, columns).
    """
    import numpy as np  # noqa: PLC0415

    parts = np.empty((rows.shape[0], 3, rows.shape[1]), np.uint16)
    rest = rows
    for part in range(3):
        bits = rest.view(np.uint32) & np.uint32(0xFFFF0000)
        parts[:, part] = bits >> np.uint32(16)
        rest = rest - bits.view(np.float32)
    return parts
