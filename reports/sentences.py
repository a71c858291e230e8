"""Sentences that name variants, kept apart from how Markdown and HTML set a name off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Name:
    """A name inside a sentence: of a variant, an option or a workload."""

    text: str


Sentence = tuple[str | Name, ...]


def plain(sentence: Sentence) -> str:
    """The sentence as plain text."""
    return "".join(part if isinstance(part, str) else one_line(part.text) for part in sentence)


def listed(names: Sequence[str]) -> Sentence:
    """Names as ``A, B and C``."""
    parts: list[str | Name] = []
    for place, name in enumerate(names):
        if place:
            parts.append(" and " if place == len(names) - 1 else ", ")
        parts.append(Name(name))
    return tuple(parts)


def joined(sentences: Iterable[Sentence]) -> Sentence:
    """Several sentences as one text, with a space between."""
    parts: list[str | Name] = []
    for sentence in sentences:
        if parts:
            parts.append(" ")
        parts.extend(sentence)
    return tuple(parts)
