"""Running somebody else's exporter, for models that edgebench does not know how to write."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LAST_LINES = 8
"""How much of what a failed exporter said goes into the message."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An exporter that ended with an error.

    Attributes:
        status: its exit status.
        said: its last lines, in one.
        missing: the Python package that it lacks, or "".
    """

    status: int
    said: str
    missing: str


def run_exporter(command: list[str], work: Path) -> Failed | None:
    """Run a program in a folder; what it says goes into the log as it says it.

    Returns:
        None where it succeeded.
    """
    last: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                sys.stderr.write(line)
                if line.strip():
                    last.append(line.strip())
        except BaseException:
            process.kill()
            raise
    if not process.returncode:
        return None
    said = " | ".join(last) or "nothing"
    missing = re.search(r"No module named '([\w.]+)'", said)
    return Failed(process.returncode, said, missing[1] if missing else "")
