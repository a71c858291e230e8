"""The values of YAML scalars, by the core schema of YAML 1.2."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from edgebench.harness.scenario.problems import quote

TAG_PREFIX: Final = "tag:yaml.org,2002:"
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_BASES: Final = {"0o": 8, "0x": 16}
_MAX_INT: Final = 2**63 - 1
_LONGEST_INT: Final = 40


@dataclass(frozen=True, slots=True)
class Refused:
    """A scalar that has no value here, and why."""

    why: str


Scalar: TypeAlias = bool | int | float | str | None


def read_scalar(text: str, tag: str | None, *, quoted: bool) -> Scalar | Refused:
    """The value of a scalar.

    Args:
        text: its text, escapes resolved.
        tag: its tag, where one is written.
        quoted: whether it stands in quotes or in a block, and so is text.
    """
    if tag is None or tag == "!":
        return _text(text) if quoted or tag == "!" else _plain(text)
    kind = tag.removeprefix(TAG_PREFIX)
    if kind == tag or kind not in _KINDS:
        return Refused(f"the tag {quote(tag)} is not supported; remove it")
    if kind == "str":
        return _text(text)
    value = _plain(text)
    if isinstance(value, Refused) or type(value) in _KINDS[kind]:
        return value
    return Refused(f"{quote(text)} is not what its tag !!{kind} says")


def _text(text: str) -> str | Refused:
    # Both can only come from escapes. A NUL would end the text inside a framework written in C.
    if bad := _NOT_TEXT.search(text):
        return Refused(f"text can't hold the character U+{ord(bad.group()):04X}")
    return text


def _plain(text: str) -> Scalar | Refused:
    """The value of an unquoted scalar; what looks like no other kind is text."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _NOT_FINITE.fullmatch(text):
        return Refused(f"must be a finite number, got {text}")
    if _INT.fullmatch(text):
        return _int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else Refused(f"the number {quote(text)} is too large")
    return text


def _int(text: str) -> int | Refused:
    # The length first: Python refuses to convert thousands of digits.
    if len(text) <= _LONGEST_INT:
        value = int(text, _BASES.get(text[:2], 10))
        if abs(value) <= _MAX_INT:
            return value
    return Refused(f"the number {quote(text)} is too large; it must fit in 64 bits")
