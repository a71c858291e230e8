"""What a framework prints, where that is the only place in which it says why something failed.

Its lines go to the C library's standard output and error, both of them the log in a runner's
process. Nothing is redirected: they are read back from the log, so a crash loses none of them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STDERR = 2
READ_BACK_BYTES = 1 << 16
"""An error repeats itself for each layer; its end is what tells."""

NO_REASON = "it gave no reason; see the log"


class Console:
    """Remembers where the log ends, and reads what came after that.

    Args:
        tidy: gives what a line tells, and an empty text for one that tells nothing.
    """

    def __init__(self, tidy: Callable[[str], str] = str) -> None:
        self._tidy = tidy
        self._end = 0
        self.mark()

    def mark(self) -> None:
        """What is printed from here on is what `lines` gives."""
        flush()
        self._end = _size()

    def lines(self) -> list[str]:
        """The lines printed since `mark`; none where standard error is no file that can be read."""
        flush()
        size = _size()
        start = max(self._end, size - READ_BACK_BYTES)
        if size <= start:
            return []
        try:
            with Path(f"/proc/self/fd/{STDERR}").open("rb") as log:
                log.seek(start)
                text = log.read(size - start).decode("utf-8", "replace")
        except OSError:
            return []
        return [line.strip() for line in text.splitlines() if line.strip()]

    def readable(self) -> bool:
        """Whether standard error is a file, so that `lines` gives what was printed."""
        return _file() is not None

    def reason(self) -> str:
        """The last different lines in one, or where to look."""
        told = [text for line in self.lines() if (text := self._tidy(line))]
        last = list(dict.fromkeys(reversed(told)))[:3]
        return "; ".join(reversed(last)) or NO_REASON


def flush() -> None:
    """Write out what the C library still holds back, since standard output is a file."""
    ctypes.CDLL(None).fflush(None)


def _size() -> int:
    status = _file()
    return 0 if status is None else status.st_size


def _file() -> os.stat_result | None:
    """Of standard error, if it is a file."""
    try:
        status = os.fstat(STDERR)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None
