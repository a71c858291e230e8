"""Log-likelihoods of given tokens by LiteRT-LM, around a fault of its scoring.

It takes a prefix in and rates a text after it, one step a token. On its first step it puts the
prefix's last token into the cache where the last but one was. So the prefix is given with one more
token before its last one, which is overwritten: what is rated then is exactly what was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_texts import PART_OF_CHARACTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from edgebench.runners.litert_engine import Engine
    from edgebench.runners.litert_texts import Texts

FILLERS = ("<|endoftext|>", "<s>", "</s>", "<pad>")
"""Texts of special tokens, which a tokenizer never joins with what stands beside them. Which one is
taken makes no difference, since it is overwritten."""

LOW_IDS = 64
"""Special tokens often have the first ids; and some of these is a token of its own in any case."""

MOST_BACK = 16
"""Tokens more than asked for that are rated, where a text can't be cut at the place asked for."""

WAY_OUT = "take another text or other lengths for it, or leave LiteRT-LM out"

CHECKED = "The quick brown fox jumps over the lazy dog, and 12 boxes of it are quite enough."
COMPARED = 8
NEAR, FAR = 1, 6
"""Lengths of the two prefixes that must give the same figures of the tokens after both; the second
is longer where the text can't be cut at two places before."""

MOST_OFF = 0.1
"""How far these may be apart on average: equal but for rounding. Without the workaround, or where
it is not needed, SmolLM2 is off by more than 1."""


def apart(
    rate: Callable[[list[int], int], list[float]], ids: list[int], near: int, far: int = FAR
) -> float:
    """By how much scores of the same tokens differ on average where the text is cut elsewhere.

    Args:
        rate: gives the log-likelihoods of the ids from a position on.
        ids: more than `far`.
        near: where it is cut once.
        far: where it is cut the other time, behind that.
    """
    some, others = rate(ids, near), rate(ids, far)
    off = [abs(one - other) for one, other in zip(some[far - near :], others, strict=True)]
    return sum(off) / len(off)


class NotFiniteError(RunnerFailure):
    """A token was rated with what is no number."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where ids are cut, and the texts of both parts.

    Attributes:
        place: the first token that is rated.
        taken_in: texts of the tokens before it, with a filler.
        rest: the text to rate.
        more: tokens at the end of it that are none of the ids'.
    """

    place: int
    taken_in: list[str]
    rest: str
    more: int


