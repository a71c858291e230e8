"""Sentences that name variants, kept apart from how Markdown and HTML set a name off."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.languages import _
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Name:
    """A name inside a sentence: of a variant, an option or a workload."""

    text: str


Sentence = tuple[str | Name, ...]

_CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


def fill(message: str, /, **parts: object) -> Sentence:
    """A message of the current language as a sentence, its fields filled in.

    Args:
        message: the English text, a literal; see `edgebench.reports.languages`.
        parts: by field: a `Name`, a sentence, or anything that can be written.
    """
    found: list[str | Name] = []
    for text, field, _spec, _conversion in string.Formatter().parse(_(message)):
        found.append(text)
        part = parts[field] if field is not None else ""
        found.extend(
            part if isinstance(part, tuple) else (part if isinstance(part, Name) else str(part),)
        )
    return _closed_up([part for part in found if part != ""])


def plain(sentence: Sentence) -> str:
    """The sentence as plain text."""
    return "".join(part if isinstance(part, str) else one_line(part.text) for part in sentence)


def listed(names: Sequence[str]) -> Sentence:
    """Names as ``A, B and C``."""
    parts: list[str | Name] = []
    for place, name in enumerate(names):
        if place:
            parts.append(_(" and ") if place == len(names) - 1 else _(", "))
        parts.append(Name(name))
    return tuple(parts)


def joined(sentences: Iterable[Sentence]) -> Sentence:
    """Several sentences as one text, with a space between where the language has one."""
    parts: list[str | Name] = []
    for sentence in sentences:
        if parts:
            parts.append(_(" "))
        parts.extend(sentence)
    return tuple(parts)


def _closed_up(parts: list[str | Name]) -> Sentence:
    """A sentence without blanks between Chinese words, where a filled in one met another."""
    for place in range(len(parts) - 1):
        before, after = parts[place], parts[place + 1]
        if isinstance(before, Name) or isinstance(after, Name):
            continue
        left, right = before.rstrip(" "), after.lstrip(" ")
        if left and right and _CHINESE.match(left[-1]) and _CHINESE.match(right[0]):
            parts[place], parts[place + 1] = left, right
    return tuple(parts)
