"""What pydantic found wrong, in plain words that say what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from edgebench.harness.scenario.problems import Finding, KeyPath, quote, shown, suggestion, unknown
from edgebench.harness.scenario.values import PATTERN_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

Layout = dict[tuple[str, ...], type[BaseModel]]
"""The model that stands at each path; ``*`` for any index or name."""

_TYPES: Final[Mapping[str, str]] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a group of keys",
    "model_type": "a group of keys",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def reword(errors: Iterable[tuple[ErrorDetails, KeyPath]], layout: Layout) -> list[Finding]:
    """Pydantic's errors as findings.

    Args:
        errors: what pydantic says, each with its path in what people wrote.
        layout: where which model stands, to name the keys that are allowed there.
    """
    findings = []
    missing: dict[KeyPath, Finding] = {}
    misspelled: set[KeyPath] = set()
    for error, path in errors:
        if path[-1:] == ("[key]",):
            findings.append(Finding(path[:-1], _wrong_value(error), at="key"))
        elif error["type"] == "missing":
            about = _description(layout, path)
            message = f"this key is missing{': ' + about if about else ''}"
            missing[path] = Finding(path, message)
        elif error["type"] == "extra_forbidden":
            findings.append(Finding(path, _unknown_key(path, layout), at="key"))
            meant = suggestion(str(path[-1]), _allowed(layout, path[:-1]))
            misspelled |= {(*path[:-1], meant)} if meant else set()
        else:
            findings.append(Finding(path, _wrong_value(error)))
    # A key that is there, misspelled, is not called missing too.
    return findings + [found for path, found in missing.items() if path not in misspelled]


def _wrong_value(error: ErrorDetails) -> str:
    kind, got = error["type"], error["input"]
    context = error.get("ctx", {})
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, got {shown(got)}"
    if kind in _BOUNDS:
        key, relation = _BOUNDS[kind]
        return f"must be {relation} {_number(context[key])}, got {got}"
    match kind:
        case "literal_error":
            message = f"must be {context['expected']}, got {shown(got)}"
        case "string_pattern_mismatch":
            message = f"{PATTERN_WORDS[context['pattern']]}, got {quote(str(got))}"
        case "string_too_long":
            message = f"must be at most {context['max_length']} characters, got {len(str(got))}"
        case "finite_number":
            message = f"must be a finite number, got {got}"
        case "string_too_short":
            message = "must not be empty; leave the key out where it has no value"
        case _:
            message = error["msg"]
    return message


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _unknown_key(path: KeyPath, layout: Layout) -> str:
    key, parent = str(path[-1]), _generic(path[:-1])
    for place, model in layout.items():
        if place != parent and place and "*" not in place and key in model.model_fields:
            return f"unknown key; it belongs under {'.'.join(place)}"
    return unknown("unknown key", key, _allowed(layout, path[:-1]))


def _allowed(layout: Layout, path: KeyPath) -> set[str]:
    model = layout.get(_generic(path))
    return set() if model is None else set(model.model_fields)


def _description(layout: Layout, path: KeyPath) -> str | None:
    """The first sentence of what the field at `path` is for."""
    model = layout.get(_generic(path[:-1]))
    if model is None:
        return None
    about = model.model_fields[str(path[-1])].description or ""
    return about[:1].lower() + about[1:].partition("; ")[0].rstrip(".")


def _generic(path: KeyPath) -> tuple[str, ...]:
    return tuple("*" if isinstance(part, int) else part for part in path)
