"""Cuts what a program prints where one piece of it ends and the next begins."""

from __future__ import annotations


class Pieces:
    """Bytes in, whole pieces out; what grows too long is left out, to its end.

    Args:
        end: what stands after each piece.
        most_bytes: a piece that is longer is none, and neither is what is left of it.

    Attributes:
        loose_bytes: how many came since the last end.
    """

    def __init__(self, end: bytes, most_bytes: int) -> None:
        self.loose_bytes = 0
        self._end = end
        self._most = most_bytes
        self._rest = b""
        self._is_too_long = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take `data` and give every piece that it completes, without its end."""
        *ended, self._rest = (self._rest + data).split(self._end)
        found: list[bytes] = []
        for piece in ended:
            if not self._is_too_long and len(piece) <= self._most:
                found.append(piece)
            self._is_too_long = False
        self.loose_bytes = len(self._rest) if ended else self.loose_bytes + len(data)
        if len(self._rest) > self._most:
            self._is_too_long = True
            # The begin of an end may be its last bytes.
            self._rest = self._rest[len(self._rest) - len(self._end) + 1 :]
        return found
