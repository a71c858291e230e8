"""How two things that can't be compared are refused: both are named, with what differs."""

from __future__ import annotations

from typing import NoReturn

from edgebench.harness.errors import NotComparableError
from edgebench.harness.scenario.problems import one_line


def refuse(
    what: str, one: tuple[str, str], other: tuple[str, str], remedy: str | None = None
) -> NoReturn:
    """Raise with both names, what each has, and what to do.

    Args:
        what: what can't be done and why, a sentence with its full stop.
        one: a name and what it has.
        other: the same of the other.
        remedy: what to do about it.

    Raises:
        NotComparableError: always.
    """
    said = (f"  {one_line(name)}: {one_line(value)}" for name, value in (one, other))
    # Of two paths to one thing both are named; of one path only once.
    lines = list(dict.fromkeys(said))
    raise NotComparableError("\n".join((what, *lines)), remedy=remedy)
