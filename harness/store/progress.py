"""How the store tells its caller what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, the bytes done, and the bytes in all or None where not known."""


def silent(_what: str, _done_bytes: int, _total_bytes: int | None) -> None:
    """Tell nobody."""
