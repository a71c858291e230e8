"""Small pieces of text that languages write differently: lists, and sentences in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import ENGLISH, _, current

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

_ENGLISH_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def commas(texts: Iterable[str]) -> str:
    """Texts as ``A, B, C``."""
    return _(", ").join(texts)


def semicolons(texts: Iterable[str]) -> str:
    """Texts as ``A; B; C``."""
    return _("; ").join(texts)


def paragraph(sentences: Iterable[str]) -> str:
    """Sentences, each with its full stop, one after the other."""
    return _(" ").join(sentences)


def lowered(label: str) -> str:
    """A metric's label as it stands inside of a sentence: an English one begins small.

    Args:
        label: the label, looked up already.
    """
    return label.lower() if current() == ENGLISH else label


def unstopped(text: str) -> str:
    """A text without the full stop at its end, to go on after it."""
    return text.rstrip(".。")


def day_text(day: date) -> str:
    """A day as people write it in a sentence, such as ``14 January 2025``."""
    if current() == ENGLISH:
        return f"{day.day} {_ENGLISH_MONTHS[day.month - 1]} {day.year}"
    return f"{day.year}年{day.month}月{day.day}日"
