"""The languages of reports: messages are written in English in the code and looked up here.

As with gettext, the English text is the key. A message may hold fields, such as ``{variant}``,
which every translation has too. Catalogues are ``languages/<language>/*.json``, each one object
from English to the language; how they are split is for those who maintain them.

    from edgebench.reports.languages import N_, _, plural

    _("{variant} failed on {count} workloads.", variant=name, count=3)
    plural("{count} window", "{count} windows", count)
    TITLES = {"ttft": N_("First token soonest")}    # marked here, looked up later: _(TITLES[key])

What is looked up must be looked up while a report is made (inside of `language`), never when a
module is imported. tests/unit/reports/test_languages.py finds every message that lacks one.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
"""The languages that a report can be asked for, as BCP 47 tags; the first is the default."""

_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


@contextmanager
def language(tag: str) -> Iterator[None]:
    """Make reports in a language, one of `LANGUAGES`, as long as this lasts."""
    if tag not in LANGUAGES:
        msg = f"no such language: {tag}"
        raise ValueError(msg)
    before = _current.set(tag)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> str:
    """The tag of the language in which reports are being made."""
    return _current.get()


def _(message: str, /, **fields: object) -> str:
    """A message in the current language, its fields filled in.

    Args:
        message: the English text, a literal, so that it can be found; without `fields` its braces
            are left alone.
        fields: the values of its fields.

    Returns:
        The translation; the English text where the catalogue lacks one.
    """
    tag = _current.get()
    text = message if tag == ENGLISH else _catalogue(tag).get(message, message)
    return text.format(**fields) if fields else text


def N_(message: str, /) -> str:  # noqa: N802 - gettext's own name for it
    """Mark a message that is looked up later, with `_`."""
    return message


def plural(one: str, many: str, count: float, /, **fields: object) -> str:
    """The message for a count, which fills the field ``count`` unless that is given.

    Args:
        one: the English message for 1, a literal.
        many: that for any other count. A language without plural forms translates this one only.
        count: how many.
        fields: as of `_`.
    """
    return _(
        one if count == 1 and _current.get() == ENGLISH else many, **{"count": count, **fields}
    )


@cache
def _catalogue(tag: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    folder = resources.files(__package__).joinpath(tag)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".json"):
            found.update(json.loads(file.read_text(encoding="utf-8")))
    return found
