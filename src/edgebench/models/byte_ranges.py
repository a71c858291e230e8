"""Bytes of a file, read where they stand.

Files are read, not mapped: a mapped page counts towards a process's memory, so that reading a
mapped model once would seem to need as much memory as the whole model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def read_bytes(path: Path, offset: int, count: int) -> NDArray[np.uint8]:
    """`count` bytes from `offset` on.

    Raises:
        ModelFormatError: the file ends before, or can't be read.
    """
    try:
        data = np.fromfile(path, dtype=np.uint8, count=count, offset=offset)
    except OSError as error:
        msg = f"{path} can't be read: {error}"
        raise ModelFormatError(msg) from error
    if data.size != count:
        msg = (
            f"{path} ends at byte {offset + data.size}, but a tensor needs it up to byte "
            f"{offset + count}: it changed while it was read, or is cut off; fetch it again"
        )
        raise ModelFormatError(msg)
    return data


def bounds(length: int, start: int, stop: int | None) -> tuple[int, int]:
    """The first and last of ``range(length)[start:stop]``, as slices of Python count.

    >>> bounds(10, 4, None), bounds(10, 8, 99), bounds(10, -2, None)
    ((4, 10), (8, 10), (8, 10))
    """
    first, last, _ = slice(start, stop).indices(length)
    return first, max(first, last)
