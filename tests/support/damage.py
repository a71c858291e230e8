"""Texts that tools print, damaged as no tool should."""

from __future__ import annotations

import re

from hypothesis import strategies as st

NUMBERS = (
    *(
        "0",
        "-1",
        "-0.0",
        "1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "nan",
        "--5",
        "1_0",
        "true",
    ),
    *("null", "9" * 400, "9" * 5000, "1" + "0" * 30, "0.00", '"text"', "[1, 2]", "1.2.3", "٣", ""),
    *('"\\ud800"', "-5.53s", "5.53", "[" * 100_000, "\x1b[31m", "\x00"),
)


def damaged(text: str) -> st.SearchStrategy[str]:
    """Some of its numbers are something else, and it may be cut off."""
    places = [found.span() for found in re.finditer(r"-?[0-9]+(?:\.[0-9]+)?", text)]

    def made(changes: dict[int, str], end: int) -> str:
        parts, last = [], 0
        for at, (start, stop) in enumerate(places):
            if at in changes:
                parts += [text[last:start], changes[at]]
                last = stop
        return "".join([*parts, text[last:]])[: None if end > len(text) else end]

    at = st.integers(0, max(0, len(places) - 1))
    changes = st.dictionaries(at, st.sampled_from(NUMBERS), max_size=4)
    return st.builds(made, changes, st.integers(0, 2 * len(text)))
