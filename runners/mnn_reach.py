"""How much of its weight file an MNN graph refers to.

MNN reads past the end of a weight file that was cut off without a word, and computes with whatever
was in memory. The graph names each tensor's place in that file, so the length can be checked
beforehand. It is a FlatBuffer; only what is needed of it is read here.
"""

from __future__ import annotations

from edgebench.runners.flatbuffer import FlatBuffer, FlatBufferError

OPERATORS = 3  # fields of the table Net, by their place in MNN's schema
PARAMETER_KIND, PARAMETER = 1, 2  # of the table Op

EXTERNAL = {7: 10, 9: 6, 80: 3, 88: 5}
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
        return max(_end_of(net, each) for each in _operators(net))
    except FlatBufferError as error:
        msg = f"no whole MNN graph: {error}"
        raise ValueError(msg) from error


def _operators(net: FlatBuffer) -> list[int]:
    operators = net.tables(net.field(net.root(), OPERATORS))
    if not operators:
        msg = "it has no operators"
        raise FlatBufferError(msg)
    return operators


def _end_of(net: FlatBuffer, operator: int) -> int:
    kind = net.field(operator, PARAMETER_KIND)
    field = EXTERNAL.get(net.number("B", kind) if kind else 0)
    parameter = net.field(operator, PARAMETER)
    if field is None or not parameter:
        return 0
    return sum(net.vector("q", net.field(net.follow(parameter), field)))
