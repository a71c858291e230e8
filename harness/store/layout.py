"""Where the store keeps what.

Everything is below ``v1``: an edgebench that lays its store out differently uses another folder,
so that two versions can share a cache without spoiling each other's records.

- ``files/AB/ABCD…/NAME``: the models, by the SHA-256 of their bytes; a model that is a folder by
  that of its list of files (`folders.folder_sha256`);
- ``records/KEY.json``: what each request gave, by the hash of the request;
- ``references/ABCD…-VERSION/…``: what the reference said of pieces of texts, by the SHA-256 of the
  model that it ran, and within that by the hash of each piece's tokens;
- ``hashes/KEY.json``: SHA-256 of users' own files, which stay where they are;
- ``tmp/KEY-…/``: what is being made, removed when done;
- ``partial/KEY-….part``: downloads that can be resumed;
- ``locks/KEY.lock``: held while a KEY is being made. Lock files stay: removing one that another
  process has just opened would give the same lock to two.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The store's folder: ``EDGEBENCH_CACHE``, or ``edgebench`` in the user's cache folder."""
    if named := environ.get("EDGEBENCH_CACHE"):
        return Path(named).expanduser().absolute()
    user_cache = Path(environ.get("XDG_CACHE_HOME", ""))
    if not user_cache.is_absolute():  # the XDG specification: a relative one is to be ignored
        user_cache = Path.home() / ".cache"
    return user_cache / "edgebench"


def key_id(key: Mapping[str, str]) -> str:
    """A file name for `key`: the same for the same pairs, in whatever order."""
    canonical = json.dumps(dict(key), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one store; nothing of it need exist."""

    root: Path

    @property
    def _base(self) -> Path:
        return self.root / "v1"

    @property
    def files(self) -> Path:
        """The folder of all models."""
        return self._base / "files"

    @property
    def records(self) -> Path:
        """The folder of all records."""
        return self._base / "records"

    @property
    def references(self) -> Path:
        """The folder of what the reference said."""
        return self._base / "references"

    @property
    def hashes(self) -> Path:
        """The folder of the hashes of files outside the store."""
        return self._base / "hashes"

    @property
    def temporaries(self) -> Path:
        """The folder of what is being made."""
        return self._base / "tmp"

    @property
    def partials(self) -> Path:
        """The folder of downloads that were cut off."""
        return self._base / "partial"

    def content(self, sha256: str, name: str) -> Path:
        """The place of a model."""
        return self.files / sha256[:2] / sha256 / name

    def record(self, key: str) -> Path:
        """The record of what `key` gave."""
        return self.records / f"{key}.json"

    def file_hash(self, key: str) -> Path:
        """The hash of the file outside the store that has this key."""
        return self.hashes / f"{key}.json"

    def lock(self, key: str) -> Path:
        """The lock to hold while making `key`."""
        return self._base / "locks" / f"{key}.lock"
