"""Writing what a command was asked to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file that ends with a line's end; its folder is made if need be.

    Raises:
        UsageError: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    except OSError as error:
        msg = f"{path} can't be written ({error.strerror or error})."
        raise UsageError(msg, remedy="Name a file in a folder that can be written.") from error
