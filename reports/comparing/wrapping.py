"""Lines no longer than a terminal is wide. English only."""

from __future__ import annotations

import re
import textwrap
from typing import Final

WIDTH: Final = 80
INDENT: Final = "  "
HEAD: Final = 11
"""Columns of the short word that a fact begins with."""

_UNIT: Final = re.compile(r"(?<=[0-9]) (?=(?:%|[µm]?s|[KMG]iB|B|tokens/s)(?![A-Za-z]))")
"""Between a number and its unit, where no line ends."""
_TIED: Final = "\N{NO-BREAK SPACE}"


def wrapped(text: str, width: int = WIDTH, first: str = "", others: str | None = None) -> list[str]:
    """A text in lines of at most `width`, but for words that are longer by themselves.

    A path or a run's id is never broken, nor a number from its unit.

    Args:
        text: one line; see `edgebench.reports.text.one_line`.
        width: in columns.
        first: what the first line begins with.
        others: what all others begin with; by default as many blanks as `first` has columns.

    Returns:
        At least one line, without trailing blanks.
    """
    lines = textwrap.wrap(
        _UNIT.sub(_TIED, text),
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first) if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_TIED, " ") for line in lines] or [first.rstrip()]


def hanging(text: str, width: int = WIDTH, indent: int = 0) -> list[str]:
    """Indented, and all lines but the first by two columns more."""
    return wrapped(text, width, " " * indent, " " * (indent + len(INDENT)))


def fact(head: str, text: str, width: int = WIDTH) -> list[str]:
    """A short word and a text beside it."""
    return wrapped(text, width, f"{head:<{HEAD}}", " " * HEAD)
