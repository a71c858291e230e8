"""A model's weights as a TFLite file keeps them, made some rows at a time when they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from edgebench.runners import litert_levels
from edgebench.runners.checked_weights import HALF_LIMIT, check_values, checked_rows
from edgebench.runners.litert_quantize import to_int4, to_int8
from edgebench.runners.stored_levels import BLOCK, Levels, Rows, row_ranges, stored_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.models.weights import Tensor, Weights
    from edgebench.runners.litert_graph import Kind

    Floats: TypeAlias = NDArray[np.float32]
    Pieces: TypeAlias = tuple[memoryview, ...]

Precision: TypeAlias = Literal["fp32", "fp16", "int8", "int4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

KINDS: dict[Precision, Kind] = {
    "fp32": "FLOAT32",
    "fp16": "FLOAT16",
    "int8": "INT8",
    "int4": "INT4",
}

BITS: dict[Precision, int] = {"fp32": 32, "fp16": 16, "int8": 8, "int4": 4}

BLOCK_SIZE = 32
"""Of int4 where nothing else is asked for."""

LIMITS: dict[Precision, float] = {
    "fp32": math.inf,
    "fp16": HALF_LIMIT,
    "int8": math.inf,
    # The scale of a block, in float16, is a seventh of its largest weight.
    "int4": 7 * HALF_LIMIT,
}
"""The largest weight that each can keep."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the weights of a matrix are kept.

    Attributes:
        block_size: of int4: neighbours in a row that share a scale.
        widened: a layer computes with them as float32, so that nothing but the weights is rounded;
            of float16 it is so in any case.
    """

    precision: Precision
    block_size: int = BLOCK_SIZE
    widened: bool = False


@dataclass(slots=True, eq=False)
class Matrix:
    """The weights of a layer, to be written.

    Attributes:
        name: of the tensor, also in the graph.
        tensor: where they are read from; (outputs, inputs).
        row_scales: of int8, one for each row, known when `made` has ended; zeros before.
    """

    name: str
    tensor: Tensor
    form: Form
    row_scales: Floats = field(init=False)

    def __post_init__(self) -> None:
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        rows = self.rows if self.form.precision == "int8" else 0
        self.row_scales = np.zeros(rows, np.float32)

    @property
    def rows(self) -> int:
        """Outputs of the layer."""
        return self.tensor.shape[0]

    @property
    def columns(self) -> int:
        """Inputs of the layer."""
        return self.tensor.shape[1]

    @property
    def kind(self) -> Kind:
        """Of the tensor in the graph."""
        return KINDS[self.form.precision]

    @property
    def widened(self) -> bool:
        """A layer takes them as float32."""
        return self.form.widened or self.form.precision == "fp16"

    @property
    def blocks(self) -> int:
        """Blocks of a row that have a scale of their own; 0 where the form has none."""
        return self.columns // self.form.block_size if self.form.precision == "int4" else 0

    @property
    def row_zeros(self) -> NDArray[np.int64]:
        """Of int8, what stands for zero in each row."""
        import numpy as np  # noqa: PLC0415

        return np.zeros(len(self.row_scales), np.int64)

    @property
    def part_bytes(self) -> tuple[int, int]:
        """How many bytes the weights take, and the scales of blocks."""
        weights = self.rows * self.columns * BITS[self.form.precision] // 8
        return weights, 2 * self.rows * self.blocks

    def made(self) -> Iterator[Pieces]:
        """The weights, some rows at a time, as bytes; and the scales of their blocks, if any.

        Raises:
            RunnerFailure: a weight is no finite number, or beyond what can be kept.
            ModelFormatError: the source can't be read.
        """
        stored = stored_rows(self.tensor)
        if stored is None or self.form.precision != "int4" or self.form.block_size != BLOCK:
            yield from self._made_of(self.tensor)
            return
        for start, stop in row_ranges(stored):
            levels = Levels.of(stored.read_stored(start, stop))
            if levels.within(LIMITS["int4"]):
                packed, halves = litert_levels.to_int4(levels)
                yield packed.data, halves.view("u1").data
            else:  # perhaps none is too large, which only the weights tell
                yield from self._made_of(Rows(stored, start, stop))

    def _made_of(self, tensor: Tensor) -> Iterator[Pieces]:
        import numpy as np  # noqa: PLC0415

        precision, done = self.form.precision, 0
        kept_as = f"{precision} can keep for LiteRT"
        for rows in checked_rows(self.name, tensor, LIMITS[precision], kept_as):
            if precision == "int8":
                codes, scales = to_int8(rows)
                self.row_scales[done : done + len(rows)] = scales
                yield (codes.data.cast("B"),)
            elif precision == "int4":
                packed, halves = to_int4(rows, self.form.block_size)
                yield packed.data, halves.view(np.uint8).data.cast("B")
            elif precision == "fp16":
                yield (rows.astype(np.float16).view(np.uint8).data.cast("B"),)
            else:
                yield (rows.data.cast("B"),)
            done += len(rows)


class Store:
    """The weights of a model by name and form, each once however many graphs use it."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._matrices: dict[tuple[str, Form], Matrix] = {}
        self._vectors: dict[str, Floats] = {}

    def matrix(self, name: str, form: Form) -> Matrix:
        """The matrix of that name in a form, whose block size divides its columns."""
        key = (name, form)
        if key not in self._matrices:
            self._matrices[key] = Matrix(name, self._weights[name], form)
        return self._matrices[key]

    def vector(self, name: str) -> Floats:
        """A tensor of one dimension, whole.

        Raises:
            RunnerFailure: it holds something that is no finite number.
        """
        if name not in self._vectors:
            values = self._weights[name].read()
            check_values(name, values)
            self._vectors[name] = values
        return self._vectors[name]
