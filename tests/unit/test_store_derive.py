"""Making a file once and keeping it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from edgebench.harness.errors import ModelError, RunnerError, StoreError
from edgebench.harness.store.layout import cache_root
from edgebench.harness.store.store import ModelStore

# printf 'weights' | sha256sum
WEIGHTS_SHA256 = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
KEY = {"source": "abc", "quantization": "Q8_0", "tool": "quantizer 1"}


class Maker:
    """Writes b"weights" and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, path: Path) -> dict[str, str]:
        assert not path.exists()
        self.calls += 1
        path.write_bytes(b"weights")
        return {"tool": "quantizer 1", "note": "from a lossy source"}


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def files_below(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock" and path.name != "CACHEDIR.TAG"
    )


def test_a_derived_file_holds_what_was_made_and_says_what_made_it(store: ModelStore) -> None:
    """The file's name, hash, size, tool and note are those of what was written."""
    stored = store.derive(KEY, "model.gguf", Maker(), needed_bytes=7)
    assert stored.path.read_bytes() == b"weights"
    assert stored.path.name == stored.name == "model.gguf"
    assert stored.sha256 == WEIGHTS_SHA256
    assert stored.bytes == 7
    assert stored.made_by == "quantizer 1"
    assert stored.note == "from a lossy source"


def test_the_same_key_is_made_once(store: ModelStore) -> None:
    """A second request gets the first one's file, whatever the order of its key."""
    make = Maker()
    first = store.derive(KEY, "model.gguf", make, needed_bytes=7)
    reordered = dict(reversed(KEY.items()))
    second = ModelStore(store.root).derive(reordered, "model.gguf", make, needed_bytes=7)
    assert make.calls == 1
    assert first == second


def test_another_key_is_made_on_its_own_but_shares_equal_bytes(store: ModelStore) -> None:
    """Each key is made; equal content is stored once."""
    make = Maker()
    first = store.derive(KEY, "model.gguf", make, needed_bytes=7)
    second = store.derive({**KEY, "tool": "quantizer 2"}, "model.gguf", make, needed_bytes=7)
    assert make.calls == 2
    assert first.path == second.path
    assert store.derive(KEY, "model.gguf", make, needed_bytes=7) == first
    assert len(store.entries()) == 2


def test_stored_files_are_not_writable(store: ModelStore) -> None:
    """Nobody has the right to write to a stored file."""
    stored = store.derive(KEY, "model.gguf", Maker(), needed_bytes=7)
    assert stored.path.stat().st_mode & 0o222 == 0


def test_a_failed_make_leaves_nothing(store: ModelStore) -> None:
    """An error of ours passes through, and no half file stays."""

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(b"half")
        msg = "the quantizer crashed"
        raise RunnerError(msg)

    with pytest.raises(RunnerError, match="the quantizer crashed"):
        store.derive(KEY, "model.gguf", make, needed_bytes=7)
    assert files_below(store.root) == []
    assert store.entries() == []


def test_an_interrupt_leaves_nothing(store: ModelStore) -> None:
    """Ctrl-C in the middle takes the half file away."""

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.derive(KEY, "model.gguf", make, needed_bytes=7)
    assert files_below(store.root) == []


def test_a_tool_that_writes_nothing_is_an_error(store: ModelStore) -> None:
    """Success without a file is not believed."""
    with pytest.raises(ModelError, match="quantizer 1 wrote no file"):
        store.derive(KEY, "model.gguf", lambda _: {"tool": "quantizer 1"}, needed_bytes=7)


def test_an_error_of_the_system_in_make_is_told_as_one_sentence(store: ModelStore) -> None:
    """A tool that is not there is no traceback, and not the store's fault."""

    def make(path: Path) -> dict[str, str]:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "quantizer")

    with pytest.raises(ModelError, match=r"model\.gguf could not be made: .*quantizer"):
        store.derive(KEY, "model.gguf", make, needed_bytes=7)


def test_space_is_checked_before_anything_is_made(store: ModelStore) -> None:
    """Nothing is started that can't fit; the message says how much, where, and what to do."""
    make = Maker()
    with pytest.raises(StoreError) as caught:
        store.derive(KEY, "model.gguf", make, needed_bytes=1 << 60)
    assert make.calls == 0
    text = str(caught.value)
    assert "making model.gguf needs 1048576.0 TiB" in text
    assert str(store.root) in text
    assert "edgebench models prune" in text
    assert "EDGEBENCH_CACHE" in text


def test_a_name_with_a_folder_is_refused(store: ModelStore) -> None:
    """A file name is no path."""
    with pytest.raises(ValueError, match="not a file name"):
        store.derive(KEY, "../model.gguf", Maker(), needed_bytes=7)


def damage_record(store: ModelStore) -> None:
    (record,) = (store.root / "v1/records").iterdir()
    record.write_text(record.read_text()[:40])


def empty_record(store: ModelStore) -> None:
    (record,) = (store.root / "v1/records").iterdir()
    record.write_bytes(b"")


