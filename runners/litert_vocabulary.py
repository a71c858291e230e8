"""The text of each token, in bytes, from the tokenizer in a bundle.

The engine gives text and no ids, and its own way from an id to a text shows tokens that are parts
of a character as a replacement sign. Only the standard library is used.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from edgebench.runners.litert_facts import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNPACKED_SIZE = 8
"""Bytes before a packed tokenizer, which tell its size."""

WORD_START = "▁"
"""How SentencePiece, and tokenizers made from it, write a space."""

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
"""A piece that stands for one byte of a character that has no piece."""

PIECES, PIECE, PIECE_KIND = 1, 1, 3
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
"""Fields of SentencePiece's messages, and kinds of pieces."""

Vocabulary = dict[bytes, int | None]
"""Tokens by the bytes that they write; None where several do, of which nothing tells one."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a tokenizer's tokens write.

    Attributes:
        by_text: those that a tokenizer makes of a text.
        lone_bytes: those that stand for one byte, where a token of `by_text` writes it as well. A
            tokenizer makes them of characters without a token only, and a model hardly ever.
        count: how many tokens write something.
        size: one more than the greatest id.
        stripped: the first space of a text is left out when ids are made a text.
    """

    by_text: Vocabulary
    lone_bytes: Vocabulary
    count: int
    size: int
    stripped: bool


class _Text(NamedTuple):
    """A token with what it writes, and whether it stands for a byte."""

    number: int
    text: bytes | None = None
    is_byte: bool = False


def read_tokens(tokenizer: bytes, *, sentencepiece: bool) -> Tokens:
    """What the tokens of a bundle's tokenizer write.

    Args:
        tokenizer: a packed ``tokenizer.json``, or a model of SentencePiece's.
        sentencepiece: which of both.

    Returns:
        No tokens at all where the tokenizer is of a kind that is not known.
    """
    try:
        if sentencepiece:
            return _tokens(_sentencepieces(tokenizer), stripped=True)
        return _huggingface(json.loads(zlib.decompress(tokenizer[UNPACKED_SIZE:])))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return Tokens({}, {}, 0, 0, stripped=False)


def _huggingface(told: Any) -> Tokens:  # noqa: ANN401 - what is wrong with it raises
    listed = told["model"]["vocab"]
    pieces = (
        listed.items()
        if isinstance(listed, dict)
        else ((piece, number) for number, (piece, _) in enumerate(listed))
    )
    added = {each["id"]: each["content"] for each in told.get("added_tokens") or ()}
    byte_level = _has_byte_level(told.get("decoder"))
    write = _byte_level if byte_level else _word_start
    texts = [_Text(number, *write(piece)) for piece, number in pieces if number not in added]
    texts.extend(_Text(number, content.encode()) for number, content in added.items())
    return _tokens(texts, stripped=not byte_level)


def _sentencepieces(model: bytes) -> Iterator[_Text]:
    number = 0
    for field, message in fields(model):
        if field != PIECES or not isinstance(message, bytes):
            continue
        piece, kind = b"", NORMAL
        for part, value in fields(message):
            if part == PIECE and isinstance(value, bytes):
                piece = value
            elif part == PIECE_KIND and isinstance(value, int):
                kind = value
        # Control pieces write nothing.
        silent = kind in (UNKNOWN, CONTROL)
        yield _Text(number) if silent else _Text(number, *_word_start(piece.decode()))
        number += 1


def _tokens(texts: Iterable[_Text], *, stripped: bool) -> Tokens:
    by_text: Vocabulary = {}
    lone_bytes: Vocabulary = {}
    count = size = 0
    for number, text, is_byte in texts:
        size = max(size, number + 1)
        if not text:
            continue
        count += 1
        found = lone_bytes if is_byte else by_text
        found[text] = None if text in found else number
    for text in [text for text in lone_bytes if text not in by_text]:
        by_text[text] = lone_bytes.pop(text)
    return Tokens(by_text, lone_bytes, count, size, stripped)


def _has_byte_level(decoder: object) -> bool:
    """Whether a decoder, or one in a sequence of them, is that of byte-level BPE."""
    if not isinstance(decoder, dict):
        return False
    if decoder.get("type") == "ByteLevel":
        return True
    return any(_has_byte_level(each) for each in decoder.get("decoders") or ())


def _word_start(piece: str) -> tuple[bytes, bool]:
    if byte := BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)]), True
    return piece.replace(WORD_START, " ").encode(), False


def _alphabet() -> dict[str, int]:
    """Byte-level BPE's signs: printable bytes are themselves, the others stand from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [number for number in range(256) if number not in printable]
    signs = {chr(number): number for number in printable}
    return signs | {chr(256 + at): number for at, number in enumerate(others)}


ALPHABET = _alphabet()


def _byte_level(piece: str) -> tuple[bytes | None, bool]:
    try:
        return bytes(ALPHABET[sign] for sign in piece), False
    except KeyError:
        return None, False
