"""How many bytes of weights MNN reads to decode a token, by the graph and the embedding's place.

What counts is what the artifact keeps: from float16, MNN makes float32 when it loads on most CPUs.
The norms of queries and keys, some kilobytes that stand in the graph itself, are left out.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgebench.runners.flatbuffer import FlatBuffer, FlatBufferError
from edgebench.runners.mnn_reach import CONVOLUTION, operators, place_of

if TYPE_CHECKING:
    from edgebench.runners.mnn_check import MnnModel

SUBGRAPHS = 10
"""Of the table Net, whose operators may run or not, such as experts."""

QUANTIZATION = 3  # of the table Convolution2D
KIND, BITS, WIDE_HEADER = 2, 7, 11  # of the table IDSTQuan
BY_CODES = 1
"""The kind whose weights follow a list of what each code stands for."""


class Stretch(NamedTuple):
    """What a layer reads of the weight file.

    Attributes:
        header: bytes in front that are read once, when the model is loaded.
    """

    begin: int
    end: int
    header: int


def weight_bytes_per_token(model: MnnModel) -> int | None:
    """Bytes of weights, scales and zero points that decoding a token reads, each once.

    Returns:
        None where it can't be told: the weights stand in the graph, parts of them are left out for
        some tokens, or the embedding's rows are of an unknown length.
    """
    try:
        stretches = _stretches(FlatBuffer(Path(model.graph).read_bytes()))
    except (OSError, FlatBufferError):
        return None
    if not stretches or any(one.end > other.begin for one, other in pairwise(stretches)):
        return None
    row = _row_bytes(model, stretches)
    if row is None:
        return None
    return row + sum(each.end - each.begin - each.header for each in stretches)


def _stretches(net: FlatBuffer) -> list[Stretch]:
    """Each once, in the order in which they lie in the file."""
    if net.tables(net.field(net.root(), SUBGRAPHS)):
        return []
    found = set()
    for operator in operators(net):
        kind, parameter, numbers = place_of(net, operator)
        if len(numbers) > 1:
            begin, *sizes = numbers
            header = _header_bytes(net, parameter) if kind == CONVOLUTION else 0
            found.add(Stretch(begin, begin + sum(sizes), min(header, sizes[0])))
    return sorted(found)


def _header_bytes(net: FlatBuffer, convolution: int) -> int:
    """Of the two lengths and the list of codes in front of integers."""
    place = net.field(convolution, QUANTIZATION)
    if not place:
        return 0
    table = net.follow(place)
    kind, bits, wide = (net.field(table, field) for field in (KIND, BITS, WIDE_HEADER))
    if not kind or net.number("i", kind) != BY_CODES or not bits:
        return 0
    lengths = 8 if wide and net.number("B", wide) else 4
    return 2 + lengths + (1 << min(max(net.number("i", bits), 0), 8))


def _row_bytes(model: MnnModel, stretches: list[Stretch]) -> int | None:
    """Of a token's embedding, unless the output layer, which is read whole, holds it."""
    embedding = model.embedding
    if embedding is None:
        return None
    if embedding.begin and any(each.begin <= embedding.begin < each.end for each in stretches):
        return 0
    rows = model.vocabulary_size
    if embedding.scale_bytes and not rows:
        return None
    return embedding.row_bytes + (embedding.scale_bytes // rows if rows else 0)
