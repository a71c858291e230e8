"""Answers given on the command line, as ``KEY=VALUE``: checked, and put over a scenario's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.problems import format_path, unknown
from edgebench.harness.scenario.requirements import (
    OBJECTIVES,
    QUESTIONS,
    Requirements,
    overruled,
    requirements_conflicts,
)
from edgebench.harness.scenario.wording import reword
from edgebench.harness.scenario.written import CONFLICT
from edgebench.reports.selection.walk import COMMAND_LINE, TERMINAL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from edgebench.harness.scenario.problems import Finding
    from edgebench.reports.selection.tree import Tree

_WEIGHT: Final = "weights."
_NUMBERS: Final = ("min_decode_rate", "max_ttft_s", "max_quality_loss")
_FIELDS: Final = (*QUESTIONS, "max_memory_bytes", *_NUMBERS)


def parse_answers(written: Iterable[str], trees: Iterable[Tree]) -> dict[str, str]:
    """The answers by key; of two for the same key the last one.

    Args:
        written: each as ``KEY=VALUE``.
        trees: those that are walked, whose questions may be answered too.

    Raises:
        UsageError: one is not written so, or nothing asks for its key.
    """
    own = {key for tree in trees for key in tree.keys}
    known = {*_FIELDS, *(_WEIGHT + each for each in OBJECTIVES), *own}
    found = {}
    for each in written:
        key, equals, value = (part.strip() for part in each.partition("="))
        if not equals or not key or not value:
            message = f"--answer {each}: must be KEY=VALUE, such as vision=yes"
            raise UsageError(message)
        if key not in known:
            message = f"--answer {each}: {unknown('nothing asks for this key', key, known)}"
            raise UsageError(message)
        found[key] = value
    return found


def with_answers(
    requirements: Requirements, answers: Mapping[str, str], *, asked: Collection[str] = ()
) -> Requirements:
    """Requirements with answers put over them.

    Args:
        requirements: those of the scenario. What of them does not go with an answer is left out:
            an answer stands above the scenario.
        answers: by key, as `parse_answers` gives them, and those of the terminal.
        asked: which of the keys were answered on the terminal.

    Raises:
        UsageError: an answer is not of the kind that its key needs, or doesn't go with another.
    """
    merged = requirements.model_dump(exclude_defaults=True)
    for key in overruled(answers, merged):
        del merged[key]
    for key, value in answers.items():
        if key.startswith(_WEIGHT):
            merged.setdefault("weights", {})[key.removeprefix(_WEIGHT)] = _number(value)
        elif key in _FIELDS:
            merged[key] = _number(value) if key in _NUMBERS else value
        else:
            merged.setdefault("answers", {})[key] = value
    try:
        return Requirements.model_validate(merged)
    except ValidationError as error:
        details = [
            (each, each["loc"])
            for each in error.errors(include_url=False)
            if each["type"] != CONFLICT
        ]
    wrong = reword(details, {(): Requirements})
    lines = [_line(each) for each in wrong]
    for conflict in requirements_conflicts(merged):
        if conflict.path == ("multimodal",):
            lines.append(_contradiction(answers, asked))
        else:
            lines.append(_line(conflict))
    raise UsageError("\n".join(lines))


def _line(wrong: Finding) -> str:
    return f"--answer {format_path(wrong.path, 'answers')}: {wrong.message}"


def _contradiction(answers: Mapping[str, str], asked: Collection[str]) -> str:
    said = (
        f"{key}={answers[key]} ({TERMINAL if key in asked else COMMAND_LINE})"
        for key in ("vision", "multimodal")
    )
    return f"{' and '.join(said)} contradict each other: images are more than text; drop one"


def _number(text: str) -> float | str:
    # What is no number stays text, for the message that says so.
    try:
        return float(text)
    except ValueError:
        return text
