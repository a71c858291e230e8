"""FlatBuffers read without their schema's code: a table's fields by their place in the schema.

Only what is needed of a file is looked at, however large it is. Every place is checked before it
is read, so that damaged bytes give `FlatBufferError` and nothing else.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

Bytes: TypeAlias = bytes | memoryview

REFERENCE = 4
"""Bytes of an offset to a table, a vector or a text."""


class FlatBufferError(ValueError):
    """What was read is no whole FlatBuffer."""


class FlatBuffer:
    """Values of one FlatBuffer; all places are offsets in its bytes.

    Args:
        data: the bytes, beginning with the offset of the root table.
    """

    def __init__(self, data: Bytes) -> None:
        self._data = data

    def root(self) -> int:
        """The place of the root table."""
        return self.follow(0)

    def field(self, table: int, index: int) -> int:
        """Where a field's value stands; 0 where it is left out.

        Args:
            table: the place of a table.
            index: of the field in the schema, from 0; a union takes two, its kind and its value.
        """
        layout = table - self.number("i", table)
        slot = 4 + 2 * index
        if slot >= self.number("H", layout):
            return 0
        offset = self.number("H", layout + slot)
        return table + offset if offset else 0

    def follow(self, place: int) -> int:
        """What the reference at a place refers to."""
        return place + self.number("I", place)

    def number(self, form: str, place: int) -> int:
        """A whole number, of a form of `struct`'s."""
        return self.numbers(form, place, 1)[0]

    def numbers(self, form: str, place: int, count: int) -> tuple[int, ...]:
        """Whole numbers that stand one after the other."""
        size = count * struct.calcsize(f"<{form}")
        if not 0 <= place <= len(self._data) - size:
            msg = f"it ends before {place + size}, at {len(self._data)}"
            raise FlatBufferError(msg)
        return struct.unpack_from(f"<{count}{form}", self._data, place)

    def vector(self, form: str, place: int) -> tuple[int, ...]:
        """The numbers of the vector that a field refers to; none where the field is left out."""
        if not place:
            return ()
        start = self.follow(place)
        return self.numbers(form, start + REFERENCE, self.number("I", start))

    def tables(self, place: int) -> list[int]:
        """The tables, or texts, of the vector that a field refers to."""
        if not place:
            return []
        start = self.follow(place) + REFERENCE
        offsets = self.vector("I", place)
        return [start + REFERENCE * at + offset for at, offset in enumerate(offsets)]

    def text(self, place: int) -> bytes:
        """The text that a field refers to; empty where the field is left out."""
        if not place:
            return b""
        start = self.follow(place)
        size = self.number("I", start)
        self.numbers("B", start + REFERENCE, size)  # checks that they are there
        return bytes(self._data[start + REFERENCE : start + REFERENCE + size])
