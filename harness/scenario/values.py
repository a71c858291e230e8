"""The kinds of values that a scenario holds, each checked with a message in plain words."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, LiteralString, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from edgebench.harness.scenario.problems import quote, shown
from edgebench.harness.scenario.quantities import AMOUNT_PATTERN, amount

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION: Final = 1

SLUG: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
OPTION_NAME: Final = r"^[A-Za-z][A-Za-z0-9._-]*$"
LABEL: Final = (
    r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f\x7f-\x9f])?$"
)
SHA256: Final = r"^[0-9a-f]{64}$"
NOT_BLANK: Final = r"\S"
_LONGEST_LABEL: Final = 200

PATTERN_WORDS: Final[Mapping[str, str]] = {
    SLUG: "must be letters, digits, '.', '_' and '-', a letter or digit first",
    OPTION_NAME: "an option's name must be letters, digits, '.', '_' and '-', a letter first",
    LABEL: "must be one line of text without control characters, and without spaces at its ends",
    SHA256: "must be 64 digits out of 0-9 and a-f",
    NOT_BLANK: "must not be blank",
}
"""What each pattern asks for, in words."""

OptionScalar: TypeAlias = bool | int | float | str
OptionValue: TypeAlias = OptionScalar | tuple[OptionScalar, ...]

_Item = TypeVar("_Item")


HIGH_PRECISION: Final = "high_precision"

TaskName: TypeAlias = Literal["text-summarizer"]
"""The whole tasks that a workload may ask for."""


def refusal(message: str, kind: LiteralString = "refused") -> PydanticCustomError:
    """An error whose message is `message` as it is."""
    return PydanticCustomError(kind, "{message}", {"message": message})


def written(value: OptionScalar) -> str:
    """`value` as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _not_empty(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    # Not Field(min_length): that counts the valid items, and complains of their number too.
    if not items:
        message = "must hold at least one item, got none"
        raise refusal(message)
    return items


def format_version(value: object, newest: int) -> object:
    """`value` where it is the version of a format that this edgebench reads; else refused.

    Args:
        value: what is written.
        newest: the one version there is.
    """
    if type(value) is int and value > newest:
        message = (
            f"written for a newer edgebench, format {value}; this one reads up to format "
            f"{newest}: upgrade edgebench"
        )
    elif type(value) is not int or value != newest:
        message = f"must be {newest}, got {shown(value)}"
    else:
        return value
    raise refusal(message)


def _version(value: object) -> object:
    return format_version(value, SCHEMA_VERSION)


def _sweep(value: object, allowed: str, *, text_only: bool) -> OptionValue:
    """A scalar, or a list of different scalars, which is a sweep."""
    if not isinstance(value, (list, tuple)):
        return _sweep_item(value, f"must be {allowed}, or a list of such", text_only=text_only)
    if not value:
        message = "a sweep must hold at least one value, got none"
        raise refusal(message)
    must = f"every value of a sweep must be {allowed}"
    items = tuple(_sweep_item(item, must, text_only=text_only) for item in value)
    # Compared as written: the number 1 and the text '1' would make variants of the same name.
    seen: set[str] = set()
    for item in map(written, items):
        if item in seen:
            message = f"the sweep holds {quote(item)} twice; remove one of them"
            raise refusal(message)
        seen.add(item)
    return items


def refuse_label(text: str) -> None:
    """Raise what is wrong with a text that must be a `Label`, if anything.

    For values that may be of several kinds: pydantic tries them all, and complains of each.
    """
    if not re.fullmatch(LABEL, text):
        message = f"{PATTERN_WORDS[LABEL]}, got {quote(text)}"
        raise refusal(message)
    if len(text) > _LONGEST_LABEL:
        message = f"must be at most {_LONGEST_LABEL} characters, got {len(text)}"
        raise refusal(message)


def _sweep_item(value: object, must: str, *, text_only: bool) -> OptionScalar:
    if isinstance(value, str):
        if re.fullmatch(LABEL, value) and len(value) <= _LONGEST_LABEL:
            return value
        message = f"{PATTERN_WORDS[LABEL]}, got {quote(value)}"
        raise refusal(message)
    if isinstance(value, (bool, int, float)) and not text_only and math.isfinite(value):
        return value
    message = f"{must}, got {shown(value)}"
    raise refusal(message)


def _option_value(value: object) -> OptionValue:
    return _sweep(value, "a number, text, true or false", text_only=False)


def _quantization(value: object) -> OptionValue:
    return _sweep(value, "text such as Q8_0", text_only=True)


Slug = Annotated[str, Field(pattern=SLUG, max_length=80)]
Label = Annotated[str, Field(pattern=LABEL, max_length=_LONGEST_LABEL)]
Location = Annotated[str, Field(pattern=LABEL, max_length=4096)]
Text = Annotated[str, Field(min_length=1, pattern=NOT_BLANK)]
Digest = Annotated[str, Field(pattern=SHA256)]


def _comparison(value: object) -> object:
    if isinstance(value, bool) or value == HIGH_PRECISION:
        return value
    message = f"must be true, false or {HIGH_PRECISION}, got {shown(value)}"
    raise refusal(message)


Comparison = Annotated[bool | Literal["high_precision"], BeforeValidator(_comparison)]
"""Whether variants are compared with the reference, and whether exact artifacts are added."""


def _duration(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        found = None
    elif isinstance(value, str):
        found = amount(value, "s")
    else:
        found = float(value)
    if found is None or not math.isfinite(found) or found <= 0:
        message = f"must be a time such as 90s, 10m or 1h, got {shown(value)}"
        raise refusal(message)
    return found


Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds; written as a number of them, or with a unit."""

DURATION_SCHEMA: Final = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": AMOUNT_PATTERN},
        ]
    }
)
"""How one is written; of whatever bounds it, since those are of seconds."""

FormatVersion = Annotated[Literal[1], BeforeValidator(_version)]
OptionName = Annotated[str, Field(pattern=OPTION_NAME, max_length=80)]
Sweepable = Annotated[OptionValue, BeforeValidator(_option_value)]
SweepableQuantization = Annotated[str | tuple[str, ...], BeforeValidator(_quantization)]
Some = Annotated[
    # Written as a list, kept as a tuple; how strictly the items are read is not touched.
    tuple[_Item, ...],
    Field(strict=False, json_schema_extra={"minItems": 1}),
    AfterValidator(_not_empty),
]
"""At least one item."""
