"""The texts that are rated: those that edgebench ships, and files of the user.

A text is the bytes of its file, as they are: nothing is trimmed, no line end is changed, and the
hash is that of the file. So another tool that reads the same file scores the same text.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from edgebench.harness.errors import ModelError
from edgebench.harness.scenario.problems import quote, suggestion
from edgebench.harness.store.sources import expand_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_BYTES: Final = 64 * 1000 * 1000
"""Of a text: more than is rated in a week, and its tokens would not fit into memory."""

_BOM: Final = b"\xef\xbb\xbf"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ALLOWED: Final = "allowed are builtin:NAME and path:FILE"


@dataclass(frozen=True, slots=True)
class BuiltinText:
    """A text that edgebench ships.

    Attributes:
        file: its name in ``harness/texts``.
        language: what it is written in.
        origin: where it is from.
        licence: why everybody may use it.
        sha256: of the file.
    """

    file: str
    language: str
    origin: str
    licence: str
    sha256: str


BUILTIN: Final[Mapping[str, BuiltinText]] = {
    "prose": BuiltinText(
        file="prose.txt",
        language="English",
        origin="The Jargon File, version 4.4.7, edited by Eric S. Raymond",
        licence="public domain",
        sha256="404499f4c802e2d332c5be081b023c694f6de343d98843902887c4be9f458352",
    ),
    "chinese": BuiltinText(
        file="chinese.txt",
        language="Chinese, simplified characters",
        origin="Call to Arms by Lu Xun (1881-1936), published in 1923: preface and ten stories",
        licence="public domain",
        sha256="b3b7c1e0a2870eda7eaf5554ae4bde52ff92753d1cddf72a7894739d1acd8834",
    ),
    "code": BuiltinText(
        file="code.txt",
        language="C",
        origin="SQLite 3.40.1, five files of its sources",
        licence="public domain",
        sha256="aff902e79ccc173e21e216322172d7be172aafbfed67fd782e666392f30822e1",
    ),
}
"""The texts that edgebench ships, by the name behind ``builtin:``."""


@dataclass(frozen=True, slots=True)
class QualityText:
    """A text to rate.

    Attributes:
        name: as the scenario names it.
        sha256: of its UTF-8 bytes.
        origin: where it is from and its licence; of a file of the user its name.
    """

    name: str
    text: str
    sha256: str
    origin: str


def check_spec(
    spec: str, *, base: Path | None, environ: Mapping[str, str] = os.environ
) -> BuiltinText | Path:
    """What a scenario's ``text`` stands for. Nothing is opened.

    Args:
        spec: ``builtin:NAME`` or ``path:FILE``.
        base: what a relative path is relative to, the scenario's folder; None for the working
            directory.
        environ: the variables for ``${VAR}`` in a path.

    Raises:
        ValueError: it stands for nothing; what is wrong and what is allowed, in one line.
    """
    if _CONTROL.search(spec):
        msg = f"a text's name must not hold control characters, got {quote(spec)}"
        raise ValueError(msg)
    scheme, colon, rest = spec.partition(":")
    match scheme:
        case "builtin" if colon:
            return _builtin(rest)
        case "path" if colon:
            if not rest.strip():
                msg = "path: must name a file (path:FILE)"
                raise ValueError(msg)
            return expand_path(rest, base, environ)
    if spec in BUILTIN:
        msg = f"a text must say of which kind it is; did you mean 'builtin:{spec}'? {_ALLOWED}"
        raise ValueError(msg)
    if not colon:
        msg = f"a text must say of which kind it is, got {quote(spec)}; {_ALLOWED}"
        raise ValueError(msg)
    msg = f"unknown kind of text {quote(scheme)}; {_ALLOWED}"
    raise ValueError(msg)


def read_text(
    spec: str, *, base: Path | None, environ: Mapping[str, str] = os.environ
) -> QualityText:
    """Read a text.

    Args:
        spec: ``builtin:NAME`` or ``path:FILE``.
        base: what a relative path is relative to; None for the working directory.
        environ: the variables for ``${VAR}`` in a path.

    Raises:
        ModelError: it can't be read, or is no text in UTF-8.
    """
    try:
        found = check_spec(spec, base=base, environ=environ)
    except ValueError as error:
        msg = f"the text {quote(spec)} can't be had: {error}"
        raise ModelError(msg, remedy="Correct quality.text of the workload.") from error
    if isinstance(found, BuiltinText):
        content = resources.files("edgebench.harness").joinpath("texts", found.file).read_bytes()
        if hashlib.sha256(content).hexdigest() != found.sha256:
            msg = f"the built-in text {found.file} is not what this version of edgebench ships"
            raise ModelError(msg, remedy="Install edgebench again.")
        origin = f"{found.origin}; {found.licence}"
    else:
        content, origin = _read(found), found.name
    text = _decoded(content, found.file if isinstance(found, BuiltinText) else str(found))
    return QualityText(spec, text, hashlib.sha256(content).hexdigest(), origin)


def _builtin(name: str) -> BuiltinText:
    if name in BUILTIN:
        return BUILTIN[name]
    near = suggestion(name, BUILTIN)
    hint = f"did you mean {near!r}? " if near else ""
    said = f"no text named {quote(name)} is built in" if name else "builtin: must name a text"
    msg = f"{said}; {hint}there are {', '.join(sorted(BUILTIN))}, and path:FILE for your own"
    raise ValueError(msg)


def _read(path: Path) -> bytes:
    """The bytes of a file, unless they are too many."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe or a device may never end
            what = "is a folder" if path.is_dir() else "is no plain file"
            msg = f"the text {str(path)!r} {what}"
            raise ModelError(msg, remedy="Name a text file in quality.text.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        msg = f"there is no text {str(path)!r}"
        remedy = "Correct quality.text of the workload; a relative path is one from the scenario."
        raise ModelError(msg, remedy=remedy) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        msg = f"the text {str(path)!r} can't be read: {reason}"
        raise ModelError(msg, remedy="Correct quality.text of the workload.") from error
    if len(content) > MOST_BYTES:
        msg = f"the text {str(path)!r} is larger than {MOST_BYTES // 1000**2} MB"
        raise ModelError(msg, remedy="Take a part of it: nothing rates so much in reasonable time.")
    return content


def _decoded(content: bytes, name: str) -> str:
    """The text that the bytes are, or why they are none."""
    if not content:
        msg = f"the text {name!r} is empty"
        raise ModelError(msg, remedy="Name a file that holds a text in quality.text.")
    if content.startswith(_BOM):
        msg = f"the text {name!r} begins with a byte order mark, which would be rated as text"
        raise ModelError(msg, remedy="Save it as UTF-8 without one: tail -c +4 FILE > NEW_FILE.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong, place = content[error.start], error.start
        msg = f"the text {name!r} is not UTF-8: byte 0x{wrong:02x} at offset {place}"
        raise ModelError(msg, remedy="Save it as UTF-8: iconv -f ENCODING -t UTF-8.") from error
    place = content.find(b"\0")
    if place >= 0:
        msg = f"the text {name!r} is no plain text: it holds a null character at offset {place}"
        raise ModelError(msg, remedy="Save it as UTF-8; UTF-16 and programs hold such.")
    return text
