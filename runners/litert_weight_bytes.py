"""How many bytes of weights LiteRT-LM reads to decode a token, by the graphs of its bundle.

What counts is what the bundle keeps: of float16, and of integers that a layer takes as float32, the
engine makes float32 when it loads. Of integers in TFLite the zero points of weights are always 0
and not read.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.flatbuffer import REFERENCE, FlatBuffer, FlatBufferError
from edgebench.runners.litert_bundle import (
    SHAPE,
    SIGNATURE_KEY,
    SIGNATURES,
    SUBGRAPH,
    SUBGRAPHS,
    TENSORS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.runners.litert_bundle import Bundle

# The tables of a TFLite model, by their place in its schema.
CODES, BUFFERS = 1, 4
OPERATORS = 3
KIND, BUFFER, QUANTIZATION = 1, 2, 4
OLD_CODE, CODE = 0, 3
CODE_INDEX, OPERATOR_INPUTS = 0, 1
DATA, BUFFER_SIZE = 0, 2
SCALE, DETAILS_KIND, DETAILS = 2, 4, 5
BLOCK_SCALES, BLOCKWISE = 0, 2

TABLES = {7: 1, 36: 0}
"""Operators that look rows up (EMBEDDING_LOOKUP, GATHER), and which input the matrix is."""

WEIGHTS = frozenset({0, 1, 3, 9, 17, 18, 19, 20})
"""Kinds of tensors that weights have: floats, and integers of up to 8 bits."""

MOST_AXES = 2
"""Of weights; constants with more are masks and tables of positions."""

DECODE = b"decode"
"""How the signatures begin whose graphs run for each token."""


@dataclass(frozen=True, slots=True)
class _Use:
    """How a constant is used.

    Attributes:
        nbytes: of it and its scales.
        rows: that it has, if nothing but rows is looked up in it; else 1.
    """

    nbytes: int
    rows: int


def weight_bytes_per_token(bundle: Bundle) -> int | None:
    """Bytes of weights and scales that decoding a token reads, each once.

    Returns:
        None where it can't be told: the graphs have none that are known, or are no whole ones.
    """
    try:
        with (
            bundle.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as data,
        ):
            total = 0
            for part in bundle.graphs:
                with data[part.begin : part.end] as model:
                    total += _read_by(FlatBuffer(model))
            return total or None
    except (FlatBufferError, OSError, IndexError):
        return None


def _read_by(graph: FlatBuffer) -> int:
    root = graph.root()
    subgraphs = graph.tables(graph.field(root, SUBGRAPHS))
    buffers = graph.tables(graph.field(root, BUFFERS))
    tables = [TABLES.get(_code(graph, each)) for each in graph.tables(graph.field(root, CODES))]
    uses: dict[int, _Use] = {}
    for signature in graph.tables(graph.field(root, SIGNATURES)):
        if graph.text(graph.field(signature, SIGNATURE_KEY)).startswith(DECODE):
            subgraph = subgraphs[_number(graph, "I", graph.field(signature, SUBGRAPH))]
            for buffer, use in _uses(graph, subgraph, buffers, tables):
                known = uses.get(buffer, use)
                uses[buffer] = _Use(max(use.nbytes, known.nbytes), min(use.rows, known.rows))
    return sum(use.nbytes // use.rows for use in uses.values())


def _uses(
    graph: FlatBuffer, subgraph: int, buffers: list[int], tables: list[int | None]
) -> Iterator[tuple[int, _Use]]:
    """Each use of a weight in a graph, with the number of its buffer."""
    tensors = graph.tables(graph.field(subgraph, TENSORS))
    known: dict[int, tuple[int, _Use] | None] = {}
    for operator in graph.tables(graph.field(subgraph, OPERATORS)):
        looked_up = tables[_number(graph, "I", graph.field(operator, CODE_INDEX))]
        inputs = graph.vector("i", graph.field(operator, OPERATOR_INPUTS))
        for place, tensor in enumerate(inputs):
            if tensor < 0:
                continue
            if tensor not in known:
                known[tensor] = _constant(graph, tensors, tensor, buffers)
            found = known[tensor]
            if found is not None:
                buffer, use = found
                yield buffer, use if place == looked_up else _Use(use.nbytes, 1)


def _constant(
    graph: FlatBuffer, tensors: list[int], number: int, buffers: list[int]
) -> tuple[int, _Use] | None:
    """The buffer of a weight, its size and its rows; None for what is none."""
    tensor = tensors[number]
    buffer = _number(graph, "I", graph.field(tensor, BUFFER))
    if not buffer or _number(graph, "B", graph.field(tensor, KIND)) not in WEIGHTS:
        return None
    shape = graph.vector("i", graph.field(tensor, SHAPE))
    nbytes = _size(graph, buffers[buffer])
    if not nbytes or not 0 < len(shape) <= MOST_AXES or max(shape) == 1:
        return None
    return buffer, _Use(nbytes + _scale_bytes(graph, tensor, tensors, buffers), shape[0])


def _scale_bytes(graph: FlatBuffer, tensor: int, tensors: list[int], buffers: list[int]) -> int:
    place = graph.field(tensor, QUANTIZATION)
    if not place:
        return 0
    quantization = graph.follow(place)
    details = graph.field(quantization, DETAILS)
    kind = _number(graph, "B", graph.field(quantization, DETAILS_KIND))
    if details and kind == BLOCKWISE:
        scales = _number(graph, "i", graph.field(graph.follow(details), BLOCK_SCALES))
        return _size(graph, buffers[_number(graph, "I", graph.field(tensors[scales], BUFFER))])
    scale = graph.field(quantization, SCALE)
    return REFERENCE * graph.number("I", graph.follow(scale)) if scale else 0


def _size(graph: FlatBuffer, buffer: int) -> int:
    """Of a buffer in the FlatBuffer, or behind it."""
    data = graph.field(buffer, DATA)
    if data:
        return graph.number("I", graph.follow(data))
    return _number(graph, "Q", graph.field(buffer, BUFFER_SIZE))


def _code(graph: FlatBuffer, code: int) -> int:
    """An operator's number; older files have it in another place."""
    return max(
        _number(graph, "b", graph.field(code, OLD_CODE)),
        _number(graph, "i", graph.field(code, CODE)),
    )


def _number(graph: FlatBuffer, form: str, place: int) -> int:
    return graph.number(form, place) if place else 0
