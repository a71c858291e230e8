"""Models that are folders: made, named by their content, and watched file by file."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.pagecache import evict
from edgebench.harness.errors import ModelError, RunnerError
from edgebench.harness.store.folders import MOST_FILES, made_files
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.sources import PathSource
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

# cd FOLDER; for f in a.json sub/b.bin; do printf '%s %s %s\n' \
#   "$(sha256sum <$f | cut -c-64)" "$(stat -c %s $f)" $f; done | sha256sum
FOLDER_SHA256 = "13dc96b864982a83fdd28a3204d54cb310ee2adb2dcbe45aca40f4904989160d"
FILES = {"sub/b.bin": b"weights", "a.json": b"{}"}
KEY = {"source": "abc", "quantization": "int4", "tool": "converter 1"}
LONG_AGO_NS = 1_000_000_000_000_000_000


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Maker:
    """Writes a folder and counts how often."""

    def __init__(self, files: dict[str, bytes] = FILES) -> None:
        self.files = files
        self.calls = 0

    def __call__(self, path: Path) -> dict[str, str]:
        assert not path.exists()
        self.calls += 1
        path.mkdir()
        write(path, self.files)
        return {"tool": "converter 1", "note": "from a lossy source"}


class Told:
    """Remembers what was reported."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, what: str, _done: int, _total: int | None) -> None:
        if what not in self.calls:
            self.calls.append(what)


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A user's folder."""
    folder = tmp_path / "my model.v2"
    write(folder, FILES)
    for path in folder.rglob("*"):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return folder


# Made ---------------------------------------------------------------------------------------------


def test_a_made_folder_is_stored_under_the_hash_of_its_list(store: ModelStore) -> None:
    """Its hash is what coreutils give for the documented list; its size is that of its files."""
    stored = store.derive(KEY, "m-int4-mnn", Maker(), needed_bytes=9)
    assert {
        path.relative_to(stored.path).as_posix(): path.read_bytes()
        for path in stored.path.rglob("*")
        if path.is_file()
    } == FILES
    assert stored.sha256 == FOLDER_SHA256
    assert stored.bytes == 9
    assert stored.path.name == stored.name == "m-int4-mnn"
    assert (stored.made_by, stored.note) == ("converter 1", "from a lossy source")
    (entry,) = store.entries()
    assert (entry.sha256, entry.bytes, entry.path) == (FOLDER_SHA256, 9, stored.path)


def test_a_folder_is_made_once(store: ModelStore) -> None:
    """A second request gets the first one's folder, in another process too."""
    make = Maker()
    first = store.derive(KEY, "m", make, needed_bytes=9)
    assert ModelStore(store.root).derive(KEY, "m", make, needed_bytes=9) == first
    assert make.calls == 1


def test_a_stored_folder_can_not_be_written_to(store: ModelStore) -> None:
    """Nobody has the right to write to its files, or to add one."""
    stored = store.derive(KEY, "m", Maker(), needed_bytes=9)
    for path in (stored.path, *stored.path.rglob("*")):
        assert path.stat().st_mode & 0o222 == 0, path


def test_equal_folders_are_stored_once_and_not_replaced(store: ModelStore) -> None:
    """Another request that gives the same leaves the folder alone that a process may be reading."""
    make = Maker()
    first = store.derive(KEY, "m", make, needed_bytes=9)
    inode = (first.path / "a.json").stat().st_ino
    second = store.derive({**KEY, "tool": "converter 2"}, "m", make, needed_bytes=9)
    assert make.calls == 2
    assert second.path == first.path
    assert (first.path / "a.json").stat().st_ino == inode
    told = Told()
    assert store.derive(KEY, "m", make, needed_bytes=9, progress=told) == first
    assert store.derive({**KEY, "tool": "converter 2"}, "m", make, needed_bytes=9) == second
    assert (make.calls, told.calls) == (2, [])


def remove_file(folder: Path) -> None:
    (folder / "sub").chmod(0o755)
    (folder / "sub/b.bin").unlink()


def remove_all(folder: Path) -> None:
    for path in (folder, folder / "sub"):
        path.chmod(0o755)
    shutil.rmtree(folder)


