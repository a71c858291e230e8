"""Texts that the engine makes given ids of: it takes text and no ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_KEPT = 64
"""Texts that are remembered: a prompt comes again with each repetition."""


PART_OF_CHARACTER = "\ufffd"
"""What the engine writes for tokens that are no whole characters."""

ENDINGS = ("a", " a", "1", ".", "\n")
"""What may follow a text without changing its tokens, where its end alone would: of two line
breaks at the end, many tokenizers make one token, and two of the same before a word."""


class TokenizingEngine(Protocol):
    """What is needed of an engine."""

    def tokenize(self, text: str) -> list[int]:
        """The ids of a text, without a start token."""

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ids."""


class Texts:
    """Finds a text of given ids, and proves it by the engine's own tokenizer.

    Args:
        engine: whose tokenizer it is.
        start_token: what the engine itself puts before the first text of a session, or None.
        start_text: what the model's prompts begin with, or "".
        due_token: the id of that text, or None; ids without special tokens have it nowhere else.
    """

    def __init__(
        self,
        engine: TokenizingEngine,
        start_token: int | None,
        start_text: str,
        due_token: int | None = None,
    ) -> None:
        self._engine = engine
        self._due_token = due_token
        self._start_token = start_token
        self._start_text = start_text
        self._found: dict[tuple[tuple[int, ...], str | None, bool], str | None] = {}

    def first(self, ids: Sequence[int], text: str | None = None) -> str:
        """A text that is exactly these ids where nothing was taken in before.

        Args:
            ids: with a start token, if there is one.
            text: what they may be the ids of.

        Raises:
            RunnerFailure: none was found (unsupported).
        """
        return self._needed(ids, text, first=True)

    def next(self, ids: Sequence[int], text: str | None = None) -> str:
        """A text that is exactly these ids where something was taken in before.

        Raises:
            RunnerFailure: none was found (unsupported).
        """
        return self._needed(ids, text, first=False)

    def find(
        self, ids: Sequence[int], text: str | None = None, *, first: bool = False
    ) -> str | None:
        """As `first` and `next`, and None where none was found."""
        key = (tuple(ids), text, first)
        if key not in self._found:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[key] = self._search(list(ids), text, first=first)
        return self._found[key]

    def beginning(self, ids: Sequence[int], most: int) -> tuple[str, int] | None:
        """A text whose ids begin with these where something was taken in before.

        Args:
            ids: at least one.
            most: how many more ids there may be.

        Returns:
            The text, and how many more ids it has; None where none was found.
        """
        wanted = list(ids)
        for text in self._candidates(wanted, None):
            for ending in ENDINGS:
                found = self._tokens(text + ending) or []
                more = len(found) - len(wanted)
                if 0 < more <= most and found[: len(wanted)] == wanted:
                    return text + ending, more
        return None

    def _needed(self, ids: Sequence[int], text: str | None, *, first: bool) -> str:
        found = self.find(ids, text, first=first)
        if found is None:
            count = f"{len(ids)} ids" if len(ids) > 1 else "id"
            added = self._start_token if first else None
            msg = (
                f"LiteRT-LM takes text only, and no text was found that its tokenizer makes "
                f"exactly the asked {count} of"
                + (
                    f", after the start token {added} that this bundle adds"
                    if added is not None
                    else ""
                )
                + "; its tokenizer differs from the one that made the ids, or they were drawn at "
                "random: take a workload with a prompt, or with text: natural"
            )
            raise RunnerFailure(msg, reason="unsupported")
        return found

    def _search(self, ids: list[int], text: str | None, *, first: bool) -> str | None:
        if first and self._start_token is not None:
            if ids[:1] != [self._start_token]:
                return None
            ids = ids[1:]
        if not ids:
            return None
        return next(
            (each for each in self._candidates(ids, text) if self._tokens(each) == ids), None
        )

    def _candidates(self, ids: list[int], text: str | None) -> Iterator[str]:
        if text is not None:
            yield text
            yield self._start_text + text
        written = self._engine.detokenize(ids)
        yield written
        # SentencePiece leaves out a text's first space.
        yield f" {written}"
        if ids[0] == self._due_token and self._start_text:
            # It is no part of the text then, to whose beginning a tokenizer may add a space.
            written = self._engine.detokenize(ids[1:]) if ids[1:] else ""
            yield self._start_text + written
            yield f"{self._start_text} {written}"

    def _tokens(self, text: str) -> list[int] | None:
        try:
            return self._engine.tokenize(text)
        except RunnerFailure:
            return None
