"""How much of its weight file an MNN graph refers to.

MNN reads past the end of a weight file that was cut off without a word, and computes with whatever
was in memory. The graph names each tensor's place in that file, so the length can be checked
beforehand. It is a FlatBuffer; only what is needed of it is read here.
"""

from __future__ import annotations

import struct

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
    try:
        return _Reader(graph).end()
    except (struct.error, IndexError) as error:
        msg = f"no whole MNN graph: {error}"
        raise ValueError(msg) from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def end(self) -> int:
        net = self._number("I", 0)
        operators = self._field(net, OPERATORS)
        if not operators:
            msg = "no operators"
            raise IndexError(msg)
        return max((self._end_of(each) for each in self._references(operators)), default=0)

    def _end_of(self, operator: int) -> int:
        kind = self._field(operator, PARAMETER_KIND)
        field = EXTERNAL.get(self._data[kind] if kind else 0)
        parameter = self._field(operator, PARAMETER)
        if field is None or not parameter:
            return 0
        place = self._field(self._follow(parameter), field)
        if not place:
            return 0
        vector = self._follow(place)
        count = self._number("I", vector)
        return sum(struct.unpack_from(f"<{count}q", self._data, vector + 4))

    def _references(self, place: int) -> list[int]:
        vector = self._follow(place)
        places = range(vector + 4, vector + 4 + 4 * self._number("I", vector), 4)
        return [self._follow(each) for each in places]

    def _field(self, table: int, index: int) -> int:
        """Where a field of a table stands; 0 where it is left out."""
        layout = table - self._number("i", table)
        slot = 4 + 2 * index
        if slot >= self._number("H", layout):
            return 0
        offset = self._number("H", layout + slot)
        return table + offset if offset else 0

    def _follow(self, place: int) -> int:
        return place + self._number("I", place)

    def _number(self, form: str, place: int) -> int:
        (value,) = struct.unpack_from(f"<{form}", self._data, place)
        return int(value)
