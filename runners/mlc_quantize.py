"""Weights in groups of 4-bit codes with a scale each, bit for bit as MLC's quantiser makes them.

``q4f32_1``: a group is 32 neighbours of a row, its scale the largest size in it divided by 7, a
code ``round(weight / scale + 7)`` from 0 to 14, halves rounded to even as TVM's compiler does on a
CPU, all in float32; eight codes stand in a word, the first in its lowest bits. A row's last group
is filled up with zeros (``GroupQuantize._quantize`` in MLC LLM's
``python/mlc_llm/quantization/group_quantization.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from edgebench.runners.mlc_layout import GROUP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Words: TypeAlias = NDArray[np.uint32]

LARGEST = 7
"""What the largest weight of a group becomes; the least becomes its negative."""


def quantize(rows: Floats) -> tuple[Words, Floats]:
    """Round the rows of a matrix.

    Args:
        rows: finite, (rows, columns), contiguous; overwritten where whole groups fill the rows.

    Returns:
        The words, (rows, groups * 4), and the scales, (rows, groups).
    """
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    count, columns = rows.shape
    missing = -columns % GROUP
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)))
    values = rows.reshape(count, -1, GROUP)
    scales = np.maximum(values.max(axis=2), -values.min(axis=2)) / np.float32(LARGEST)
    # A group of zeros, or of numbers too small to have a scale, is divided by zero: whatever its
    # codes are, they stand for zeros. MLC's are 0 where there is no number, which fmax takes.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values /= scales[:, :, None]
    values += np.float32(LARGEST)
    np.rint(values, out=values)
    np.fmax(values, np.float32(0), out=values)
    np.fmin(values, np.float32(2 * LARGEST), out=values)
    codes = values.astype(np.uint8)
    if missing:
        codes.reshape(count, -1)[:, columns:] = 0
    pairs = codes[:, :, 0::2] | codes[:, :, 1::2] << np.uint8(4)
    return pairs.reshape(count, -1).view("<u4"), scales
