"""A TFLite file: graphs in a FlatBuffer in front, weights behind it, written once and in order.

Weights that stand after the FlatBuffer are found by their place in the file, so that two gigabytes
are no limit and nothing is in memory but the rows at hand. The FlatBuffer has the same length
whatever the places and scales are that it tells; so it is made twice: to learn its length before
the weights are written, and to be written when they have told their scales.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_weights import Matrix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.litert_graph import Graph, Operator, Tensor

ALIGNMENT = 64
"""Of constants behind the FlatBuffer, for the widest vector instructions."""

INLINE_BYTES = 64
"""Constants up to it stand in the FlatBuffer; mostly shapes, which are read as it is parsed."""

LARGEST_HEAD = (1 << 31) - 1
"""A FlatBuffer's own limit."""

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"


class ModelFile:
    """A TFLite model to be written.

    Args:
        graphs: with a signature each.
        description: what stands in the file about its origin.
    """

    def __init__(self, graphs: Sequence[Graph], description: str) -> None:
        self._graphs = graphs
        self._description = description
        self._schema: Any = _schema()
        self._buffers = _Buffers()
        self._numbers = [
            [self._buffers.number(tensor) for tensor in graph.tensors] for graph in graphs
        ]
        self._codes: dict[str, tuple[int, int]] = {}
        """Number and version by name."""
        for graph in graphs:
            for operator in graph.operators:
                number, version = self._codes.get(operator.code, (len(self._codes), 1))
                self._codes[operator.code] = number, max(version, operator.version)

    def write(self, path: Path) -> None:
        """Write the file.

        Args:
            path: a new file.

        Raises:
            RunnerFailure: a weight can't be kept as asked, or the graphs are too large.
            ModelFormatError: the model can't be read.
            OSError: the disk is full, or the file can't be written.
        """
        length = len(self._head())
        if length > LARGEST_HEAD:
            msg = f"the graph takes {length} bytes, more than a FlatBuffer can hold"
            raise RunnerFailure(msg, reason="unsupported")
        end = self._buffers.place(length)
        with path.open("xb") as file:
            file.truncate(end)
            self._buffers.write(file)
            head = self._head()
            assert len(head) == length, "the length of a FlatBuffer depends on what it holds"
            file.seek(0)
            file.write(head)

    def _head(self) -> bytes:
        import flatbuffers  # noqa: PLC0415 - only a conversion needs it

        schema = self._schema
        model = schema.ModelT()
        model.version = SCHEMA_VERSION
        model.description = self._description
        model.operatorCodes = [
            self._operator_code(code, version) for code, (_, version) in self._codes.items()
        ]
        model.buffers = list(self._buffers.described(schema))
        model.subgraphs = [
            self._subgraph(graph, numbers)
            for graph, numbers in zip(self._graphs, self._numbers, strict=True)
        ]
        model.signatureDefs = [
            self._signature(graph, place) for place, graph in enumerate(self._graphs)
        ]
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), IDENTIFIER)
        return bytes(builder.Output())

    def _operator_code(self, name: str, version: int) -> object:
        code = self._schema.OperatorCodeT()
        code.builtinCode = getattr(self._schema.BuiltinOperator, name)
        # Where readers older than this field look; it holds seven bits.
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = version
        return code

    def _subgraph(self, graph: Graph, numbers: Sequence[int]) -> object:
        subgraph = self._schema.SubGraphT()
        subgraph.name = graph.name
        scales = {
            tensor.scales_of.name: place
            for place, tensor in enumerate(graph.tensors)
            if tensor.scales_of is not None
        }
        subgraph.tensors = [
            self._tensor(tensor, number, scales)
            for tensor, number in zip(graph.tensors, numbers, strict=True)
        ]
        subgraph.operators = [self._operator(operator) for operator in graph.operators]
        subgraph.inputs = [each.tensor for each in graph.inputs]
        subgraph.outputs = [each.tensor for each in graph.outputs]
        return subgraph

    def _tensor(self, tensor: Tensor, buffer: int, scales: Mapping[str, int]) -> object:
        schema = self._schema
        made = schema.TensorT()
        made.name = tensor.name
        made.shape = list(tensor.shape)
        made.type = getattr(schema.TensorType, tensor.kind)
        made.buffer = buffer
        made.hasRank = True
        made.quantization = schema.QuantizationParametersT()
        if isinstance(tensor.content, Matrix):
            self._quantization(made.quantization, tensor.content, scales)
        return made

    def _quantization(self, made: Any, matrix: Matrix, scales: Mapping[str, int]) -> None:  # noqa: ANN401
        if matrix.kind == "INT8":
            made.scale = matrix.row_scales
            made.zeroPoint = matrix.row_zeros
            made.quantizedDimension = 0
        elif matrix.blocks:
            details = self._schema.BlockwiseQuantizationT()
            details.scales = scales[matrix.name]
            details.zeroPoints = -1
            details.blockSize = matrix.form.block_size
            made.details = details
            made.detailsType = self._schema.QuantizationDetails.BlockwiseQuantization

    def _operator(self, operator: Operator) -> object:
        schema = self._schema
        made = schema.OperatorT()
        made.opcodeIndex = self._codes[operator.code][0]
        made.inputs = list(operator.inputs)
        made.outputs = [operator.output]
        if operator.options:
            options = getattr(schema, f"{operator.options}OptionsT")()
            for name, value in operator.settings.items():
                setattr(options, name, value)
            made.builtinOptions = options
            made.builtinOptionsType = getattr(schema.BuiltinOptions, f"{operator.options}Options")
        return made

    def _signature(self, graph: Graph, place: int) -> object:
        signature = self._schema.SignatureDefT()
        signature.signatureKey = graph.name
        signature.subgraphIndex = place
        for named, made in ((graph.inputs, "inputs"), (graph.outputs, "outputs")):
            maps = []
            for each in sorted(named, key=lambda each: each.name):
                entry = self._schema.TensorMapT()
                entry.name, entry.tensorIndex = each.name, each.tensor
                maps.append(entry)
            setattr(signature, made, maps)
        return signature


