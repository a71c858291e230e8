"""How much of its weight file an MNN graph refers to.

MNN reads past the end of a weight file that was cut off without a word, and computes with whatever
was in memory. The graph names each tensor's place in that file, so the length can be checked
beforehand. It is a FlatBuffer; only what is needed of it is read here.
"""

from __future__ import annotations

from edgebench.runners.flatbuffer import FlatBuffer, FlatBufferError

OPERATORS = 3  # fields of the table Net, by their place in MNN's schema
PARAMETER_KIND, PARAMETER = 1, 2  # of the table Op

CONVOLUTION = 9
EXTERNAL = {7: 10, CONVOLUTION: 6, 80: 3, 88: 5}
"""Kinds of parameters (Blob, Convolution2D, Convolution3D, LayerNorm) and their field that holds
the offset in the weight file and the sizes of the parts that follow each other there."""


def weight_bytes(graph: bytes) -> int:
    """The least size of the weight file.

    Args:
        graph: the content of ``llm.mnn``.

    Raises:
        ValueError: it is no whole graph.
    """
    net = FlatBuffer(graph)
    try:
        return max(sum(place_of(net, each)[2]) for each in operators(net))
    except FlatBufferError as error:
        msg = f"no whole MNN graph: {error}"
        raise ValueError(msg) from error


def operators(net: FlatBuffer) -> list[int]:
    """The operators of a graph; raises `FlatBufferError` where there are none."""
    found = net.tables(net.field(net.root(), OPERATORS))
    if not found:
        msg = "it has no operators"
        raise FlatBufferError(msg)
    return found


def place_of(net: FlatBuffer, operator: int) -> tuple[int, int, tuple[int, ...]]:
    """What an operator has in the weight file.

    Returns:
        The kind of its parameter, where that is in the graph, and the offset and sizes of what it
        has in the weight file; of an operator without weights there, 0, 0 and none.
    """
    place = net.field(operator, PARAMETER_KIND)
    kind = net.number("B", place) if place else 0
    field, parameter = EXTERNAL.get(kind), net.field(operator, PARAMETER)
    if field is None or not parameter:
        return 0, 0, ()
    table = net.follow(parameter)
    return kind, table, net.vector("q", net.field(table, field))
