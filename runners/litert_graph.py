"""One graph of a TFLite model: tensors with shapes that never change, and operators over them.

A model for LiteRT-LM holds several graphs, one for each number of tokens that it takes at once.
They share their weights. What stands here is turned into a file by `litert_file`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.litert_weights import Matrix

    Numbers = NDArray[np.float32] | NDArray[np.int32]

Kind: TypeAlias = Literal["FLOAT32", "FLOAT16", "INT32", "INT8", "INT4"]
"""Of a tensor, by TFLite's names."""

WIDENS: dict[Kind, int] = {"FLOAT16": 3, "INT8": 5}
"""The version of the operator that makes float32 of each; of int8 with a scale for each row."""

Shape: TypeAlias = "tuple[int, ...]"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a graph.

    Attributes:
        name: unlike all others of the whole model: ai-edge-quantizer mistakes equal ones.
        content: of a constant: numbers, or a matrix that is read when the file is written.
        scales_of: of the scales of a matrix of int4 blocks: that matrix.
    """

    name: str
    shape: Shape
    kind: Kind
    content: Numbers | Matrix | None = None
    scales_of: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator with one result.

    Attributes:
        code: its name in TFLite's ``BuiltinOperator``.
        inputs: tensors of the graph; -1 stands for one that is left out.
        output: the tensor that it makes.
        options: the name of its table of options, without ``Options``; "" where it has none.
        settings: the options that differ from their defaults.
        version: the first that has what is asked of it.
    """

    code: str
    inputs: tuple[int, ...]
    output: int
    options: str = ""
    settings: Mapping[str, bool | int | float | Sequence[int]] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, slots=True)
class Named:
    """An input or an output by the name that a signature has for it."""

    name: str
    tensor: int


