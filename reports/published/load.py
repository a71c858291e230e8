"""Reads what the documents say, once, from the YAML files beside this module."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from edgebench.reports.published.model import (
    Capability,
    Document,
    Documents,
    Features,
    FeatureTable,
    Formats,
    Frameworks,
    Platforms,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T", bound=BaseModel)


class PublishedError(ValueError):
    """A file of published figures that can't be used; names the file, the key and what is wrong."""


def parse(text: str, kind: type[T], name: str) -> T:
    """A file's text, checked.

    Args:
        text: YAML.
        kind: what it must be.
        name: the file's, for the message.

    Raises:
        PublishedError: it is no YAML, or not what it must be.
    """
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        msg = f"reports/published/{name} is not valid YAML: {error}"
        raise PublishedError(msg) from error
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}"
            for each in error.errors()
        )
        msg = f"reports/published/{name}: {problems}"
        raise PublishedError(msg) from error


@cache
def documents() -> Mapping[str, Document]:
    """The documents, by key."""
    found = _read("documents.yaml", Documents).documents
    return {str(key): each for key, each in found.items()}


@cache
def published_frameworks() -> Frameworks:
    """The chapter's table of frameworks."""
    return _read("frameworks.yaml", Frameworks)


@cache
def published_formats() -> Formats:
    """The chapter's table of formats."""
    return _read("formats.yaml", Formats)


@cache
def published_platforms() -> Platforms:
    """The chapter's table of platforms."""
    return _read("platforms.yaml", Platforms)


def published_features() -> tuple[FeatureTable, ...]:
    """Both documents' tables of features."""
    return _features().tables


def capability(runner: str) -> Capability | None:
    """What the documents say that a framework can do; None where they don't know it.

    Args:
        runner: the runner's name, such as ``mnn``.
    """
    return {str(key): each for key, each in _features().capabilities.items()}.get(runner)


@cache
def _features() -> Features:
    return _read("features.yaml", Features)


def _read(name: str, kind: type[T]) -> T:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return parse(text, kind, name)
