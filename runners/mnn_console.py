"""What MNN prints, which is the only place where it says why something failed.

Its lines go to the C library's standard output and error, both of them the log in a runner's
process. Nothing is redirected: they are read back from the log, so a crash loses none of them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

STDERR = 2
READ_BACK_BYTES = 1 << 16
"""An error repeats itself for each layer; its end is what tells."""

NOISE = ("The device supports:", "Warning: module need new clone", "[Error]: LLM in error state")


class Console:
    """Remembers where the log ends, and reads what came after that."""

    def __init__(self) -> None:
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

    def reason(self) -> str:
        """The last different lines in one, or where to look."""
        told = [line for line in self.lines() if not line.startswith(NOISE)]
        last = list(dict.fromkeys(reversed(told)))[:3]
        return "; ".join(reversed(last)) or "it gave no reason; see the log"


def flush() -> None:
    """Write out what the C library still holds back, since standard output is a file."""
    ctypes.CDLL(None).fflush(None)


def _size() -> int:
    try:
        status = os.fstat(STDERR)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
