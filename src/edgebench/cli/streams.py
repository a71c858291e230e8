"""Standard output whose reader may leave: what a command found must not depend on it."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from edgebench.harness.errors import OutputError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_STDOUT: Final = 1


class _Patient(io.FileIO):
    """A file that takes what nobody reads any more."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # Nothing more is written, not even by Python's exit.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.fileno())
            os.close(nothing)
            if error.errno != errno.EPIPE and self.fileno() == _STDOUT:
                msg = f"standard output can't be written ({error.strerror})."
                raise OutputError(msg) from error
            # Whoever read has seen enough.
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let standard output and error be closed by their readers without a failure."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # None where it is closed
        sys.stdout = _outliving(sys.stdout)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _outliving(sys.stderr)


def _outliving(stream: io.TextIOWrapper) -> TextIO:
    raw = _Patient(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
