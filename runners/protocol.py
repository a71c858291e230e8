"""JSON-RPC 2.0 messages, one a line: what the harness and a runner's process say to each other.

The decoder takes whatever arrives: lines that are no message come out as noise, a line that is
too long is dropped up to its end, and nothing makes it raise, hang or grow without limit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL_VERSION = 2
"""History: 1, the first; 2, requests of ``score`` and ``convert`` are objects, ``probe`` tells of
conversion."""

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""Scores of a long text fit many times over; a runaway line does not."""

MAX_DEPTH_ERROR = "nested too deeply"


@dataclass(frozen=True, slots=True)
class Message:
    """A line that is a JSON-RPC 2.0 object."""

    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Noise:
    """A line that is not: its beginning, and why."""

    text: str
    reason: str


def encode(body: dict[str, Any]) -> bytes:
    """One message as a line.

    Raises:
        ValueError: it holds a NaN or an infinity, or is longer than `MAX_FRAME_BYTES`.
    """
    message = {"jsonrpc": "2.0", **body}
    line = json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_FRAME_BYTES:
        msg = f"a message of {len(line)} bytes is over the limit of {MAX_FRAME_BYTES}"
        raise ValueError(msg)
    return line


class Decoder:
    """Bytes in, messages and noise out.

    Args:
        max_frame_bytes: the longest line taken.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        self._parts: list[bytes] = []
        self._length = 0
        self._dropping = False

    def feed(self, data: bytes) -> Iterator[Message | Noise]:
        """Take `data` and give every line that it completes."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            line = self._take(data[start:end])
            start = end + 1
            if self._dropping:
                self._dropping = False
            elif (parsed := _parse(line)) is not None:
                yield parsed
        if (noise := self._keep(data[start:])) is not None:
            yield noise

    def finish(self) -> Noise | None:
        """What was left without an end of line when the stream ended."""
        line = self._take(b"")
        return Noise(_beginning(line), "cut off before its end") if line else None

    def _take(self, last: bytes) -> bytes:
        line = b"".join([*self._parts, last])
        self._parts.clear()
        self._length = 0
        return line

    def _keep(self, rest: bytes) -> Noise | None:
        if self._dropping or not rest:
            return None
        self._parts.append(rest)
        self._length += len(rest)
        if self._length <= self._max:
            return None
        line = self._take(b"")
        self._dropping = True
        return Noise(_beginning(line), f"a line over the limit of {self._max} bytes")


def _parse(line: bytes) -> Message | Noise | None:
    if not line.strip():
        return None
    try:
        body = json.loads(line, parse_constant=_refuse_constant)
    except RecursionError:
        return Noise(_beginning(line), MAX_DEPTH_ERROR)
    except ValueError as error:  # also UnicodeDecodeError, and integers of too many digits
        return Noise(_beginning(line), f"not JSON ({error})")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        return Noise(_beginning(line), "not a JSON-RPC 2.0 message")
    return Message(body)


def _refuse_constant(name: str) -> float:
    msg = f"{name} is not allowed"
    raise ValueError(msg)


def _beginning(line: bytes) -> str:
    return line[:200].decode("utf-8", "replace")
