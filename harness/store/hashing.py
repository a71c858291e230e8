"""SHA-256 of files that need not fit into memory."""

from __future__ import annotations

import hashlib
from typing import IO, TYPE_CHECKING

from edgebench.harness.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.store.progress import Progress

_CHUNK_BYTES = 1 << 20


def sha256_file(path: Path, what: str, progress: Progress) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return _stream(file, None, what, path.stat().st_size, progress)


def check_sha256(source: str, found: str | None, asked: str | None) -> None:
    """Compare hashes, where both are known.

    Raises:
        ModelError: what `source` gave is not what was asked for.
    """
    if found is not None and asked is not None and found != asked:
        msg = f"{source} is not the model that was asked for: its SHA-256 is {found}, not {asked}"
        raise ModelError(
            msg, remedy="Correct sha256 in the scenario, or the source if it was replaced."
        )


def copy_hashing(
    source: IO[bytes], target: IO[bytes], what: str, total_bytes: int, progress: Progress
) -> str:
    """Copy `source` to `target` and give the SHA-256 of what was copied, in hexadecimal."""
    return _stream(source, target, what, total_bytes, progress)


def _stream(
    source: IO[bytes], target: IO[bytes] | None, what: str, total_bytes: int, progress: Progress
) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    progress(what, 0, total_bytes)
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
        done_bytes += len(chunk)
        progress(what, done_bytes, total_bytes)
    return digest.hexdigest()
