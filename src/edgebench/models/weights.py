"""Weights that are read when they are needed, as float32, a tensor or some rows of it at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32]"
Bytes: TypeAlias = "NDArray[np.uint8]"

BLOCK_BYTES = 64 << 20
"""About how much of a tensor, as float32, `row_blocks` gives at once."""


class Tensor(Protocol):
    """One tensor of the canonical form.

    Attributes:
        shape: as `Architecture.tensor_shapes` says.
        stored_as: how its source keeps it: ``F32``, ``F16``, ``BF16``, ``Q4_1``, ….
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""

    @property
    def stored_as(self) -> str:
        """The type that its source keeps it in."""

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of the first axis, dequantised, C-contiguous, of your own.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """


@runtime_checkable
class StoredMatrix(Tensor, Protocol):
    """A matrix whose rows can also be had as its source keeps them."""

    def read_stored(self, start: int = 0, stop: int | None = None) -> Bytes:
        """Rows ``[start:stop]`` as bytes of the type `stored_as`, C-contiguous.

        Returns:
            (rows, bytes of a row).

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """


Weights: TypeAlias = Mapping[str, Tensor]


def row_blocks(tensor: Tensor, block_bytes: int = BLOCK_BYTES) -> Iterator[Floats]:
    """The rows of a matrix, some at a time, so that none is ever whole in memory."""
    rows = tensor.shape[0]
    row_bytes = 4 * int(np.prod(tensor.shape[1:], dtype=np.int64))
    step = max(1, block_bytes // max(1, row_bytes))
    for start in range(0, rows, step):
        yield tensor.read(start, min(start + step, rows))