def replace_by_file(folder: Path) -> None:
    remove_all(folder)
    folder.write_bytes(b"not a folder")


def truncate_file(folder: Path) -> None:
    (folder / "sub/b.bin").chmod(0o644)
    (folder / "sub/b.bin").write_bytes(b"wei")


def flip_byte(folder: Path) -> None:
    (folder / "sub/b.bin").chmod(0o644)
    (folder / "sub/b.bin").write_bytes(b"Weights")
    os.utime(folder / "sub/b.bin", ns=(1, 1))


def add_file(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "cache.tmp").touch()


def add_link(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "more").symlink_to("sub")


def put_link(folder: Path) -> None:
    other = folder.parent.parent / "other"
    other.write_bytes(b"weights")
    remove_file(folder)
    (folder / "sub/b.bin").symlink_to(other)


def put_folder(folder: Path) -> None:
    remove_file(folder)
    (folder / "sub/b.bin").mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove_file, "its file sub/b.bin is gone"),
        (remove_all, "its file a.json is gone"),
        (replace_by_file, "its file a.json is gone"),
        (truncate_file, "its file sub/b.bin has 3 bytes instead of 7"),
        (flip_byte, "its file sub/b.bin was changed"),
        (add_file, "cache.tmp was added to it"),
        (add_link, "more was added to it"),
        (put_link, "its file sub/b.bin was changed"),
        (put_folder, "its file sub/b.bin is a folder"),
    ],
)
def test_a_damaged_folder_is_made_again_with_a_message(
    store: ModelStore, damage: object, reason: str
) -> None:
    """No damage inside is taken for a model: the caller hears why, and gets it whole again."""
    make, told = Maker(), Told()
    stored = store.derive(KEY, "m", make, needed_bytes=9)
    assert callable(damage)
    damage(stored.path)
    assert store.derive(KEY, "m", make, needed_bytes=9, progress=told) == stored
    assert make.calls == 2
    assert any(reason in what and "again" in what for what in told.calls), told.calls
    assert not (stored.path / "sub/b.bin").is_symlink()
    assert (stored.path / "sub/b.bin").read_bytes() == b"weights"
    assert store.derive(KEY, "m", make, needed_bytes=9) == stored
    assert make.calls == 2


def test_other_times_but_the_same_bytes_are_kept(store: ModelStore) -> None:
    """A store that was copied is hashed once, and then trusted again."""
    make, told = Maker(), Told()
    stored = store.derive(KEY, "m", make, needed_bytes=9)
    for path in stored.path.rglob("*"):
        os.utime(path, ns=(1, 1))
    assert store.derive(KEY, "m", make, needed_bytes=9, progress=told) == stored
    assert told.calls == ["checking m/a.json", "checking m/sub/b.bin"]
    told.calls.clear()
    assert store.derive(KEY, "m", make, needed_bytes=9, progress=told) == stored
    assert (make.calls, told.calls) == (1, [])


def test_folders_without_files_do_not_count(store: ModelStore) -> None:
    """A tool may leave an empty folder: it neither changes the hash nor looks like damage."""
    make = Maker()

    def make_with_empty(path: Path) -> dict[str, str]:
        told = make(path)
        (path / "empty").mkdir()
        return told

    stored = store.derive(KEY, "m", make_with_empty, needed_bytes=9)
    assert stored.sha256 == FOLDER_SHA256
    assert store.derive(KEY, "m", make_with_empty, needed_bytes=9) == stored
    assert make.calls == 1


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "sub/../../x", ""])
def test_a_record_that_leads_out_of_its_folder_is_damaged(store: ModelStore, name: str) -> None:
    """Names inside of a folder are checked as the folder's own is."""
    make = Maker()
    store.derive(KEY, "m", make, needed_bytes=9)
    record = store.root / f"v1/records/{key_id(KEY)}.json"
    document = json.loads(record.read_text())
    document["files"][0]["path"] = name
    record.write_text(json.dumps(document))
    told = Told()
    store.derive(KEY, "m", make, needed_bytes=9, progress=told)
    assert any("its record is damaged" in what for what in told.calls)
    assert make.calls == 2


