"""Small pieces of text that languages write differently: lists, and sentences in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import ENGLISH, _, current

if TYPE_CHECKING:
    from collections.abc import Iterable


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
