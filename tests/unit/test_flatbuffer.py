"""Reading FlatBuffers without their schema, compared with what Google's package writes."""

from __future__ import annotations

import flatbuffers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.runners.flatbuffer import FlatBuffer, FlatBufferError


def written() -> bytes:
    """A table: a number, none, a text, a vector of numbers, a vector of tables with a number."""
    builder = flatbuffers.Builder(0)
    text = builder.CreateString("naïve")
    builder.StartVector(8, 3, 8)
    for number in (7, -8, 9):
        builder.PrependInt64(number)
    numbers = builder.EndVector()
    tables = []
    for number in (5, 6):
        builder.StartObject(1)
        builder.PrependInt32Slot(0, number, 0)
        tables.append(builder.EndObject())
    builder.StartVector(4, 2, 4)
    for table in reversed(tables):
        builder.PrependUOffsetTRelative(table)
    listed = builder.EndVector()
    builder.StartObject(5)
    builder.PrependUint8Slot(0, 200, 0)
    builder.PrependUOffsetTRelativeSlot(2, text, 0)
    builder.PrependUOffsetTRelativeSlot(3, numbers, 0)
    builder.PrependUOffsetTRelativeSlot(4, listed, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def read(data: bytes | memoryview) -> tuple[object, ...]:
    buffer = FlatBuffer(data)
    root = buffer.root()
    number, none, text, numbers, tables = (buffer.field(root, at) for at in range(5))
    return (
        buffer.number("B", number) if number else 0,
        none,
        buffer.text(text),
        buffer.vector("q", numbers),
        [buffer.number("i", buffer.field(each, 0)) for each in buffer.tables(tables)],
    )


def test_fields_are_those_that_were_written() -> None:
    """Numbers, texts and vectors, of bytes and of memory that is mapped."""
    expected = (200, 0, "naïve".encode(), (9, -8, 7), [5, 6])
    assert read(written()) == expected
    assert read(memoryview(written())) == expected


def test_what_is_left_out_is_empty() -> None:
    """A text, a vector and a list of tables that were not written, and a field behind the last."""
    buffer = FlatBuffer(written())
    assert buffer.field(buffer.root(), 99) == 0
    assert buffer.text(0) == b""
    assert buffer.vector("q", 0) == ()
    assert buffer.tables(0) == []


@given(st.integers(0, len(written())))
def test_a_file_cut_off_anywhere_is_told(size: int) -> None:
    """It gives what was written, or FlatBufferError."""
    try:
        assert read(written()[:size]) == read(written())
    except FlatBufferError as error:
        assert "it ends before" in str(error)  # noqa: PT017 - either outcome is right


@given(st.binary(max_size=200))
def test_any_bytes_give_values_or_one_kind_of_error(data: bytes) -> None:
    """Whatever they are, no other error and no reading past the end comes of them."""
    try:
        read(data)
    except FlatBufferError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize("place", [-1, 10_000])
def test_places_outside_are_refused(place: int) -> None:
    """A negative place would count from the end."""
    with pytest.raises(FlatBufferError):
        FlatBuffer(written()).number("I", place)
