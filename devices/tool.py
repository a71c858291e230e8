"""A program that runs beside a measurement and goes on telling; its own thread reads it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

END_S = 2.0
_READ_SIZE = 1 << 16
_COMPLAINT_SIZE = 400  # bytes; more is no complaint but readings


class Tool:
    """A running program, in a process group of its own.

    Args:
        arguments: the program and its arguments; no shell is involved.
        take: gets the output piece by piece, as it comes, in the reading thread.
        ended: called once, in the reading thread, with the reason, when the output is over.

    Raises:
        OSError: the program can't be started.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        take: Callable[[bytes], object],
        ended: Callable[[str], object],
    ) -> None:
        self._name = os.path.basename(arguments[0])  # noqa: PTH119 - a name as the user writes it
        self._process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        self._take = take
        self._ended = ended
        self._said = b""
        self._closing = False
        self._thread = threading.Thread(target=self._read, name=f"edgebench-{self._name}")
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        """End the program and all that it started."""
        self._closing = True
        self._signal(signal.SIGTERM)
        self._thread.join(END_S)
        if self._thread.is_alive():
            self._signal(signal.SIGKILL)
            # Another user's program (sudo) can't be signalled, but it ends when nobody listens.
            self._thread.join(END_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)

    def _read(self) -> None:
        output = self._process.stdout
        if output is None:  # never: a pipe was asked for
            return
        with output:
            while not self._closing and (piece := os.read(output.fileno(), _READ_SIZE)):
                self._said += piece[: _COMPLAINT_SIZE + 1 - len(self._said)]
                self._take(piece)
        if not self._closing:
            self._ended(f"{self._name} ended{self._how(self._process.wait())}")

    def _how(self, status: int) -> str:
        how = f" with status {status}" if status >= 0 else f" by signal {-status}"
        # A program that can't do its work says why, and that is all that it says.
        words = " ".join(self._said.decode("utf-8", "replace").split())
        return f"{how}: {words}" if words and len(self._said) <= _COMPLAINT_SIZE else how

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return  # its number may be another program's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
