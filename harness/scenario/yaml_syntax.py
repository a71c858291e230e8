"""The parser's complaints about YAML text, in plain sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from edgebench.harness.scenario.problems import Position, Problem, one_line

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

_INDENTED = "the indentation does not fit the lines above"

# What the parser says (its context, then its problem), in our words. Where the second is True,
# the place to look at is where the thing began, not where the parser gave up.
_SENTENCES: Final[tuple[tuple[str, str, bool], ...]] = (
    (r".*quoted scalar: found unexpected end of stream", "this quote is not closed", True),
    (r".*quoted scalar: found unexpected document separator", "this quote is not closed", True),
    (r".*flow sequence: .*<stream end>.*", "this '[' is not closed by a ']'", True),
    (r".*flow mapping: .*<stream end>.*", "this '{' is not closed by a '}'", True),
    (r".*flow sequence: expected ',' or '\]'.*", "a ',' or a ']' is missing before this", False),
    (r".*flow mapping: expected ',' or '\}'.*", "a ',' or a '}' is missing before this", False),
    (
        r".*mapping values are not allowed here",
        "a ':' is not allowed here; quote the text if it holds ': ', else check the indentation",
        False,
    ),
    (
        r".*sequence entries are not allowed here",
        "a '-' is not allowed here; start the list on a line of its own",
        False,
    ),
    (r".*simple key: could not find expected ':'", "a ':' is missing after this", True),
    (
        r".*block collection: expected <block end>.*",
        f"a list item ('- …') is expected here, or {_INDENTED}",
        False,
    ),
    (
        r".*block mapping: expected <block end>.*",
        f"a key ('name: …') is expected here, or {_INDENTED}",
        False,
    ),
    (r".*found unknown escape character '(.*)'", r"there is no escape '\\\1' in YAML", False),
    (r".*found undefined tag handle.*", "this tag is not supported; remove it", False),
    (r".*expected the node content, but found (.*)", r"a value is expected here, not \1", False),
    (
        r".*expected '<document start>'.*",
        "only one value is allowed here; the text before it is complete already",
        False,
    ),
    (
        r".*YAML document \(version 1\.\* is required\)",
        "scenarios are YAML 1.2; remove the %YAML line",
        False,
    ),
)


def syntax_problem(error: MarkedYAMLError, fallback: Position) -> Problem:
    """`error` of the parser with its place; `fallback` where the parser gives none."""
    said = one_line(" ".join(f"{error.context or ''}: {error.problem or ''}".split()))
    message, from_start = _sentence(said)
    mark = error.problem_mark or error.context_mark
    if from_start and error.context_mark is not None:
        mark = error.context_mark
    position = fallback if mark is None else Position(mark.line + 1, mark.column + 1)
    return Problem(position, "syntax", message)


def _sentence(said: str) -> tuple[str, bool]:
    if "cannot start any token" in said:
        if r"'\t'" in said:
            return "a tab can't be used here; indent with spaces", False
        character = said.partition("found character ")[2].partition(" that cannot")[0]
        return f"text can't begin with {character}; put it in quotes", False
    for pattern, sentence, from_start in _SENTENCES:
        if match := re.fullmatch(pattern, said):
            return match.expand(sentence), from_start
    return f"this is not valid YAML ({said.removeprefix(': ')})", False
