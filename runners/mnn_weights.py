"""The file of weights beside MNN's graph, written front to back, some rows at a time."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.checked_weights import HALF_LIMIT, check_values
from edgebench.runners.checked_weights import checked_rows as checked
from edgebench.runners.mnn_quantize import BITS, Blocks, quantize, repack
from edgebench.runners.stored_levels import Levels, Rows, row_ranges, stored_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.models.weights import Tensor, Weights
    from edgebench.runners.mnn_quantize import Bytes, Halves, Precision

    Floats = NDArray[np.float32]

SHORT_SHAPE = 65535
"""Lengths up to it stand in two bytes in front of integer weights, else both in four."""

FOUR_BIT_TYPES = frozenset({"Q4_0", "Q4_1"})
FOUR_BIT_BLOCK = 32
"""GGUF's types whose blocks, of so many weights, have 16 evenly spaced levels."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the weights of a matrix are kept.

    Attributes:
        precision: one of the runner's quantisations.
        block_size: of integers; 0 stands for whole rows.
        symmetric: of integers.
    """

    precision: Precision
    block_size: int = 64
    symmetric: bool = False

    @property
    def bits(self) -> int:
        """Bits of a weight, scales aside."""
        return BITS[self.precision]

    @property
    def integers(self) -> bool:
        """The weights are integers with scales."""
        return self.bits < BITS["fp16"]

    def blocks(self, columns: int) -> Blocks:
        """The blocks of a row of so many columns, which its size divides."""
        return Blocks(self.bits, self.block_size or columns, self.symmetric)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where a matrix lies in the file, and in which form.

    Attributes:
        rows, columns: outputs and inputs of its layer.
        offset: of the first byte, which is its header's where it has one.
        header_bytes: in front of integers.
        weight_bytes: the header and the weights.
        scale_bytes: after the weights.
        bias_bytes: after the scales; zeros, or none, where the layer has none.
    """

    format: Format
    rows: int
    columns: int
    offset: int
    header_bytes: int
    weight_bytes: int
    scale_bytes: int
    bias_bytes: int

    @property
    def wide_header(self) -> bool:
        """The two lengths in the header take four bytes each."""
        return max(self.rows, self.columns) > SHORT_SHAPE


class WeightFile:
    """Writes the weights and says where each lies.

    Args:
        path: a new file.
        weights: where tensors are read from, by name.
    """

    def __init__(self, path: Path, weights: Weights) -> None:
        self._weights = weights
        self._file = path.open("xb")
        self.bytes_written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def vector(self, name: str) -> Floats:
        """A tensor of one dimension, whole.

        Raises:
            RunnerFailure: it holds something that is no number.
        """
        values = self._weights[name].read()
        check_values(name, values)
        return values

    def floats(self, values: Floats) -> int:
        """Append float32 numbers as they are; returns how many bytes they take."""
        return self._put(values.data)

    def matrix(self, name: str, form: Format, bias: str | None = None) -> Matrix:
        """Append a layer's weights, scales and bias.

        Args:
            name: of a tensor (outputs, inputs).
            form: how to keep it; a block size divides the inputs.
            bias: of a tensor (outputs,), or None.

        Raises:
            RunnerFailure: a weight is no number, or beyond what `form` can hold.
        """
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        tensor = self._weights[name]
        rows, columns = tensor.shape
        offset = self.bytes_written
        header = self._put(_header(rows, columns, form.bits)) if form.integers else 0
        weights, scales = header, b""
        if form.integers:
            parts = []
            for codes, parameters in _quantized(name, tensor, form):
                weights += self._put(codes.data)
                parts.append(parameters)
            scales = np.concatenate(parts).tobytes()
        else:
            weights += self._plain(name, tensor, form)
        return Matrix(
            format=form,
            rows=rows,
            columns=columns,
            offset=offset,
            header_bytes=header,
            weight_bytes=weights,
            scale_bytes=self._put(scales),
            bias_bytes=self._bias(bias, rows, form),
        )

    def _bias(self, name: str | None, rows: int, form: Format) -> int:
        import numpy as np  # noqa: PLC0415

        if name is not None:
            return self.floats(self.vector(name))
        # MNN crashes on float32 weights without a bias.
        return 0 if form.integers else self.floats(np.zeros(rows, np.float32))

    def halves(self, name: str) -> int:
        """Append a matrix as float16 without a layer around it; returns its offset."""
        offset = self.bytes_written
        self._plain(name, self._weights[name], Format("fp16"))
        return offset

    def _plain(self, name: str, tensor: Tensor, form: Format) -> int:
        import numpy as np  # noqa: PLC0415

        kind = np.float32 if form.precision == "fp32" else np.float16
        return sum(
            self._put(values.astype(kind, copy=False).data)
            for values in checked_rows(name, tensor, form)
        )

    def _put(self, data: bytes | memoryview) -> int:
        count = data.nbytes if isinstance(data, memoryview) else len(data)
        self._file.write(data)
        self.bytes_written += count
        return count


def _keeps_levels(stored_as: str, blocks: Blocks) -> bool:
    """Whether blocks can hold what the source's are made of, so that nothing is lost again."""
    return (
        stored_as in FOUR_BIT_TYPES
        and blocks.bits == BITS["int4"]
        and not blocks.symmetric
        and FOUR_BIT_BLOCK % blocks.size == 0
    )


def _quantized(name: str, tensor: Tensor, form: Format) -> Iterator[tuple[Bytes, Halves]]:
    """A matrix in integers, some rows at a time, as `quantize` gives them."""
    blocks = form.blocks(tensor.shape[1])
    from_levels = _keeps_levels(tensor.stored_as, blocks)
    stored = stored_rows(tensor) if from_levels else None
    if stored is None:
        for values in checked_rows(name, tensor, form):
            yield quantize(values, blocks, from_levels=from_levels)
        return
    for start, stop in row_ranges(stored):
        levels = Levels.of(stored.read_stored(start, stop))
        if levels.within(HALF_LIMIT):
            yield repack(levels, blocks)
        else:  # perhaps none is too large, which only the weights tell
            for values in checked_rows(name, Rows(stored, start, stop), form):
                yield quantize(values, blocks, from_levels=True)


def checked_rows(name: str, tensor: Tensor, form: Format) -> Iterator[Floats]:
    """The rows of a matrix, some at a time, all of them numbers that `form` can hold.

    Raises:
        RunnerFailure: one isn't.
    """
    # Scales, zeros and half-precision weights are all kept in float16.
    limit = math.inf if form.precision == "fp32" else HALF_LIMIT
    yield from checked(name, tensor, limit, f"{form.precision} can keep in MNN")


def _header(rows: int, columns: int, bits: int) -> bytes:
    """What stands in front of integers: two lengths, and the number that each code stands for."""
    lengths = struct.pack("<HH" if max(rows, columns) <= SHORT_SHAPE else "<ii", rows, columns)
    offset = 1 << (bits - 1)
    codes = range(-offset, offset)
    count = len(codes) % 256  # 256 of them are announced as 0
    return bytes([2]) + lengths + struct.pack(f"<B{len(codes)}b", count, *codes)
