"""Runners that a tree names by mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from edgebench.harness.scenario.problems import Finding, quote, suggestion
from edgebench.reports.colours import KNOWN

if TYPE_CHECKING:
    from edgebench.harness.scenario.problems import KeyPath


def runner_findings(plain: Mapping[str, object]) -> Iterator[Finding]:
    """Names that are nearly one of a runner of edgebench's, and none themselves.

    Any other name may be one of a runner that others ship.
    """
    for path, name in _named(plain):
        meant = suggestion(name, KNOWN)
        # In capitals it is refused already.
        if meant and name.casefold() != meant:
            message = f"no runner is named {quote(name)}; did you mean {quote(meant)}?"
            yield Finding(path, message)


def _named(plain: Mapping[str, object]) -> Iterator[tuple[KeyPath, str]]:
    ends = plain.get("recommendations")
    for key, end in ends.items() if isinstance(ends, Mapping) else ():
        runner = end.get("runner") if isinstance(end, Mapping) else None
        if isinstance(runner, str):
            yield ("recommendations", str(key), "runner"), runner
    fits = plain.get("fits")
    for key in fits if isinstance(fits, Mapping) else ():
        yield ("fits", str(key)), str(key)
