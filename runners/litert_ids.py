"""Which tokens a stream of text is made of, and with which of its chunks each of them came.

The engine hands a token's text over as a chunk of its own, as soon as it is whole characters: a
token that ends within a character is held until the character is complete. So within a chunk, one
token can end and the next begin only inside a character of several bytes. That, the vocabulary and
the number of tokens tell nearly always which they were; what they don't tell is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from edgebench.runners.litert_vocabulary import Tokens, Vocabulary

Ids = tuple[int | None, ...]

REPLACEMENT = "\ufffd".encode()
"""What the engine writes for bytes that are no character: of one token, or of up to three."""

MOST_UNTOLD = 8
"""Tokens that a piece of text can be which the vocabulary does not explain."""

MOST_SILENT = 4
"""Tokens that show no text, in one stream; of more, no token is told."""

MOST_WAYS = 64
"""To take a piece of text apart; there are hardly ever more than three."""

CONTINUATION, CONTINUATION_MASK = 0x80, 0xC0
"""How all bytes of a character but the first one begin."""


@dataclass(frozen=True, slots=True)
class Told:
    """The tokens of a stream.

    Attributes:
        ids: of all tokens in their order; None where the text does not tell which it was.
        chunks: for each token the index of the chunk that it came with, the last one it may be.
    """

    ids: tuple[int | None, ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that begins and ends with a token.

    Attributes:
        chunk: index of the last chunk that it is made of.
        ways: which tokens can have made it; the first is the likeliest. None is a token of which
            the text does not tell which it was.
        untold: no tokens were found that write it, and the ways are only as many as may have.
    """

    chunk: int
    ways: Sequence[Ids]
    untold: bool = False


def pieces_of(
    chunks: Sequence[bytes],
    tokens: Tokens,
    usual: Callable[[str], Sequence[int]],
) -> list[Piece]:
    """The pieces of text that begin and end with a token.

    Args:
        chunks: as they came, at least one; none is empty.
        tokens: of the model.
        usual: the tokens that the model's tokenizer makes of a text; of several ways to make a
            text, a model takes that one.
    """
    pieces: list[Piece] = []
    for last, text in _whole_characters(chunks):
        ways: list[_Way] = []
        # Where a token writes that sign itself, nothing tells it from another.
        if REPLACEMENT not in text:
            ways = _likeliest_first(_ways(text, tokens), text, usual)
            if tokens.stripped and not pieces:
                ways = _with_or_without_space(ways, _ways(b" " + text, tokens))
        if ways:
            pieces.append(Piece(last, [way.ids for way in ways]))
        else:
            most = min(len(text), MOST_UNTOLD)
            pieces.append(Piece(last, [(None,) * many for many in range(1, 1 + most)], untold=True))
    return pieces


def tell(pieces: Sequence[Piece], count: int, *, silent: bool, stops: bool) -> Told:
    """The likeliest tokens of a text.

    Where several choices are as likely, tokens in which they differ are None.

    Args:
        pieces: at least one, and at most `count`.
        count: how many tokens they are, those included that show no text. Such a token comes with
            the next one that does.
        silent: whether the vocabulary has tokens that show no text.
        stops: whether the last token may be one that ends a text, which shows none.
    """
    hidden = count - sum(min(map(len, piece.ways)) for piece in pieces)
    most = min(hidden, MOST_SILENT + 1) if silent else 0
    steps = [_Step.of(piece, most, free=not (silent or stops)) for piece in pieces]
    steps.append(_Step.of_end(pieces[-1].chunk, most, stops=stops))
    before = _costs(steps, count)
    if most > MOST_SILENT or count not in before[-1]:
        last = len(pieces) - 1
        return Told((None,) * count, tuple(pieces[min(at, last)].chunk for at in range(count)))
    after = [
        {count - total: cost for total, cost in costs.items()}
        for costs in _costs(steps[::-1], count)[::-1]
    ]
    least = before[-1][count]
    ids: list[set[int | None]] = [set() for _ in range(count)]
    chunks = [0] * count
    for step, here, beyond in zip(steps, before[:-1], after[1:], strict=True):
        for start, cost in here.items():
            for way, price in step.ways:
                rest = beyond.get(start + len(way))
                if rest is not None and cost + price + rest == least:
                    for place, token in enumerate(way, start):
                        ids[place].add(token)
                        chunks[place] = max(chunks[place], step.chunk)
    return Told(tuple(one.pop() if len(one) == 1 else None for one in ids), tuple(chunks))


