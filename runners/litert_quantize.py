"""Weights in the integers that LiteRT's CPU kernels take: symmetric, around zero.

A weight is ``code * scale``. With 8 bits a whole row shares a scale in float32 and codes go from
-127 to 127; with 4 bits a block of neighbours in a row shares one, and codes go from -8 to 7. Block
scales stand in float16 in the file and are made into bfloat16 by the kernels; so they are chosen
among the numbers that are exact in both, and codes are rounded to the scale as kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Halves: TypeAlias = NDArray[np.float16]
    Codes: TypeAlias = NDArray[np.int8]
    Bytes: TypeAlias = NDArray[np.uint8]

INT8_MOST = 127
INT4_LEAST, INT4_MOST = -8, 7

STEPS_TO_LARGEST = (7.0, 7.25, 7.5, 7.75, 8.0, 8.5, 9.0, 10.0)
"""Tried for each block of 4 bits: how many steps its largest weight is from zero. Beyond 7 the
largest is cut, beyond 8 on either side, for finer steps between the others."""

LARGEST_SCALE = 65280.0
"""The largest number that both bfloat16 and float16 have."""

AT_ONCE = 1 << 16
"""Weights whose scales are searched at once: what that takes stays in a processor's cache."""


def to_int8(rows: Floats) -> tuple[Codes, Floats]:
    """Round rows of finite weights, which are overwritten.

    Args:
        rows: (rows, columns).

    Returns:
        Codes (rows, columns), and a scale for each row.
    """
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    scales = largest / np.float32(INT8_MOST)
    # Kernels want scales that are no subnormal numbers; weights as small as that become zeros.
    scales = np.maximum(scales, np.finfo(np.float32).smallest_normal)
    rows /= scales[:, None]
    np.rint(rows, out=rows)
    np.clip(rows, -INT8_MOST, INT8_MOST, out=rows)
    return rows.astype(np.int8), scales


def to_int4(rows: Floats, block_size: int) -> tuple[Bytes, Halves]:
    """Round rows of finite weights with the scales, of those tried, that lose the least squares.

    Args:
        rows: (rows, columns), contiguous.
        block_size: even; it divides the columns.

    Returns:
        Codes, flat, two to a byte, the first in the lower half; and a scale for each block,
        (rows, blocks).
    """
    import numpy as np  # noqa: PLC0415

    blocks = rows.reshape(-1, block_size)
    packed = np.empty((len(blocks), block_size // 2), np.uint8)
    scales = np.empty(len(blocks), np.float16)
    step = max(1, AT_ONCE // block_size)
    for start in range(0, len(blocks), step):
        part = slice(start, start + step)
        best = searched_scales(blocks[part])
        codes = np.empty_like(blocks[part])
        rounded(blocks[part], best, codes)
        packed[part], scales[part] = pack(codes), best
    return packed.reshape(-1), scales.reshape(len(rows), -1)


def pack(codes: Floats) -> Bytes:
    """Codes of 4 bits, an even number in a row, two to a byte, the first in the lower half.

    Returns:
        (rows, half of the columns).
    """
    import numpy as np  # noqa: PLC0415

    two = codes.astype(np.int8).view("<u2")
    packed: Bytes = ((two & 0x0F) | ((two >> 4) & 0xF0)).astype(np.uint8)
    return packed


def searched_scales(blocks: Floats) -> Floats:
    """For each block the scale, of those tried, that loses the least squares; (blocks,)."""
    import numpy as np  # noqa: PLC0415

    largest = np.maximum(blocks.max(axis=1), -blocks.min(axis=1))
    least = np.full(len(blocks), np.inf, np.float32)
    best = np.zeros(len(blocks), np.float32)
    values, off = np.empty_like(blocks), np.empty_like(blocks)
    for steps in STEPS_TO_LARGEST:
        scales = kept_scales(largest / np.float32(steps))
        rounded(blocks, scales, values)
        np.multiply(values, scales[:, None], out=off)
        off -= blocks
        lost = np.einsum("ij,ij->i", off, off)
        better = lost < least
        least[better], best[better] = lost[better], scales[better]
    return best


def rounded(blocks: Floats, scales: Floats, out: Floats) -> None:
    """The codes of 4 bits of blocks that have these scales; `out` may be the blocks themselves."""
    import numpy as np  # noqa: PLC0415

    np.divide(blocks, scales[:, None], out=out)
    np.rint(out, out=out)
    np.clip(out, INT4_LEAST, INT4_MOST, out=out)


def kept_scales(scales: Floats) -> Floats:
    """The nearest numbers that are exact as bfloat16 and as float16, and never 0.

    Args:
        scales: not below 0; those above `LARGEST_SCALE` become that.
    """
    import numpy as np  # noqa: PLC0415

    bits = scales.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    short = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    kept = np.minimum(short.view(np.float32), np.float32(LARGEST_SCALE)).astype(np.float16)
    return np.maximum(kept, np.finfo(np.float16).smallest_subnormal).astype(np.float32)