class _Buffers:
    """The contents of constants, each once, and where they lie."""

    def __init__(self) -> None:
        # By what they hold; the first is the empty one of all that is no constant.
        self._known: dict[object, int] = {}
        self._inline: dict[int, NDArray[np.uint8]] = {}
        self._arrays: dict[int, NDArray[np.uint8]] = {}
        self._matrices: dict[int, tuple[Matrix, int]] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._count = 1

    def number(self, tensor: Tensor) -> int:
        """The buffer of a tensor, which is a new one if nothing has that content yet."""
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        content = tensor.scales_of or tensor.content
        if content is None:
            return 0
        part = 0 if tensor.scales_of is None else 1
        key: object = (id(content), part)
        if not isinstance(content, Matrix):
            key = (tensor.kind, content.tobytes())
        if key in self._known:
            return self._known[key]
        number = self._known[key] = self._count
        self._count += 1
        if isinstance(content, Matrix):
            self._matrices[number] = content, part
        else:
            raw = np.frombuffer(content.tobytes(), np.uint8)
            (self._inline if raw.nbytes <= INLINE_BYTES else self._arrays)[number] = raw
        return number

    def place(self, position: int) -> int:
        """Lay all out from a position on; returns the end of the last."""
        sizes = {number: raw.nbytes for number, raw in self._arrays.items()}
        for number, (matrix, part) in self._matrices.items():
            sizes[number] = matrix.part_bytes[part]
        for number in sorted(sizes):
            position += -position % ALIGNMENT
            self._places[number] = position, sizes[number]
            position += sizes[number]
        return position

    def described(self, schema: Any) -> Iterator[object]:  # noqa: ANN401 - a generated module
        """The buffers as the FlatBuffer has them; before `place`, with any place."""
        for number in range(self._count):
            buffer = schema.BufferT()
            if number in self._inline:
                buffer.data = self._inline[number]
            elif number:
                # Numbers below 2 stand for data that are in the FlatBuffer.
                buffer.offset, buffer.size = self._places.get(number, (2, 2))
            yield buffer

    def write(self, file: BinaryIO) -> None:
        """Write all that stands behind the FlatBuffer."""
        for number, raw in self._arrays.items():
            file.seek(self._places[number][0])
            file.write(raw.data)
        parts: dict[int, tuple[Matrix, list[int]]] = {}
        for number, (matrix, part) in self._matrices.items():
            _, starts = parts.setdefault(id(matrix), (matrix, [0, 0]))
            starts[part] = self._places[number][0]
        for matrix, starts in parts.values():
            for pieces in matrix.made():
                for part, piece in enumerate(pieces):
                    file.seek(starts[part])
                    file.write(piece)
                    starts[part] += piece.nbytes


def _schema() -> object:
    """The classes of TFLite's schema."""
    try:
        return importlib.import_module("ai_edge_litert.schema_py_generated")
    except ImportError as error:
        msg = (
            f"ai_edge_litert can't be imported ({error}); install it with: "
            "pip install 'edgebench[mediapipe]'"
        )
        raise RunnerFailure(msg, reason="unavailable") from error