def swap_key(store: ModelStore) -> None:
    (record,) = (store.root / "v1/records").iterdir()
    document = json.loads(record.read_text())
    record.write_text(json.dumps(document | {"key": {"source": "other"}}))


def escape_by_name(store: ModelStore) -> None:
    (record,) = (store.root / "v1/records").iterdir()
    document = json.loads(record.read_text())
    record.write_text(json.dumps(document | {"name": "../../../outside"}))


def remove_file(store: ModelStore) -> None:
    store.entries()[0].path.unlink()


def truncate_file(store: ModelStore) -> None:
    path = store.entries()[0].path
    path.chmod(0o644)
    path.write_bytes(b"weig")


def flip_byte(store: ModelStore) -> None:
    path = store.entries()[0].path
    path.chmod(0o644)
    path.write_bytes(b"Weights")
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_record, "its record is damaged"),
        (empty_record, "its record is damaged"),
        (swap_key, "its record is that of another file"),
        (escape_by_name, "its record is damaged"),
        (remove_file, "its file is gone"),
        (truncate_file, "its file has 4 bytes instead of 7"),
        (flip_byte, "its file was changed"),
    ],
)
def test_what_is_damaged_is_made_again_with_a_message(
    store: ModelStore, damage: object, reason: str
) -> None:
    """No damage is taken for a model: the caller hears why it is made again, and gets it whole."""
    make = Maker()
    store.derive(KEY, "model.gguf", make, needed_bytes=7)
    assert callable(damage)
    damage(store)
    told: list[str] = []
    stored = store.derive(
        KEY, "model.gguf", make, needed_bytes=7, progress=lambda what, *_: told.append(what)
    )
    assert make.calls == 2
    assert any(reason in what and "again" in what for what in told), told
    assert stored.path.read_bytes() == b"weights"
    assert store.derive(KEY, "model.gguf", make, needed_bytes=7) == stored
    assert make.calls == 2


def test_a_file_with_another_time_but_the_same_bytes_is_kept(store: ModelStore) -> None:
    """A store that was copied is hashed once, and then trusted again."""
    make = Maker()
    stored = store.derive(KEY, "model.gguf", make, needed_bytes=7)
    os.utime(stored.path, ns=(1, 1))
    told: list[str] = []

    def progress(what: str, _done: int, _total: int | None) -> None:
        told.append(what)

    assert store.derive(KEY, "model.gguf", make, needed_bytes=7, progress=progress) == stored
    assert "checking model.gguf" in told
    told.clear()
    assert store.derive(KEY, "model.gguf", make, needed_bytes=7, progress=progress) == stored
    assert told == []
    assert make.calls == 1


def test_entries_tell_what_is_stored_and_when_it_was_used(store: ModelStore) -> None:
    """The list holds what was asked for, what made it, and puts the last used first."""
    store.derive(KEY, "old.gguf", Maker(), needed_bytes=7)
    store.derive({"b": "c"}, "new.gguf", Maker(), needed_bytes=7)
    for entry in store.entries():
        if entry.name == "old.gguf":
            os.utime(store.root / f"v1/records/{entry.key}.json", (1_000, 1_000))
    new, old = store.entries()
    assert (new.name, old.name) == ("new.gguf", "old.gguf")
    assert old.request == KEY
    assert old.made_by == "quantizer 1"
    assert old.bytes == 7
    assert old.sha256 == hashlib.sha256(b"weights").hexdigest()
    assert old.last_used_at.isoformat() == "1970-01-01T00:16:40+00:00"
    store.derive(KEY, "old.gguf", Maker(), needed_bytes=7)
    assert [entry.name for entry in store.entries()] == ["old.gguf", "new.gguf"]


def test_a_store_that_was_never_written_is_empty_and_stays_uncreated(store: ModelStore) -> None:
    """Looking creates nothing."""
    assert store.entries() == []
    assert store.prune().files == ()
    assert not store.root.exists()


def test_a_store_in_an_impossible_place_is_one_sentence(tmp_path: Path) -> None:
    """A root below a file can't be created, which is said as a StoreError that names it."""
    (tmp_path / "file").touch()
    store = ModelStore(tmp_path / "file/store")
    with pytest.raises(StoreError, match="file/store can't be used for model"):
        store.derive(KEY, "model.gguf", Maker(), needed_bytes=7)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"EDGEBENCH_CACHE": "/big/cache", "XDG_CACHE_HOME": "/xdg"}, Path("/big/cache")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/edgebench")),
        ({"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache/edgebench"),
        ({"EDGEBENCH_CACHE": ""}, Path.home() / ".cache/edgebench"),
        ({}, Path.home() / ".cache/edgebench"),
    ],
)
def test_the_stores_place_is_ours_then_xdgs_then_the_home(
    environ: dict[str, str], expected: Path
) -> None:
    """EDGEBENCH_CACHE wins; an XDG folder must be absolute; else it is ~/.cache/edgebench."""
    assert cache_root(environ) == expected
