"""Files of policies: read, checked as a whole, every problem reported at once with its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.errors import PolicyError
from edgebench.harness.gate.conflicts import policy_conflicts
from edgebench.harness.gate.policy import SCHEMA_VERSION, Allowed, Cells, Limit, Match, Policy
from edgebench.harness.scenario.problems import (
    Finding,
    Position,
    Problem,
    format_path,
    suggestion,
)
from edgebench.harness.scenario.text_file import UnreadableFileError, read_text_file
from edgebench.harness.scenario.wording import reword
from edgebench.harness.scenario.written import CONFLICT
from edgebench.harness.scenario.yaml_reader import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.harness.scenario.wording import Layout

_ASKS: Final = ("limits", "cells", "allow")


def load_policy(path: Path) -> Policy:
    """Read a policy's file.

    Raises:
        PolicyError: the file can't be read or is wrong; one line for each problem, as
            ``file:line:column: path: what is wrong, what is allowed``.
    """
    try:
        text = read_text_file(path, "policy")
    except UnreadableFileError as error:
        problem = Problem(error.position, "policy", error.message)
        raise PolicyError(problem.line(str(path))) from error
    return parse_policy(text, filename=str(path))


def parse_policy(text: str, *, filename: str) -> Policy:
    """Read a policy from its text.

    Args:
        text: the whole file.
        filename: how the messages name it.

    Raises:
        PolicyError: the text is wrong.
    """
    document = read_yaml(text)
    plain = document.plain()
    problems = set(document.problems)
    policy: Policy | None = None
    if isinstance(plain, dict) and _is_something_else(plain):
        message = "this is no policy: it has no limits"
        raise PolicyError(Problem(Position(1, 1), "policy", message).line(filename))
    if document.root is not None:
        policy, findings = _validate(plain)
        if isinstance(plain, dict) and not _is_newer(plain):
            findings += policy_conflicts(plain)
        problems.update(filter(None, map(document.place, findings)))
    if problems or policy is None:
        lines = (_of_a_policy(problem).line(filename) for problem in sorted(problems))
        raise PolicyError("\n".join(dict.fromkeys(lines)))
    return policy


def _validate(plain: object) -> tuple[Policy | None, list[Finding]]:
    if not isinstance(plain, dict):
        message = "must be a group of keys such as 'schema_version: 1', one a line"
        return None, [Finding((), message)]
    try:
        return Policy.model_validate(plain), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    if _is_newer(plain):
        # Its other keys may well be right in that format.
        details = [detail for detail in details if detail["loc"] == ("schema_version",)]
    # Conflicts are looked for on their own, since pydantic gets to them only where all else is
    # right.
    errors = [(detail, detail["loc"]) for detail in details if detail["type"] != CONFLICT]
    return None, reword(errors, _layout(plain))


def _layout(plain: Mapping[str, object]) -> Layout:
    """The models at their places; those below a metric differ from file to file."""
    layout: Layout = {
        (): Policy,
        ("cells", "*"): Cells,
        ("cells", "*", "match"): Match,
        ("allow", "*"): Allowed,
    }
    limits = plain.get("limits")
    if isinstance(limits, dict):
        layout |= {("limits", name): Limit for name in limits}
    cells = plain.get("cells")
    for entry in cells if isinstance(cells, list) else []:
        limits = entry.get("limits") if isinstance(entry, dict) else None
        if isinstance(limits, dict):
            layout |= {("cells", "*", "limits", name): Limit for name in limits}
    return layout


def _is_something_else(plain: Mapping[str, object]) -> bool:
    """Whether a file, of another kind, has neither limits nor anything that looks like them."""
    looks = any(name in _ASKS or suggestion(name, _ASKS) for name in plain)
    return not looks and not plain.keys() <= Policy.model_fields.keys()


def _is_newer(plain: Mapping[str, object]) -> bool:
    version = plain.get("schema_version")
    return type(version) is int and version > SCHEMA_VERSION


def _of_a_policy(problem: Problem) -> Problem:
    return replace(problem, path="policy") if problem.path == format_path(()) else problem
