"""What is wrong with a file that a person wrote: the path, the place and a plain sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a document: keys and list indices, outermost first."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_QUOTE = 48


class Position(NamedTuple):
    """A place in a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem whose place in the file is not looked up yet.

    Attributes:
        path: the value or key that is wrong.
        message: what is wrong and what is allowed, without a full stop.
        at: whether the key or the value is to blame.
    """

    path: KeyPath
    message: str
    at: Literal["key", "value"] = "value"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem with its place; problems sort in the order of the file."""

    position: Position
    path: str
    message: str

    def line(self, filename: str) -> str:
        """The problem as one line, ``file:line:column: path: message``."""
        line, column = self.position
        return f"{one_line(filename)}:{line}:{column}: {self.path}: {self.message}"


def format_path(path: KeyPath, root: str = "scenario") -> str:
    """`path` as people write it, such as ``variants[0].threads``; `root` for the whole file."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) and len(part) <= _LONGEST_QUOTE else quote(part)
            text += f".{key}" if text else key
    return text or root


def one_line(text: str) -> str:
    """`text` with everything that would break a line or a terminal written as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def quote(text: str) -> str:
    """`text` in quotes, on one line, cut where it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…")


def shown(value: object) -> str:  # noqa: PLR0911 - one line for each kind of value
    """`value` as it stands in a message, with its kind where the kind is what is wrong."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()} (true or false)"
        case int():
            return f"{value} (a whole number)"
        case float():
            return f"{value!r} (a number)"
        case str():
            return f"{quote(value)} (text)"
        case list() | tuple():
            return "a list"
        case dict():
            return "a group of keys"
        case _:
            return "a date or time"  # the one other kind there is, in TOML


def suggestion(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that `name` was probably meant to be, or None."""
    # People write the case and the dash differently; compare as if they had not.
    folded = {fold(known): known for known in sorted(allowed, reverse=True)}
    close = get_close_matches(fold(name[:_LONGEST_QUOTE]), folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def fold(name: str) -> str:
    """`name` without the differences that people overlook: case, ``-`` against ``_``."""
    return name.casefold().replace("-", "_")


def unknown(what: str, name: str, allowed: Iterable[str], near: Iterable[str] = ()) -> str:
    """The message for a name that is not one of `allowed`, nor one of those `near` by."""
    known = sorted(allowed)
    meant = suggestion(name, [*known, *near])
    if meant is not None:
        return f"{what}; did you mean {meant!r}?"
    return f"{what}; allowed: {', '.join(known) if known else 'none'}"