class Graph:
    """Tensors and operators, in the order in which they run; methods return tensors' numbers.

    Args:
        name: of the graph, and of its signature.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.inputs: list[Named] = []
        self.outputs: list[Named] = []
        self._constants: dict[object, int] = {}

    def shape(self, tensor: int) -> Shape:
        """The lengths of a tensor's axes."""
        return self.tensors[tensor].shape

    def input(self, name: str, shape: Shape, kind: Kind = "FLOAT32") -> int:
        """A tensor that is handed over."""
        tensor = self._tensor(f"{self.name}_{name}", shape, kind)
        self.inputs.append(Named(name, tensor))
        return tensor

    def output(self, name: str, tensor: int) -> None:
        """Name a tensor as a result."""
        self.outputs.append(Named(name, tensor))

    def floats(self, values: Sequence[float] | NDArray[np.float32], shape: Shape) -> int:
        """A constant in float32."""
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        return self._numbers(np.asarray(values, np.float32).reshape(shape), "FLOAT32")

    def integers(self, values: Sequence[int]) -> int:
        """A constant vector of int32, which may be empty."""
        import numpy as np  # noqa: PLC0415

        return self._numbers(np.asarray(values, np.int32), "INT32")

    def integer(self, value: int) -> int:
        """A constant int32 without axes."""
        import numpy as np  # noqa: PLC0415

        return self._numbers(np.asarray(value, np.int32), "INT32")

    def matrix(self, matrix: Matrix) -> int:
        """Stored weights, as they are kept."""
        key = id(matrix)
        if key not in self._constants:
            if matrix.blocks:
                shape = (matrix.rows, matrix.blocks)
                name = f"{self.name}/{matrix.name}.scales"
                self.tensors.append(Tensor(name, shape, "FLOAT16", scales_of=matrix))
            shape = (matrix.rows, matrix.columns)
            self.tensors.append(
                Tensor(f"{self.name}/{matrix.name}", shape, matrix.kind, content=matrix)
            )
            self._constants[key] = len(self.tensors) - 1
        return self._constants[key]

    def weights(self, matrix: Matrix) -> int:
        """Stored weights as a layer takes them."""
        tensor = self.matrix(matrix)
        if not matrix.widened:
            return tensor
        key, matrix_shape = (id(matrix), "float32"), self.shape(tensor)
        if key not in self._constants:
            # The engine does it once, when it loads the model.
            self._constants[key] = self._add(
                "DEQUANTIZE", [tensor], matrix_shape, "Dequantize", version=WIDENS[matrix.kind]
            )
        return self._constants[key]

    def reshape(self, tensor: int, shape: Shape, kind: Kind = "FLOAT32") -> int:
        """The same numbers with other axes."""
        inputs = [tensor, self.integers(shape)]
        settings = {"newShape": list(shape)}
        return self._add("RESHAPE", inputs, shape, "Reshape", settings, kind=kind)

    def transpose(self, tensor: int, order: Sequence[int]) -> int:
        """The axes in another order."""
        old = self.shape(tensor)
        shape = tuple(old[axis] for axis in order)
        return self._add("TRANSPOSE", [tensor, self.integers(order)], shape, "Transpose")

    def add(self, left: int, right: int) -> int:
        """Sums; axes of length 1 are stretched."""
        return self._add("ADD", [left, right], self._common(left, right), "Add")

    def multiply(self, left: int, right: int) -> int:
        """Products; axes of length 1 are stretched."""
        return self._add("MUL", [left, right], self._common(left, right), "Mul")

    def unary(self, code: str, tensor: int) -> int:
        """A function of each number: ``COS``, ``SIN``, ``RSQRT``, ``LOGISTIC``."""
        return self._add(code, [tensor], self.shape(tensor))

    def to_float(self, tensor: int) -> int:
        """Integers as floats."""
        return self._add("CAST", [tensor], self.shape(tensor), "Cast")

    def concatenate(self, tensors: Sequence[int], axis: int) -> int:
        """Tensors one after the other along an axis."""
        shape = list(self.shape(tensors[0]))
        shape[axis] = sum(self.shape(tensor)[axis] for tensor in tensors)
        settings = {"axis": axis}
        return self._add("CONCATENATION", tensors, tuple(shape), "Concatenation", settings)

    def slice(self, tensor: int, begin: Sequence[int], size: Shape, kind: Kind = "FLOAT32") -> int:
        """A part of a tensor."""
        inputs = [tensor, self.integers(begin), self.integers(size)]
        return self._add("SLICE", inputs, size, "Slice", kind=kind)

    def pack(self, tensors: Sequence[int]) -> int:
        """Integers without axes as a vector."""
        settings = {"valuesCount": len(tensors), "axis": 0}
        return self._add("PACK", tensors, (len(tensors),), "Pack", settings, kind="INT32")

    def mean(self, tensor: int) -> int:
        """The mean over the last axis, which stays with length 1."""
        shape = self.shape(tensor)
        inputs = [tensor, self.integers([len(shape) - 1])]
        return self._add("MEAN", inputs, (*shape[:-1], 1), "Reducer", {"keepDims": True})

    def softmax(self, tensor: int) -> int:
        """Over the last axis."""
        return self._add("SOFTMAX", [tensor], self.shape(tensor), "Softmax", {"beta": 1.0})

    def matmul_transposed(self, left: int, right: int) -> int:
        """Batches of ``left @ right.T``."""
        shape = (*self.shape(left)[:-1], self.shape(right)[-2])
        return self._add("BATCH_MATMUL", [left, right], shape, "BatchMatMul", {"adjY": True})

    def linear(self, tensor: int, matrix: Matrix, bias: int | None = None) -> int:
        """``tensor @ matrix.T``, and a bias."""
        inputs = [tensor, self.weights(matrix), -1 if bias is None else bias]
        shape = (*self.shape(tensor)[:-1], matrix.rows)
        settings = {"keepNumDims": True}
        return self._add("FULLY_CONNECTED", inputs, shape, "FullyConnected", settings, version=5)

    def lookup(self, rows: int, matrix: Matrix) -> int:
        """Rows of a matrix in float32, by a vector of their numbers."""
        shape = (*self.shape(rows), matrix.columns)
        inputs = [rows, self.matrix(matrix)]
        if matrix.kind != "FLOAT16":
            return self._add("EMBEDDING_LOOKUP", inputs, shape, version=3)
        # Only what was found is widened; the whole matrix would be, once for every graph.
        found = self._add("EMBEDDING_LOOKUP", inputs, shape, kind="FLOAT16", version=3)
        return self._add("DEQUANTIZE", [found], shape, "Dequantize", version=WIDENS["FLOAT16"])

    def overwrite(self, tensor: int, values: int, start: int, name: str) -> int:
        """A tensor with a part replaced by `values`, from the place `start`; named `name`."""
        inputs = [tensor, values, start]
        shape = self.shape(tensor)
        return self._add("DYNAMIC_UPDATE_SLICE", inputs, shape, "DynamicUpdateSlice", name=name)

    def _common(self, left: int, right: int) -> Shape:
        import numpy as np  # noqa: PLC0415

        return tuple(np.broadcast_shapes(self.shape(left), self.shape(right)))

    def _numbers(self, values: Numbers, kind: Kind) -> int:
        key = (kind, values.shape, values.tobytes())
        if key not in self._constants:
            name = f"{self.name}/constant_{len(self._constants)}"
            self.tensors.append(Tensor(name, values.shape, kind, content=values))
            self._constants[key] = len(self.tensors) - 1
        return self._constants[key]

    def _tensor(self, name: str, shape: Shape, kind: Kind) -> int:
        self.tensors.append(Tensor(name, shape, kind))
        return len(self.tensors) - 1

    def _add(
        self,
        code: str,
        inputs: Sequence[int],
        shape: Shape,
        options: str = "",
        settings: Mapping[str, bool | int | float | Sequence[int]] | None = None,
        *,
        kind: Kind = "FLOAT32",
        version: int = 1,
        name: str = "",
    ) -> int:
        output = self._tensor(name or f"{self.name}/{len(self.tensors)}", shape, kind)
        operator = Operator(code, tuple(inputs), output, options, settings or {}, version)
        self.operators.append(operator)
        return output