@pytest.mark.parametrize("failure", [RunnerError("crashed"), KeyboardInterrupt()])
def test_a_folder_that_failed_midway_leaves_nothing(
    store: ModelStore, failure: BaseException
) -> None:
    """Neither an error nor Ctrl-C leaves half a folder, not even one that is read-only inside."""

    def make(path: Path) -> dict[str, str]:
        (path / "sub").mkdir(parents=True)
        (path / "sub/half.bin").write_bytes(b"half")
        (path / "sub").chmod(0o500)
        raise failure

    with pytest.raises(type(failure)):
        store.derive(KEY, "m", make, needed_bytes=9)
    assert store.entries() == []
    assert list((store.root / "v1/tmp").iterdir()) == []
    assert not (store.root / "v1/files").exists()


@pytest.mark.parametrize("files", [{}, {"empty": b""}], ids=["none", "empty"])
def test_a_folder_with_nothing_in_it_is_no_model(
    store: ModelStore, files: dict[str, bytes]
) -> None:
    """Success without a byte is not believed."""
    with pytest.raises(ModelError, match="converter 1 wrote no file"):
        store.derive(KEY, "m", Maker(files), needed_bytes=9)


def test_a_made_folder_must_hold_files_only(store: ModelStore) -> None:
    """A link may lead to what changes later, so it is refused and named."""

    def make(path: Path) -> dict[str, str]:
        write(path, FILES)
        (path / "link").symlink_to("a.json")
        return {"tool": "converter 1"}

    with pytest.raises(ModelError, match="m can't be stored: its 'link' is a link"):
        store.derive(KEY, "m", make, needed_bytes=9)
    assert store.entries() == []


def test_a_folder_goes_when_it_is_pruned(store: ModelStore) -> None:
    """Read-only folders are removed, and their size is that of their files."""
    stored = store.derive(KEY, "m", Maker(), needed_bytes=9)
    assert store.prune(keep={stored.sha256}).files == ()
    planned = store.prune(dry_run=True)
    assert stored.path.is_dir()
    assert (planned.files, planned.bytes) == ((stored.path,), 9)
    assert store.prune() == planned
    assert not stored.path.exists()
    assert store.entries() == []


def test_records_of_before_there_were_folders_are_read(store: ModelStore) -> None:
    """A store that an older edgebench made goes on being used."""
    key = {"source": "pypi:p==1/m.gguf"}
    content = b"weights"
    # printf 'weights' | sha256sum
    sha256 = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
    path = store.root / f"v1/files/{sha256[:2]}/{sha256}/m.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    record = store.root / f"v1/records/{key_id(key)}.json"
    record.parent.mkdir()
    record.write_text(
        json.dumps(
            {
                "schema_version": 1, "key": key, "name": "m.gguf", "sha256": sha256, "bytes": 7,
                "mtime_ns": LONG_AGO_NS, "made_by": "as published", "note": None,
                "revision": None, "created_at": "2026-01-01T00:00:00+00:00",
                "edgebench_version": "0.1.0",
            }
        )
    )  # fmt: skip

    def never(_: Path) -> dict[str, str]:
        raise AssertionError

    stored = store.derive(key, "m.gguf", never, needed_bytes=7)
    assert (stored.path, stored.sha256) == (path, sha256)
    assert [entry.name for entry in store.entries()] == ["m.gguf"]


# The user's own -----------------------------------------------------------------------------------


def test_a_users_folder_is_used_where_it_is(store: ModelStore, model: Path) -> None:
    """Its name is the folder's, its hash is that of its list of files, and no copy is made."""
    stored = store.fetch(PathSource(model))
    assert (stored.path, stored.name) == (model, "my model.v2")
    assert (stored.sha256, stored.bytes) == (FOLDER_SHA256, 9)
    assert stored.made_by == "as published"
    assert store.entries() == []


def test_hidden_files_belong_to_other_tools(store: ModelStore, model: Path) -> None:
    """What git or a file manager keeps in the folder does not change the model."""
    write(model, {".gitattributes": b"x", ".git/config": b"y", "sub/.DS_Store": b"z"})
    assert store.fetch(PathSource(model)).sha256 == FOLDER_SHA256


