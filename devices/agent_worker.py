"""A runner's process on the board: what it says is passed on untouched, and so is what it is told.

Its standard error is the agent's own, which SSH brings into the log on the host.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

from edgebench.devices.agent_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.devices.agent_lines import Output

GRACE_S = 5.0
"""How long one that was told to leave may take to put its things away."""


class Child:
    """One runner's process, in a group of its own.

    Args:
        command: what starts it.
        environment: additions to the agent's own.
        output: where its lines go.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output: Output
    ) -> None:
        self._output = output
        self._requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            bufsize=0,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its id, which is its group's as well."""
        return self._process.pid

    def begin(self) -> None:
        """Start to pass lines on."""
        threading.Thread(target=self._pass_answers, daemon=True).start()
        threading.Thread(target=self._pass_requests, daemon=True).start()

    def send(self, line: bytes) -> None:
        """Pass a request on; never waits for a process that does not read."""
        if self._process.poll() is None:
            self._requests.put(line)
        else:
            self._say_ended()

    def end(self, *, gently: bool) -> None:
        """End it with all its children.

        Args:
            gently: it has been told to leave, and gets `GRACE_S` for it.
        """
        if gently:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _pass_requests(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError):  # its end is told by the other thread
            while True:
                view = memoryview(self._requests.get())
                while view:
                    view = view[pipe.write(view) or 0 :]

    def _pass_answers(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        lines = Lines()
        with contextlib.suppress(OSError):  # the host is gone; the agent will notice
            while data := os.read(pipe.fileno(), 1 << 16):
                for line in lines.feed(data):
                    self._output.line(line)
            if rest := lines.last():
                self._output.line(rest)
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:  # it closed its output and lives on
                self.end(gently=False)
            self._say_ended()

    def _say_ended(self) -> None:
        self._output.say({"method": "board.ended", "params": {"code": self._process.wait()}})