class Scoring:
    """Rates tokens with one engine.

    Args:
        engine: with a model.
        texts: of that engine.
        start_token: what the engine itself puts before the first text, or None.
        due_token: what the model's texts begin with, whoever puts it there, or None.
        most: the most tokens that may be rated, or None where that is not known.
    """

    def __init__(
        self,
        engine: Engine,
        texts: Texts,
        start_token: int | None,
        due_token: int | None,
        most: int | None,
    ) -> None:
        self._engine = engine
        self._texts = texts
        self._start_token = start_token
        self._due_token = due_token
        self._most = most
        self._filler: tuple[int, str] | None = None
        self._wrong: str | None = None
        self._no_numbers = False
        self._checked = False

    def score(self, ids: Sequence[int], start: int) -> list[float]:
        """The natural logarithm of how likely each of ``ids[start:]`` is, all before it given.

        Args:
            ids: no more than the cache has places: past its end the engine writes into other
                memory.
            start: at least 1.

        Raises:
            RunnerFailure: the texts can't be made, or this version of the engine rates other
                tokens than asked for (unsupported), or a rating is no number.
        """
        self._check(list(ids), start)
        return self._rate(list(ids), start)

    def _check(self, ids: list[int], start: int) -> None:
        """Whether what is rated does not depend on how a text is cut; once, at the first use.

        Where the text of the check is rated with what is no number, the ids most likely are, too:
        what is told then is where.
        """
        if not self._checked:
            self._wrong = self._fault()
            self._checked = True
        if self._wrong:
            if self._no_numbers:
                self._rate(ids, start)
            raise RunnerFailure(self._wrong, reason="unsupported")

    def _fault(self) -> str | None:
        try:
            ids = self._engine.tokenize(CHECKED)
            if self._due_token is not None:
                ids = [self._due_token, *ids]
            ids = ids[: self._most]
            if len(ids) <= FAR + 1:
                return (
                    "LiteRT-LM's scores can't be checked: its context or a text for it has "
                    f"{len(ids)} tokens only"
                )
            near = NEAR if self._due_token is None else NEAR + 1
            for far in range(FAR, len(ids) - 1):
                some = ids[: far + COMPARED]
                if 0 < self._place(some, near) < self._place(some, far):
                    break
            else:
                return "LiteRT-LM's scores can't be checked: a text can't be cut at two places"
            off = apart(self._rate, some, near, far)
        except RunnerFailure as failure:
            self._no_numbers = isinstance(failure, NotFiniteError)
            return f"LiteRT-LM's scores can't be checked: {failure}"
        if off <= MOST_OFF:
            return None
        return (
            f"LiteRT-LM's scores are wrong: of the same tokens they differ by {off:.2g} with where "
            "the text before them is cut, so this is no version that edgebench knows"
        )

    def _place(self, ids: list[int], start: int) -> int:
        """Where the ids are cut to rate from `start` on, or 0 where they can't be."""
        try:
            return self._cut(ids, start).place
        except RunnerFailure:
            return 0

    def _cut(self, ids: list[int], start: int) -> Cut:
        """How to rate from `start` on, or from some tokens before."""
        room = len(ids) if self._most is None else self._most - len(ids)
        for place in range(start, max(start - MOST_BACK, 0), -1):
            rest, more = self._texts.find(ids[place:]), 0
            if rest is None:
                rest, more = self._texts.beginning(ids[place:], room) or (None, 0)
            taken_in = self._prefix(ids[:place]) if rest is not None else None
            if rest is not None and taken_in is not None:
                return Cut(place, taken_in, rest, more)
        msg = (
            f"LiteRT-LM takes text only, and {self._reason(ids, start, room)}; its tokenizer makes "
            f"these {len(ids)} tokens of no text then: {WAY_OUT}"
        )
        raise RunnerFailure(msg, reason="unsupported")

    def _reason(self, ids: list[int], start: int, room: int) -> str:
        """Why no texts were found."""
        written = self._engine.detokenize(ids)
        if written.startswith(PART_OF_CHARACTER):
            return f"token {ids[0]}, the first of them, is a part of a character"
        if written.endswith(PART_OF_CHARACTER):
            return f"token {ids[-1]}, the last of them, ends within a character"
        first = max(start - MOST_BACK, 1)
        told = f"this text can't be cut for it between tokens {first} and {start + 1}"
        if room < 1:
            return f"{told}, or at its end, behind which its context of {self._most} has no room"
        return told

    def _rate(self, ids: list[int], start: int) -> list[float]:
        cut = self._cut(ids, start)
        with self._engine.session() as session:
            for text in cut.taken_in:
                session.prefill(text.encode())
            rated = session.score(cut.rest.encode())
            took = sum(turn.tokens for turn in session.turns()[0])
        wanted = len(ids) - cut.place
        if took != cut.place + 1 or len(rated) != wanted + cut.more:
            msg = (
                f"LiteRT-LM took in {took} tokens and rated {len(rated)}, "
                f"instead of {cut.place + 1} and {wanted + cut.more}"
            )
            raise RunnerFailure(msg)
        for place, number in enumerate(rated[:wanted], cut.place):
            if not math.isfinite(number):
                msg = (
                    f"LiteRT-LM rated token {ids[place]}, at position {place} of {len(ids)} "
                    f"(counted from 0), with {number}: its weights or its build are bad"
                )
                raise NotFiniteError(msg)
        return rated[start - cut.place : wanted]

    def _prefix(self, ids: list[int]) -> list[str] | None:
        """Texts that are `ids` with a filler before the last one; None where there are none."""
        token, filler = self._any_filler()
        if ids == [self._start_token]:
            # The engine puts one before it, which is the filler.
            written = self._texts.find([*ids, *ids], first=True)
            return None if written is None else [written]
        whole = self._texts.find([*ids[:-1], token, ids[-1]], first=True)
        if whole is not None:
            return [whole]
        last = self._texts.find(ids[-1:])
        if last is None:
            return None
        before = [] if ids[:-1] in ([], [self._start_token]) else ids[:-1]
        if not before:
            return [filler, last]
        head = self._texts.find(before, first=True)
        return None if head is None else [head, filler, last]

    def _any_filler(self) -> tuple[int, str]:
        """A token and the text that is that token alone."""
        if self._filler is None:
            for text in self._fillers():
                ids = self._engine.tokenize(text) if "\0" not in text else []
                if len(ids) == 1:
                    self._filler = ids[0], text
                    break
            else:
                msg = "LiteRT-LM can't rate tokens here: no text was found that is one token"
                raise RunnerFailure(msg, reason="unsupported")
        return self._filler

    def _fillers(self) -> Iterator[str]:
        yield from FILLERS
        yield from (self._engine.detokenize([number]) for number in range(LOW_IDS))
