"""Text from outside in Markdown that a forge shows in a comment. English only.

A comment is Markdown of more dialects than one: beside what `edgebench.reports.text.markdown`
escapes, a forge calls the user of ``@name``, links ``#1``, and links addresses. A space of no width
keeps it from that, as it does in the comments of other bots.
"""

from __future__ import annotations

import re

from edgebench.reports.markdown_text import inline
from edgebench.reports.text import markdown_code, one_line

NO_WIDTH = "&#8203;"
_LONGEST_NAME = 200
_LONGEST_TEXT = 600
_CALLS = re.compile(r"@(?=\w)|[#!](?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)", re.I)


def name(text: str) -> str:
    """A name from outside: as code, in which nothing acts, or escaped where code can't hold it."""
    line = clipped(one_line(text), _LONGEST_NAME)
    coded = markdown_code(line)
    return coded if coded.startswith("`") else _still(coded)


def within(line: str) -> str:
    """A text from outside within a line or a table's cell."""
    return _still(inline(clipped(one_line(line), _LONGEST_TEXT)))


def sentence(line: str) -> str:
    """`within`, with a full stop. It begins as it is: a variant's name has no capital."""
    kept = one_line(line)
    return within(kept if not kept or kept[-1] in ".!?:…" else f"{kept}.")


def clipped(line: str, longest: int) -> str:
    """A line without what is beyond so many characters."""
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def _still(escaped: str) -> str:
    return _CALLS.sub(lambda found: found.group() + NO_WIDTH, escaped)
