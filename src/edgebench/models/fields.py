"""JSON objects of other programs, read key by key with the type that each must have."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LARGEST = 2**53
"""No number of a model is larger; a float holds all whole numbers up to it."""


@dataclass(frozen=True)
class Fields:
    """One JSON object, or the like, that remembers which of its keys were asked for.

    A key whose value is null counts as absent.

    Attributes:
        where: how errors name it, for instance a path.
        values: what it holds.
        used: the keys asked for so far.
    """

    where: str
    values: Mapping[str, object]
    used: set[str] = field(default_factory=set)

    def get(self, key: str) -> object:
        """The value of `key`, or None."""
        self.used.add(key)
        return self.values.get(key)

    def integer(
        self, key: str, default: int | None = None, *, least: int = 1, most: int = LARGEST
    ) -> int:
        """A whole number from `least` to `most`; `default` where it is absent.

        Raises:
            ModelFormatError: it is something else, or absent without a default.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            limit = "or more" if most == LARGEST else f"to {most}"
            self._fail(key, value, f"a whole number, {least} {limit}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number above 0; `default` where it is absent.

        Raises:
            ModelFormatError: it is something else, or absent without a default.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value <= sys.float_info.max
        ):
            self._fail(key, value, "a number above 0")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false; `default` where it is absent.

        Raises:
            ModelFormatError: it is something else.
        """
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._fail(key, value, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text; `default` where it is absent.

        Raises:
            ModelFormatError: it is something else, or absent without a default.
        """
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self._fail(key, value, "a text")
        return value

    def section(self, key: str) -> Fields | None:
        """The object under `key`, or None where it is absent.

        Raises:
            ModelFormatError: it is something else.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._fail(key, value, "an object")
        return Fields(f"{self.where}, {key}", value)

    def unused(self) -> dict[str, object]:
        """Keys that nobody asked for, but for those whose value is null."""
        return {
            key: value
            for key, value in self.values.items()
            if key not in self.used and value is not None
        }

    def _fail(self, key: str, value: object, wanted: str) -> NoReturn:
        found = "it is missing" if value is None else f"it is {shown(value)}"
        msg = f"{self.where}: {key} should be {wanted}, but {found}; the file is damaged or wrong"
        raise ModelFormatError(msg)


def as_fields(where: str, value: object) -> Fields:
    """An entry of a list as an object's fields.

    Raises:
        ModelFormatError: it is something else.
    """
    if not isinstance(value, dict):
        msg = f"{where} should hold objects, but holds {shown(value)}; the file is damaged"
        raise ModelFormatError(msg)
    return Fields(where, value)


def shown(value: object, most: int = 60) -> str:
    """A value for an error's text, cut to `most` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"


def read_json(path: Path) -> Fields:
    """The object in a JSON file.

    Raises:
        ModelFormatError: it can't be read, or is something else.
    """
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path} can't be read as JSON ({error}); the model's folder is damaged or incomplete"
        raise ModelFormatError(msg) from error
    if not isinstance(values, dict):
        msg = f"{path} should hold a JSON object, but holds {shown(values)}"
        raise ModelFormatError(msg)
    return Fields(str(path), values)
