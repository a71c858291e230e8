"""Texts that a run recorded: written in English by the harness, shown in the report's language.

A record quotes whoever wrote it, so only what is known word for word is translated; anything else,
such as a framework's own message, stands as it was recorded. ``<language>/recorded.json`` holds
the known ones. Their fields stand for what differs from run to run, numbers and names.
"""

from __future__ import annotations

import json
import re
import string
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from edgebench.reports.languages import ENGLISH, current
from edgebench.reports.languages.words import semicolons

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "recorded.json"
_SENTENCE_END = re.compile(r"\. (?=[A-Z])")
_ENGLISH = re.compile(r"[A-Za-z][A-Za-z'’]*(?:[ \n]+[A-Za-z][A-Za-z'’]*){2,}")
"""Three English words in a row, or more."""


def recorded(text: str) -> str:
    """A recorded text in the current language where it is known; else as it was recorded.

    Args:
        text: a reason, a finding or a message of a run's records. A full stop at its end, or its
            absence, is kept; whole English sentences that nobody knows stand in quotation marks,
            so that a sentence around them can be read.
    """
    tag = current()
    if tag == ENGLISH or not text:
        return text
    bare = text.removesuffix(".")
    found = _sentences(tag, bare) or _known(tag, bare) or _parts(tag, bare) or _quoted(bare)
    return text if found == bare else f"{found}{'。' if bare != text else ''}"


def _sentences(tag: str, text: str) -> str | None:
    """A message and its remedy, as records join them; None where none of them is known."""
    pieces = _SENTENCE_END.split(text)
    return _pieces(tag, pieces, "。") if len(pieces) > 1 else None


def _parts(tag: str, text: str) -> str | None:
    """Several reasons or notes in one text, as records join them; None where none is known."""
    pieces = text.split("; ")
    return _pieces(tag, pieces, semicolons(("", ""))) if len(pieces) > 1 else None


def _pieces(tag: str, pieces: list[str], between: str) -> str | None:
    known = [_known(tag, each) for each in pieces]
    if not any(known):
        return None
    said = (found or _quoted(each) for found, each in zip(known, pieces, strict=True))
    return between.join(said)


def _quoted(text: str) -> str:
    """What nobody knows: a sentence in quotation marks, a name or a few words as they are."""
    return f"“{text}”" if _ENGLISH.search(text) else text


@cache
def _known(tag: str, text: str) -> str | None:
    exact, patterns = _texts(tag)
    if text in exact:
        return exact[text]
    for pattern, translation in patterns:
        match = pattern.fullmatch(text)
        if match:
            # What a field holds may be a known text itself: the reason behind a refusal.
            fields = {key: _known(tag, part) or part for key, part in match.groupdict().items()}
            return translation.format(**fields)
    return None


@cache
def _texts(tag: str) -> tuple[Mapping[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    """The known texts without fields, and those with, the ones that begin most exactly first."""
    file = resources.files(__package__).joinpath(tag, FILE)
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    exact = {each: text for each, text in known.items() if not _fields(each)}
    patterns = [(each, text) for each, text in known.items() if each not in exact]
    patterns.sort(key=lambda pair: (-pair[0].index("{"), -len(pair[0])))
    return exact, tuple((_pattern(each), text) for each, text in patterns)


def _fields(message: str) -> set[str]:
    return {name for _text, name, *_rest in string.Formatter().parse(message) if name}


@cache
def _pattern(message: str) -> re.Pattern[str]:
    parts = [
        re.escape(text) + (f"(?P<{name}>.+?)" if name else "")
        for text, name, *_rest in string.Formatter().parse(message)
    ]
    return re.compile("".join(parts), re.DOTALL)
