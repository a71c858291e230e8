"""Lines to and from the host: whole ones, from any thread, and never without limit."""

from __future__ import annotations

import json
import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest message that a runner and the harness exchange."""


class RefusedError(Exception):
    """The board can't do what was asked; the message says why."""


class Lines:
    """Bytes in, whole lines out, each with its end.

    Args:
        max_bytes: a line that grows longer is cut there, and what follows of it is dropped: the
            end of a line is no line.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_bytes
        self._rest = bytearray()
        self._is_cut = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take `data` and give every line that it completes."""
        first, *others = data.split(b"\n")
        self._add(first)
        for part in others:
            if not self._is_cut:
                yield self._take()
            self._is_cut = False
            self._add(part)
        if len(self._rest) > self._max:
            yield self._take()
            self._is_cut = True

    def _add(self, part: bytes) -> None:
        if not self._is_cut:
            self._rest += part

    def last(self) -> bytes:
        """What was left without an end; empty where nothing was."""
        return self._take() if self._rest else b""

    def _take(self) -> bytes:
        line = bytes(self._rest) + b"\n"
        self._rest.clear()
        return line


class Output:
    """Writes whole lines to a descriptor, from several threads.

    Args:
        descriptor: a pipe to the host.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def line(self, line: bytes) -> None:
        """Write a line; waits as long as the host does not read.

        Raises:
            OSError: the host is gone.
        """
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]

    def say(self, body: Mapping[str, object]) -> None:
        """Write a JSON-RPC 2.0 message."""
        self.line(_encoded(body))

    def say_if_free(self, body: Mapping[str, object]) -> None:
        """The same for a short message that may be left out where it would have to wait."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if select.select([], [self._descriptor], [], 0)[1]:
                os.write(self._descriptor, _encoded(body))
        finally:
            self._lock.release()


def _encoded(body: Mapping[str, object]) -> bytes:
    message = {"jsonrpc": "2.0", **body}
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"
