"""What bundles say in words: the engine's settings, edgebench's facts, tokenizers."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.runners.base import RunnerFailure
from edgebench.runners.flatbuffer import FlatBufferError
from edgebench.runners.litert_facts import read_facts, read_settings
from edgebench.runners.litert_vocabulary import read_tokens

FACTS = {
    "facts_version": 1, "architecture": "llama", "parameters": 12, "trained_context_tokens": 2048,
    "start_id": 0, "start_text": "<s>", "end_text": "</s>", "stop_tokens": "reserved",
}  # fmt: skip


def message(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that holds bytes; a small number and less than 128 of them."""
    return bytes([number << 3 | 2, len(content)]) + content


def test_settings_are_read_from_the_engines_message() -> None:
    """Start token, stop tokens of both kinds and packed or not, room and template."""
    start = message(1, message(1, b"\x08\x05"))
    stops = (
        message(2, message(1, b"\x08\x07"))
        + message(2, message(1, message(1, b"\x09\xac\x02")))
        + message(2, message(2, b"<end>"))
    )
    rest = b"\x28\x80\x0a" + message(6, b"\x0a\x00") + message(7, b"{{ x }}")
    settings = read_settings(start + stops + rest)
    assert settings.start == (5,)
    assert settings.stops == ((7,), (9, 300), "<end>")
    assert settings.max_tokens == 1280
    assert settings.template == "{{ x }}"


def test_settings_that_are_left_out_are_none() -> None:
    """An empty message is one."""
    settings = read_settings(b"")
    assert (settings.start, settings.stops) == (None, ())
    assert (settings.max_tokens, settings.template) == (None, None)


@given(st.binary(max_size=60))
def test_any_bytes_are_settings_or_damaged(data: bytes) -> None:
    """No other error comes of a message that is none."""
    try:
        read_settings(data)
    except (FlatBufferError, UnicodeDecodeError) as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_facts_are_those_that_were_written() -> None:
    """What the converter knew; unknown keys don't matter."""
    facts = read_facts(json.dumps({**FACTS, "more": 1}))
    assert (facts.architecture, facts.parameters, facts.start_id) == ("llama", 12, 0)
    assert (facts.start_text, facts.end_text, facts.stop_tokens) == ("<s>", "</s>", "reserved")
    assert facts.trained_context_tokens == 2048


def test_facts_that_were_not_known_are_none() -> None:
    """Also where they are of another type."""
    facts = read_facts(json.dumps({"facts_version": 1, "parameters": True, "start_text": None}))
    assert (facts.parameters, facts.start_id, facts.start_text) == (None, None, "")


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("{", "invalid", "is damaged"),
        ("[]", "invalid", "no JSON object"),
        (json.dumps({**FACTS, "facts_version": 2}), "unsupported", "version 2"),
        ("{}", "unsupported", "version None"),
    ],
)
def test_facts_that_cant_be_understood_are_refused(text: str, reason: str, says: str) -> None:
    """Damaged, or of another edgebench."""
    with pytest.raises(RunnerFailure, match=says) as caught:
        read_facts(text)
    assert caught.value.reason == reason


def packed(tokenizer: object) -> bytes:
    return bytes(8) + zlib.compress(json.dumps(tokenizer).encode())


def test_byte_level_tokens_are_told_in_bytes() -> None:
    """Parts of a character as they are; special tokens as their text."""
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"a": 0, "Ġthe": 1, "ðŁ": 2, "ĺĢ": 3, "<x>": 4, "Ċ": 5}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 4, "content": "<x>"}, {"id": 6, "content": " ö"}],
    }
    tokens = read_tokens(packed(tokenizer), sentencepiece=False)
    assert tokens.by_text == {
        b"a": 0, b" the": 1, b"\xf0\x9f": 2, b"\x98\x80": 3, b"<x>": 4, b"\n": 5, " ö".encode(): 6,
    }  # fmt: skip
    assert (tokens.count, tokens.stripped) == (7, False)


def test_a_letter_is_told_from_the_byte_that_it_is() -> None:
    """Both write the same text, and a tokenizer makes the letter of it."""
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"<0x41>": 0, "A": 1, "▁A": 2, "<0xC3>": 3}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "Strip"}]},
    }
    tokens = read_tokens(packed(tokenizer), sentencepiece=False)
    assert tokens.by_text == {b"A": 1, b" A": 2, b"\xc3": 3}
    assert tokens.lone_bytes == {b"A": 0}
    assert (tokens.count, tokens.size, tokens.stripped) == (4, 4, True)


def test_a_text_that_two_tokens_write_is_there_and_tells_neither() -> None:
    """Nothing tells which of both it is, but that it is one of them."""
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"a": 0, "▁a": 1, "b": 2}},
        "added_tokens": [{"id": 9, "content": " a"}],
    }
    tokens = read_tokens(packed(tokenizer), sentencepiece=False)
    assert tokens.by_text == {b"a": 0, b" a": None, b"b": 2}
    assert (tokens.count, tokens.size) == (4, 10)


def test_pieces_of_sentencepiece_are_told_in_bytes() -> None:
    """Unknown and control pieces write nothing."""
    pieces = [("<unk>", 2), ("<s>", 3), ("▁the", 1), ("<0x0A>", 6), ("x", 1)]
    model = b"".join(
        message(1, message(1, text.encode()) + bytes([3 << 3, kind])) for text, kind in pieces
    )
    tokens = read_tokens(model, sentencepiece=True)
    assert tokens.by_text == {b" the": 2, b"\n": 3, b"x": 4}
    assert (tokens.count, tokens.size, tokens.stripped) == (3, 5, True)


@pytest.mark.parametrize(
    "data", [b"", bytes(8) + b"no zlib", packed({}), packed([]), packed({"model": {"vocab": 3}})]
)
def test_a_tokenizer_of_another_kind_tells_no_token(data: bytes) -> None:
    """The engine may know it all the same."""
    assert read_tokens(data, sentencepiece=False).by_text == {}
