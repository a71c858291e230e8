"""Words of other machines and of ssh, cut down to what may stand in a message."""

from __future__ import annotations

MAX_TEXT = 300


def one_line(text: str) -> str:
    """What another machine said, without what could move a cursor, and not too much of it.

    Without a full stop at its end, for it is put into sentences.
    """
    plain = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(plain.split())[:MAX_TEXT].rstrip(". ")


def last_line(text: str) -> str:
    """The last line that is not blank; empty where there is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else ""


def first_line(text: str) -> str:
    """The first line that is not blank; empty where there is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[0]) if lines else ""
