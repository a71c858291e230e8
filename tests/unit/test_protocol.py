"""The protocol's decoder: whatever arrives, it neither raises nor hangs nor grows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.runners.protocol import Decoder, Message, Noise, encode

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_a_message_is_one_line_of_json_rpc() -> None:
    """What is encoded is one line with the version that JSON-RPC 2.0 asks for."""
    assert encode({"id": 1, "method": "load"}) == b'{"jsonrpc":"2.0","id":1,"method":"load"}\n'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_not_sent(number: float) -> None:
    """NaN and infinities are no JSON and never leave."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"result": {"x": number}})


@given(st.dictionaries(st.text(), JSON_VALUES), st.integers(1, 64))
def test_messages_survive_any_splitting(body: dict[str, object], step: int) -> None:
    """A message comes out as it went in, however the bytes were cut on the way."""
    body.pop("jsonrpc", None)
    data = encode(body)
    decoder = Decoder()
    items = [
        item
        for start in range(0, len(data), step)
        for item in decoder.feed(data[start : start + step])
    ]
    assert items == [Message({"jsonrpc": "2.0", **body})]
    assert decoder.finish() is None


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_any_bytes_are_survived(chunks: list[bytes]) -> None:
    """Random bytes give messages or noise, and a real message after them is still found."""
    decoder = Decoder(max_frame_bytes=256)
    for chunk in chunks:
        for item in decoder.feed(chunk):
            assert isinstance(item, Message | Noise)
    # Whatever half line is open ends here.
    list(decoder.feed(b"\n"))
    assert list(decoder.feed(encode({"id": 7}))) == [Message({"jsonrpc": "2.0", "id": 7})]


@given(st.text(max_size=200))
def test_lines_that_are_json_but_no_message_are_noise(text: str) -> None:
    """Valid JSON that is not a JSON-RPC object is named as such."""
    (item,) = Decoder().feed(json.dumps(text).encode() + b"\n")
    assert isinstance(item, Noise)
    assert item.reason == "not a JSON-RPC 2.0 message"


def test_a_line_over_the_limit_is_dropped_to_its_end() -> None:
    """A runaway line is one noise, and the message behind it is found."""
    decoder = Decoder(max_frame_bytes=100)
    items = [item for _ in range(50) for item in decoder.feed(b"x" * 30)]
    items += decoder.feed(b"tail\n" + encode({"id": 1}))
    assert [type(item) for item in items] == [Noise, Message]
    assert "over the limit of 100 bytes" in items[0].reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [b'{"jsonrpc":"2.0","x":NaN}', b'{"jsonrpc":"2.0","x":-Infinity}', b"[" * 100_000, b"1" * 5000],
    ids=["nan", "infinity", "deep", "long-integer"],
)
def test_hostile_lines_are_noise(line: bytes) -> None:
    """What JSON readers commonly choke on, or let through, is noise here."""
    (item,) = Decoder().feed(line + b"\n")
    assert isinstance(item, Noise)


def test_a_stream_that_ends_in_the_middle_says_so() -> None:
    """The rest of a line that never ended is reported once."""
    decoder = Decoder()
    assert list(decoder.feed(b'{"jsonrpc":')) == []
    assert decoder.finish() == Noise('{"jsonrpc":', "cut off before its end")
