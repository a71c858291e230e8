"""A program that is asked once and answers at once."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def answer_of(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in English and without a terminal.

    Args:
        command: the program and its arguments; no shell is involved.
        timeout_s: seconds that it has.

    Returns:
        Its output and exit status, whatever that is.

    Raises:
        OSError: it can't be run, or did not end in time; the text says which.
    """
    try:
        return subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        name = os.path.basename(command[0])  # noqa: PTH119 - a name as it was given
        msg = f"{name} did not answer within {timeout_s:.0f} s"
        raise OSError(msg) from error
