"""Which tokens a stream of text is made of: hand-made streams, and those of a simulated engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.runners.litert_ids import Told, pieces_of, tell
from edgebench.runners.litert_vocabulary import Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

GRIN = "😀".encode()  # f0 9f 98 80
VOCABULARY: dict[bytes, int | None] = {
    b"a": 0, b"b": 1, b"ab": 2, b" a": 3, b" ab": 4, "é".encode(): 5, b"\xc3": 6, b"\xa9": 7,
    GRIN: 8, GRIN[:2]: 9, GRIN[2:3]: 10, GRIN[3:]: 11, GRIN[2:]: 12, b" b\xc3": 13, b"\xa9a": 14,
    b"\0": 15,
}  # fmt: skip
TEXTS = {number: text for text, number in VOCABULARY.items() if number is not None}


def told(
    chunks: Sequence[bytes],
    count: int,
    usual: Sequence[int] = (),
    *,
    silent: bool = False,
    stops: bool = False,
    stripped: bool = False,
) -> Told:
    pieces = pieces_of(chunks, tokens(VOCABULARY, stripped=stripped), lambda _: usual)
    return tell(pieces, count, silent=silent, stops=stops)


def tokens(
    by_text: dict[bytes, int | None],
    lone_bytes: dict[bytes, int | None] | None = None,
    *,
    stripped: bool = False,
) -> Tokens:
    return Tokens(by_text, lone_bytes or {}, len(by_text), 99, stripped)


def test_a_chunk_that_is_one_tokens_text_names_it() -> None:
    """Also where its text could be two shorter ones: those would have come alone."""
    assert told([b"ab", b" a", b"a"], 3) == Told((2, 3, 0), (0, 1, 2))


def test_tokens_inside_a_character_come_together() -> None:
    """Two bytes and two more are the only way to make two tokens of it."""
    assert told([b"a", GRIN, b"b"], 4) == Told((0, 9, 12, 1), (0, 1, 1, 2))
    assert told([b"a", GRIN, b"b"], 5) == Told((0, 9, 10, 11, 1), (0, 1, 1, 1, 2))
    assert told([b"a", GRIN, b"b"], 3) == Told((0, 8, 1), (0, 1, 2))


def test_a_token_may_end_or_begin_inside_a_character() -> None:
    """With letters before it or behind it."""
    assert told([b"a", " bé".encode(), b"b"], 4) == Told((0, 13, 7, 1), (0, 1, 1, 2))
    assert told([" béa".encode()], 2) == Told((13, 14), (0, 0))


def test_a_chunk_may_end_inside_a_character() -> None:
    """The engine cuts where two texts part, which may be within one."""
    assert told([b"a", b"\xc3", b"\xa9", b"b"], 3) == Told((0, 5, 1), (0, 2, 3))


def test_of_two_ways_the_tokenizers_is_taken() -> None:
    """Two characters in three tokens: which is the whole one, nothing tells but the tokenizer."""
    one = other = "é".encode()
    assert told([one, b"a", other], 4, usual=(5,)).ids == (None, None, None, None)
    assert told([one, other], 4, usual=(6, 7)).ids == (6, 7, 6, 7)
    assert told([one, other], 2, usual=(6, 7)).ids == (5, 5)


def test_what_is_no_character_is_not_told_but_counted() -> None:
    """Bytes that never became one; what stands around them is told."""
    assert told([b"a", b"\xef\xbf\xbd", b"b"], 3).ids == (0, None, 1)
    assert told([b"a", b"\xef\xbf\xbd"], 3) == Told((0, None, None), (0, 1, 1))


def test_a_hidden_token_leaves_those_untold_that_it_may_move() -> None:
    """One more token than texts: it may stand anywhere, and equal neighbours hide nothing."""
    assert told([b"a", b"a", b"b"], 4, silent=True).ids == (None,) * 4
    assert told([b"a", b"b"], 3, silent=True).chunks == (0, 1, 1)


def test_a_stop_token_at_the_end_shows_no_text() -> None:
    """Where a bundle has one that the model makes, the last token may be it."""
    assert told([b"a", b"b"], 3, stops=True) == Told((0, 1, None), (0, 1, 1))


def test_without_a_way_to_make_them_none_is_told() -> None:
    """More tokens than there can be; each has the time of the last chunk that it may be in."""
    assert told([b"a", b"b"], 5) == Told((None,) * 5, (0, 1, 1, 1, 1))


@pytest.mark.parametrize(
    ("chunk", "expected"), [(b"a", None), (b"ab", None), (b"b", 1), (b"unknown", None)]
)
def test_a_first_space_that_is_left_out_may_have_been_there(
    chunk: bytes, expected: int | None
) -> None:
    """Where both are tokens, nothing tells which it was."""
    assert told([chunk, b"a"], 2, stripped=True).ids == (expected, 0)


BYTES: dict[bytes, int | None] = {b"c": 20, b"x": 21}
LETTERS: dict[bytes, int | None] = {
    b"c": 0, b" c": 1, b"x": 2, " é".encode(): 3, "é".encode(): 4, b"\xc3": 22, b"\xa9": 23,
    b"two": None,
}  # fmt: skip


def lettered(chunks: Sequence[bytes], count: int, *, stripped: bool = False) -> Told:
    """With bytes as tokens, by a tokenizer that makes none of these tokens of any text."""
    pieces = pieces_of(chunks, tokens(LETTERS, BYTES, stripped=stripped), lambda _: (99,))
    return tell(pieces, count, silent=False, stops=False)


def test_a_letter_that_a_byte_writes_too_is_the_letter() -> None:
    """A model takes the token that its tokenizer makes; a whole character before its bytes."""
    assert lettered([b"c", b"x", "é".encode(), b" c"], 4).ids == (0, 2, 4, 1)
    assert lettered([b"c", "é".encode(), b"x"], 4).ids == (0, 22, 23, 2)


def test_a_first_letter_may_have_had_a_space_though_bytes_write_it_too() -> None:
    """It is not taken for a token that is not there, which would tell the one with a space."""
    assert lettered([b"c", b"x"], 2, stripped=True).ids == (None, 2)
    assert lettered([b"x", b"c"], 2, stripped=True).ids == (2, 0)


def test_a_text_of_several_tokens_is_one_of_which_nothing_tells_which() -> None:
    """It counts as one, unlike a text that no token writes, and what is around it is told."""
    assert lettered([b"c", b"two", b"x"], 3).ids == (0, None, 2)
    assert lettered([b"c", b"two", b"x"], 4).ids == (None,) * 4
    assert lettered([b"c", b"none", b"x"], 4).ids == (0, None, None, 2)


def test_a_character_of_value_0_is_one() -> None:
    """It is a text as any other."""
    assert told([b"\0", b"a"], 2).ids == (15, 0)


def stream_of(ids: Sequence[int]) -> list[bytes]:
    """What the engine would send: text that no later token changes, when the next one is made."""
    shown = [
        b"".join(TEXTS[number] for number in ids[: at + 1]).decode("utf-8", "replace")
        for at in range(len(ids))
    ]
    chunks, sent = [], ""
    for text in shown:
        if not text.endswith("\ufffd") and text.startswith(sent) and text != sent:
            chunks.append(text[len(sent) :].encode())
            sent = text
    if shown[-1] != sent:
        chunks.append(shown[-1][len(sent) :].encode())
    return chunks


@given(st.lists(st.sampled_from(sorted(set(TEXTS) - {6, 7, 9, 10, 11, 12})), max_size=12))
def test_no_token_is_told_wrongly(ids: list[int]) -> None:
    """Of any tokens that are not made up of another one's parts: each is told rightly, or None."""
    ids = [0, *ids]
    chunks = stream_of(ids)
    pieces = pieces_of(chunks, tokens(VOCABULARY), lambda _: ())
    found = tell(pieces, len(ids), silent=False, stops=False)
    assert len(found.ids) == len(found.chunks) == len(ids)
    assert list(found.chunks) == sorted(found.chunks)
    assert all(token in (None, number) for number, token in zip(ids, found.ids, strict=True)), (
        found.ids
    )
