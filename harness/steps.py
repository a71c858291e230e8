"""Telling of the steps of something long, but not of each of many quick ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STEP_S = 2.0
"""How often a step is told."""


class Seldom:
    """Tells of a step where none was told for a while; the first one is told.

    Args:
        tell: told of a step in a few words.
        interval_s: how long nothing is told after that.
    """

    def __init__(self, tell: Callable[[str], None], interval_s: float = STEP_S) -> None:
        self._tell = tell
        self._interval_s = interval_s
        self._told = -interval_s

    def __call__(self, what: str) -> None:
        """A step begins."""
        now = time.monotonic()
        if now - self._told >= self._interval_s:
            self._told = now
            self._tell(what)