def test_links_to_files_are_followed(store: ModelStore, model: Path, tmp_path: Path) -> None:
    """A folder of the hub's own cache is made of links, and is the same model."""
    links = tmp_path / "snapshot"
    (links / "sub").mkdir(parents=True)
    for name in FILES:
        (links / name).symlink_to(model / name)
    assert store.fetch(PathSource(links)).sha256 == FOLDER_SHA256


def test_each_file_of_a_folder_is_hashed_once(store: ModelStore, model: Path) -> None:
    """Of a changed folder only the changed file is read again."""
    told = Told()
    first = store.fetch(PathSource(model), progress=told)
    assert told.calls == ["checking a.json", "checking b.bin"]
    told.calls.clear()
    assert store.fetch(PathSource(model), progress=told) == first
    assert told.calls == []
    (model / "a.json").write_bytes(b"[]")
    assert store.fetch(PathSource(model), progress=told).sha256 != first.sha256
    assert told.calls == ["checking a.json"]


@pytest.mark.parametrize("change", ["rename", "move a byte", "add", "remove"])
def test_every_change_of_a_folder_changes_its_hash(
    store: ModelStore, model: Path, change: str
) -> None:
    """Names, contents and their borders all count."""
    if change == "rename":
        (model / "a.json").rename(model / "c.json")
    elif change == "move a byte":
        write(model, {"a.json": b"{}w", "sub/b.bin": b"eights"})
    elif change == "add":
        write(model, {"empty": b""})
    else:
        (model / "a.json").unlink()
    assert store.fetch(PathSource(model)).sha256 != FOLDER_SHA256


def test_the_hash_of_a_folder_can_be_asked_for(store: ModelStore, model: Path) -> None:
    """The right one is taken; of a wrong one the message holds both, to be copied."""
    assert store.fetch(PathSource(model), sha256=FOLDER_SHA256).path == model
    with pytest.raises(ModelError) as caught:
        store.fetch(PathSource(model), sha256="0" * 64)
    assert FOLDER_SHA256 in str(caught.value)
    assert "0" * 64 in str(caught.value)


def test_a_folder_named_by_dots_has_its_own_name(store: ModelStore, model: Path) -> None:
    """``path: model/sub/..`` is that folder."""
    assert store.fetch(PathSource(model / "sub" / "..")).name == "my model.v2"


def make_empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / ".hidden").touch()


def link_nowhere(folder: Path) -> None:
    (folder / "sub/x.bin").symlink_to("gone")


def link_to_folder(folder: Path) -> None:
    (folder / "more").symlink_to("sub")


def put_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def put_bad_name(folder: Path) -> None:
    (folder / "a\nb").touch()


def put_too_many(folder: Path) -> None:
    for number in range(MOST_FILES):
        (folder / str(number)).touch()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (make_empty, "holds no file"),
        (link_nowhere, "holds 'sub/x.bin', which is a link that leads nowhere"),
        (link_to_folder, "holds 'more', which is a link to a folder"),
        (put_pipe, "holds 'pipe', which is not a regular file"),
        (put_bad_name, r"holds 'a\nb', which has a name that can't be written down"),
        (put_too_many, "holds more than 2000 files, which no model does"),
    ],
)
def test_a_folder_that_is_no_model_is_named(
    store: ModelStore, model: Path, spoil: object, words: str
) -> None:
    """What can't be hashed file by file is refused with the place, and nothing is guessed."""
    assert callable(spoil)
    spoil(model)
    with pytest.raises(ModelError) as caught:
        store.fetch(PathSource(model))
    assert words in str(caught.value)
    assert str(model) in str(caught.value)


def test_pages_of_all_files_are_dropped(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold load of a folder is cold for each of its files."""
    dropped: list[int] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda number, *_: dropped.append(os.fstat(number).st_ino)
    )
    monkeypatch.setattr("edgebench.devices.pagecache.resident_share", lambda _: 0.0)
    assert evict(model) == ""
    assert sorted(dropped) == sorted((model / name).stat().st_ino for name in FILES)


def test_made_files_are_listed_with_hidden_ones(tmp_path: Path) -> None:
    """What a framework reads may be hidden; in what was made nothing is left out."""
    write(tmp_path / "m", {".config": b"x", **FILES})
    assert sorted(made_files(tmp_path / "m")) == [".config", "a.json", "sub/b.bin"]