@dataclass(frozen=True, slots=True)
class _Step:
    """Tokens that came with a chunk, in each way with what it costs to believe in it.

    It costs 1 for each token that shows no text, and for a text made of other tokens than the
    tokenizer's.
    """

    chunk: int
    ways: Sequence[tuple[Ids, int]]

    @classmethod
    def of(cls, piece: Piece, most: int, *, free: bool) -> _Step:
        """A piece, with up to `most` tokens before it that show no text.

        Where it is no character, it is as well (`free`) several tokens as one, if nothing else
        can be more tokens than it shows.
        """
        ways = []
        for place, way in enumerate(piece.ways):
            unusual = (0 if free else len(way) - 1) if piece.untold else min(place, 1)
            ways += [((None,) * more + way, more + unusual) for more in range(max(most, 0) + 1)]
        return cls(piece.chunk, ways)

    @classmethod
    def of_end(cls, chunk: int, most: int, *, stops: bool) -> _Step:
        """Tokens that show no text after the last piece."""
        most = max(most, 1 if stops else 0)
        return cls(chunk, [((None,) * more, more) for more in range(most + 1)])


def _costs(steps: Sequence[_Step], count: int) -> list[dict[int, int]]:
    """Before each step and after the last: how many tokens there can be, and the least cost."""
    costs: list[dict[int, int]] = [{0: 0}]
    for step in steps:
        reached: dict[int, int] = {}
        for total, cost in costs[-1].items():
            for way, price in step.ways:
                after = total + len(way)
                if after <= count and cost + price < reached.get(after, cost + price + 1):
                    reached[after] = cost + price
        costs.append(reached)
    return costs


def _whole_characters(chunks: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Texts of whole characters, each with the index of its last chunk."""
    held = b""
    for at, chunk in enumerate(chunks):
        held += chunk
        try:
            held.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and at < len(chunks) - 1:
                continue
        yield at, held
        held = b""


@dataclass(frozen=True, slots=True)
class _Way:
    """Tokens that write a text, and how many of them stand for a byte that others write too."""

    ids: Ids = ()
    unlikely: int = 0


def _ways(text: bytes, tokens: Tokens) -> list[_Way]:
    """All ways to make a text of tokens that end at its end or inside a character."""
    ends = [at for at in range(1, len(text)) if text[at] & CONTINUATION_MASK == CONTINUATION]
    found: list[_Way] = []
    open_ways: list[tuple[int, _Way]] = [(0, _Way())]
    vocabularies: Sequence[tuple[Vocabulary, int]] = ((tokens.by_text, 0), (tokens.lone_bytes, 1))
    while open_ways and len(found) < MOST_WAYS:
        start, way = open_ways.pop()
        for end in [*(at for at in ends if at > start), len(text)]:
            part = text[start:end]
            for vocabulary, unlikely in vocabularies:
                if part not in vocabulary:
                    continue
                longer = _Way((*way.ids, vocabulary[part]), way.unlikely + unlikely)
                if end == len(text):
                    found.append(longer)
                else:
                    open_ways.append((end, longer))
    return found


def _likeliest_first(
    ways: list[_Way], text: bytes, usual: Callable[[str], Sequence[int]]
) -> list[_Way]:
    if len(ways) < 2:  # noqa: PLR2004
        return ways
    first = tuple(usual(text.decode("utf-8", "replace")))
    return sorted(ways, key=lambda way: (way.ids != first, way.unlikely, len(way.ids)))


def _with_or_without_space(ways: list[_Way], spaced: list[_Way]) -> list[_Way]:
    """Where both are tokens, nothing tells which it was."""
    if not ways or not spaced:
        return ways or spaced
    return [_Way((None,) * many) for many in sorted({len(way.ids) for way in (*ways, *spaced)})]
