"""Users' own files: used where they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import ModelError
from edgebench.harness.store.sources import PathSource
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

# printf 'weights' | sha256sum, and of 'heavier'
WEIGHTS_SHA256 = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
HEAVIER_SHA256 = "61e44d5587aac95abb5bb6aa77166178c0f80a005ba2fb7c6f4b748b33bcce01"

LONG_AGO_NS = 1_000_000_000_000_000_000


class Told:
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int | None]] = []

    def __call__(self, what: str, done_bytes: int, total_bytes: int | None) -> None:
        self.calls.append((what, done_bytes, total_bytes))


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "my model.gguf"
    path.write_bytes(b"weights")
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return path


def test_a_path_is_used_where_it_is(store: ModelStore, model: Path) -> None:
    """No copy is made; the hash and size are the file's."""
    told = Told()
    stored = store.fetch(PathSource(model), progress=told)
    assert stored.path == model
    assert (stored.sha256, stored.bytes) == (WEIGHTS_SHA256, 7)
    assert (stored.name, stored.made_by, stored.note) == ("my model.gguf", "as published", None)
    assert told.calls == [("checking my model.gguf", 0, 7), ("checking my model.gguf", 7, 7)]
    assert store.entries() == []


def test_an_unchanged_file_is_hashed_once(store: ModelStore, model: Path) -> None:
    """The second time its hash is remembered, in another process too."""
    first = store.fetch(PathSource(model))
    told = Told()
    assert ModelStore(store.root).fetch(PathSource(model), progress=told) == first
    assert told.calls == []


def test_a_changed_file_is_hashed_again(store: ModelStore, model: Path) -> None:
    """Other bytes of the same length are noticed by the file's time."""
    store.fetch(PathSource(model))
    model.write_bytes(b"heavier")
    assert store.fetch(PathSource(model)).sha256 == HEAVIER_SHA256


def test_a_replaced_file_is_hashed_again(store: ModelStore, model: Path, tmp_path: Path) -> None:
    """A file moved over it with the same size and time is noticed by its inode."""
    store.fetch(PathSource(model))
    other = tmp_path / "other"
    other.write_bytes(b"heavier")
    os.utime(other, ns=(LONG_AGO_NS, LONG_AGO_NS))
    other.replace(model)
    assert store.fetch(PathSource(model)).sha256 == HEAVIER_SHA256


def test_a_file_that_was_just_written_is_not_remembered(store: ModelStore, model: Path) -> None:
    """A write within the clock's resolution would go unnoticed, so such a file is hashed again."""
    model.write_bytes(b"weights")
    store.fetch(PathSource(model))
    told = Told()
    store.fetch(PathSource(model), progress=told)
    assert told.calls


def test_a_damaged_memory_is_ignored(store: ModelStore, model: Path) -> None:
    """A remembered hash that can't be read is made again."""
    store.fetch(PathSource(model))
    (memory,) = (store.root / "v1/hashes").iterdir()
    memory.write_text("{")
    assert store.fetch(PathSource(model)).sha256 == WEIGHTS_SHA256


def test_the_store_need_not_be_writable(model: Path, tmp_path: Path) -> None:
    """A user's own file is read even where its hash can't be kept."""
    (tmp_path / "file").touch()
    store = ModelStore(tmp_path / "file/store")
    assert store.fetch(PathSource(model)).sha256 == WEIGHTS_SHA256


def test_the_right_hash_is_taken_and_a_wrong_one_refused(store: ModelStore, model: Path) -> None:
    """An expected hash is compared, in either case, and a refusal names both."""
    source = PathSource(model)
    assert store.fetch(source, sha256=WEIGHTS_SHA256.upper()).path == model
    with pytest.raises(ModelError) as caught:
        store.fetch(source, sha256="0" * 64)
    assert WEIGHTS_SHA256 in str(caught.value)
    assert "0" * 64 in str(caught.value)


def test_a_missing_file_is_named(store: ModelStore, tmp_path: Path) -> None:
    """The message holds the whole path that was looked for."""
    with pytest.raises(ModelError, match="there is no model file") as caught:
        store.fetch(PathSource(tmp_path / "nope.gguf"))
    assert str(tmp_path / "nope.gguf") in str(caught.value)


def test_a_pipe_is_refused_at_once(store: ModelStore, tmp_path: Path) -> None:
    """What is not a regular file would be waited for for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not a regular file"):
        store.fetch(PathSource(tmp_path / "pipe"))


def test_a_file_that_changes_while_it_is_read_is_refused(store: ModelStore, model: Path) -> None:
    """A hash of two halves of two files is no hash."""

    def grow(_what: str, done_bytes: int, _total: int | None) -> None:
        if done_bytes == 7:
            model.write_bytes(b"weights and more")

    with pytest.raises(ModelError, match="changed while it was read"):
        store.fetch(PathSource(model), progress=grow)
