"""What the terminal says of all comparisons at the end of a session."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 79


def summary_lines(told: Sequence[tuple[str, str]]) -> list[str]:
    """Each test once, and below it a sentence for each of its comparisons.

    Args:
        told: tests' ids, each with a sentence; a test may come several times.
    """
    lines: list[str] = []
    last = ""
    for test, sentence in told:
        if test != last:
            lines.append(test)
            last = test
        lines += textwrap.wrap(
            sentence,
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
