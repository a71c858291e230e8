"""Q4_0's blocks as a GGUF file has them: a scale and 32 levels, of which no weight need be made.

A block is a float16 scale and 16 bytes; the first 16 weights stand in the lower halves of the
bytes, the others in the upper ones. A weight is ``(level - 8) * scale``, where the scale may be
negative (``block_q4_0`` in ggml-common.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.checked_weights import ROWS_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.models.weights import Bytes, Floats, StoredMatrix, Tensor

TYPE = "Q4_0"
BLOCK = 32
"""Weights of a block."""

MIDDLE = 8
"""The level of a weight that is zero."""

SCALE_BYTES, LEVEL_BYTES = 2, BLOCK // 2


@dataclass(frozen=True, slots=True)
class Levels:
    """Some blocks.

    Attributes:
        scales: (blocks,).
        packed: (blocks, 16), contiguous.
    """

    scales: NDArray[np.float16]
    packed: Bytes

    @classmethod
    def of(cls, stored: Bytes) -> Levels:
        """The blocks of rows, one row after the other."""
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        blocks = stored.reshape(-1, SCALE_BYTES + LEVEL_BYTES)
        scales = np.ascontiguousarray(blocks[:, :SCALE_BYTES]).view("<f2").reshape(-1)
        return cls(scales, np.ascontiguousarray(blocks[:, SCALE_BYTES:]))

    def __getitem__(self, part: slice | NDArray[np.intp]) -> Levels:
        return Levels(self.scales[part], self.packed[part])

    def within(self, largest: float) -> bool:
        """No weight can be larger than that, or anything but a finite number."""
        import numpy as np  # noqa: PLC0415

        # Also false where one is no number.
        return bool(np.all(np.abs(self.scales) <= largest / MIDDLE))

    def weights(self) -> Floats:
        """The same numbers that dequantising the rows gives: (blocks, 32)."""
        import numpy as np  # noqa: PLC0415

        values = np.empty((len(self.scales), BLOCK), np.float32)
        values[:, :LEVEL_BYTES] = self.packed & np.uint8(15)
        values[:, LEVEL_BYTES:] = self.packed >> np.uint8(4)
        values -= np.float32(MIDDLE)
        values *= self.scales.astype(np.float32)[:, None]
        return values

    def neighbours(self) -> Bytes:
        """The levels with neighbours in one byte, the first in the upper half: (blocks, 16)."""
        import numpy as np  # noqa: PLC0415

        two = self.packed.view("<u2")  # the lower byte is the first
        result = np.empty_like(self.packed)
        result[:, : LEVEL_BYTES // 2] = ((two & 0x0F) << 4) | ((two >> 8) & 0x0F)
        result[:, LEVEL_BYTES // 2 :] = (two & 0xF0) | (two >> 12)
        return result


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a matrix, as a tensor of their own."""

    tensor: Tensor
    first: int
    last: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        return self.last - self.first, *self.tensor.shape[1:]

    @property
    def stored_as(self) -> str:
        """The type that the source keeps it in."""
        return self.tensor.stored_as

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of these rows, dequantised.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        first, last, _ = slice(start, stop).indices(self.last - self.first)
        return self.tensor.read(self.first + first, self.first + last)


def stored_rows(tensor: Tensor) -> StoredMatrix | None:
    """A matrix of Q4_0 whose rows can be had as they are stored, or None for any other."""
    from edgebench.models.weights import StoredMatrix  # noqa: PLC0415 - only for a conversion

    if tensor.stored_as == TYPE and isinstance(tensor, StoredMatrix):
        return tensor
    return None


def row_ranges(tensor: Tensor) -> Iterator[tuple[int, int]]:
    """The rows of a matrix by parts, as large as those that `checked_rows` reads at once."""
    rows, columns = tensor.shape
    step = max(1, ROWS_BYTES // (4 * columns))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
