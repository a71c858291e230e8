"""Where a long text is cut into windows, and which of their tokens are scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """One window, in places of the text's tokens, without a start token before them.

    Attributes:
        start, end: the tokens that it holds.
        first: the first of them that is scored; all up to `end` are.
    """

    start: int
    end: int
    first: int

    @property
    def scored(self) -> int:
        """How many tokens are scored."""
        return self.end - self.first


def sliding(
    count: int, *, window: int, stride: int, score_from: int, starts: bool, most: int
) -> list[Span]:
    """Overlapping windows of which each scores what none before it did.

    From the first scored token to the last each is scored once, and has at least `score_from`
    tokens before it in its window.

    Args:
        count: tokens in the text.
        window: most tokens in a window, a start token counted.
        stride: how many tokens a window goes beyond the one before.
        score_from: the first position that is scored, a start token counted; nothing stands before
            position 0, so 0 means 1.
        starts: whether a start token stands before each window's tokens.
        most: most tokens to score; the last window is cut to them.

    Returns:
        No window where the text is too short for one scored token.

    Raises:
        ValueError: tokens would be left out or have less before them than asked for.
    """
    least = least_before(score_from)
    if not 1 <= stride <= window - least:
        msg = f"a stride of {stride} leaves tokens out of windows of {window} scored from {least}"
        raise ValueError(msg)
    room = window - starts
    spans: list[Span] = []
    start, first = 0, least - starts
    while first < count and most > 0:
        end = min(start + room, count, first + most)
        spans.append(Span(start, end, first))
        most -= end - first
        start, first = start + stride, end
    return spans


def chunks(count: int, *, window: int, starts: bool, most: int) -> list[Span]:
    """Windows side by side as llama.cpp's ``llama-perplexity`` makes them.

    A start token takes the place of each window's first token; what stands in the second half is
    scored, but for its first token; what is left of the text at its end is dropped.

    Args:
        count: tokens in the text.
        window: tokens in each window, a start token counted.
        starts: whether the model's texts begin with a start token.
        most: most tokens to score; windows are not cut, so it may be fewer.
    """
    each = scored_in_chunk(window)
    number = min((count + starts) // window, most // each)
    return [
        Span(start, start + window - starts, start + window - each - starts)
        for start in range(0, number * window, window)
    ]


def scored_in_chunk(window: int) -> int:
    """How many tokens of a window ``llama-perplexity`` scores."""
    return window - window // 2 - 1


def least_before(score_from: int) -> int:
    """How many tokens stand before any scored one, at least."""
    return max(score_from, 1)
