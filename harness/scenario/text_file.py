"""Files that people write, read as text: what can't be read is told with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.scenario.problems import Position

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES: Final = 1 << 20


class UnreadableFileError(Exception):
    """Why a file can't be read, and where in it."""

    def __init__(self, message: str, position: Position = Position(1, 1)) -> None:  # noqa: B008 - immutable
        super().__init__(message)
        self.message = message
        self.position = position


def read_text_file(path: Path, what: str) -> str:
    """A whole file, which is UTF-8.

    Args:
        path: the file.
        what: what it should hold, such as ``scenario``.

    Raises:
        UnreadableFileError: it can't be read, is too large or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except IsADirectoryError:
        message = f"this is a folder; name a {what}'s file in it"
        raise UnreadableFileError(message) from None
    except FileNotFoundError:
        message = "there is no such file"
        raise UnreadableFileError(message) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"can't be read: {reason}"
        raise UnreadableFileError(message) from error
    if len(content) > MAX_FILE_BYTES:
        message = f"larger than {MAX_FILE_BYTES} bytes, which no {what} is"
        raise UnreadableFileError(message)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_start = content.rfind(b"\n", 0, error.start) + 1
        before = content[line_start : error.start].decode("utf-8", "replace")
        position = Position(content.count(b"\n", 0, error.start) + 1, len(before) + 1)
        message = f"not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        raise UnreadableFileError(message, position) from error
