"""Making room in the store, and the two commands of the command line."""

from __future__ import annotations

import errno
import json
import os
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock

from edgebench.cli.models import models
from edgebench.harness.errors import StoreError
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.sources import PathSource
from edgebench.harness.store.space import human_bytes
from edgebench.harness.store.store import ModelStore, StoredFile

DAY_S = 86_400


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    root = tmp_path / "store"
    monkeypatch.setenv("EDGEBENCH_CACHE", str(root))
    return ModelStore()


def add(store: ModelStore, name: str, content: bytes, *, age_days: float = 0) -> StoredFile:
    """Store a file that was last used so many days ago."""
    key = {"of": name}

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(content)
        return {"tool": "quantizer 1"}

    stored = store.derive(key, name, make, needed_bytes=len(content))
    used_s = time.time() - age_days * DAY_S
    os.utime(store.root / f"v1/records/{key_id(key)}.json", (used_s, used_s))
    return stored


def test_only_what_was_not_used_for_so_long_goes(store: ModelStore) -> None:
    """The limit is the time of the last use; the sizes of the removed are summed."""
    old = add(store, "old.gguf", b"12345", age_days=40)
    new = add(store, "new.gguf", b"123", age_days=20)
    pruned = store.prune(older_than_days=30)
    assert pruned.files == (old.path,)
    assert pruned.bytes == 5
    assert not old.path.exists()
    assert not old.path.parent.exists()
    assert new.path.exists()
    assert [entry.name for entry in store.entries()] == ["new.gguf"]


def test_without_a_limit_all_goes_but_what_is_to_be_kept(store: ModelStore) -> None:
    """`keep` names contents."""
    gone = add(store, "a.gguf", b"a")
    kept = add(store, "b.gguf", b"b")
    pruned = store.prune(keep={kept.sha256})
    assert pruned.files == (gone.path,)
    assert kept.path.exists()


def test_a_dry_run_tells_and_removes_nothing(store: ModelStore) -> None:
    """What a dry run says is what the real one then removes."""
    stored = add(store, "a.gguf", b"abc")
    planned = store.prune(dry_run=True)
    assert stored.path.exists()
    assert len(store.entries()) == 1
    assert planned == store.prune()
    assert planned.files == (stored.path,)
    assert planned.bytes == 3


def rate(store: ModelStore, sha256: str, *contents: bytes, age_days: float = 0) -> Path:
    """Keep ratings of a source that were last used so many days ago; gives their folder."""
    kept = store.kept_reference(sha256, 1)
    kept.keep(
        {
            f"{number}.npz": partial(Path.write_bytes, data=content)
            for number, content in enumerate(contents)
        }
    )
    folder = kept.path("").resolve()
    used_s = time.time() - age_days * DAY_S
    os.utime(folder, (used_s, used_s))
    return folder


def test_ratings_go_when_they_are_old_or_all_goes(store: ModelStore) -> None:
    """Those of one model at once; what is to be kept stays with its ratings."""
    old, new = rate(store, "a" * 64, b"12", b"3", age_days=40), rate(store, "b" * 64, b"4567")
    planned = store.prune(older_than_days=30, dry_run=True)
    assert old.exists()
    assert planned == store.prune(older_than_days=30)
    assert planned.files == (old,)
    assert planned.bytes == 3
    assert not old.exists()
    assert store.prune(keep={"b" * 64}).files == ()
    assert store.prune().files == (new,)
    assert store.references() == []


def test_ratings_that_are_being_kept_stay(store: ModelStore) -> None:
    """What another process holds the lock of is not pruned, and named."""
    folder = rate(store, "a" * 64, b"12", age_days=40)
    key = key_id({"reference": folder.name})
    with FileLock(store.root / f"v1/locks/{key}.lock"):
        pruned = store.prune()
    assert (pruned.files, pruned.in_use) == ((), (folder.name,))
    assert folder.exists()


def test_ratings_whose_writing_fails_are_not_there(store: ModelStore) -> None:
    """Whole or not at all, and nothing is left of them."""

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.EIO, "the disk")

    kept = store.kept_reference("a" * 64, 1)
    with pytest.raises(StoreError, match="keeping the reference's ratings"):
        kept.keep({"one.npz": partial(Path.write_bytes, data=b"whole"), "two.npz": fail})
    assert [path.name for path in kept.path("").iterdir()] == ["one.npz"]
    assert list((store.root / "v1/tmp").iterdir()) == []


def test_content_that_another_record_needs_stays(store: ModelStore) -> None:
    """A file goes with the last record that speaks of it."""
    make_same = {"tool": "quantizer 1"}

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(b"same")
        return make_same

    first = store.derive({"of": "1"}, "m.gguf", make, needed_bytes=4)
    store.derive({"of": "2"}, "m.gguf", make, needed_bytes=4)
    record = store.root / f"v1/records/{key_id({'of': '1'})}.json"
    os.utime(record, (1, 1))
    assert store.prune(older_than_days=1).files == ()
    assert first.path.exists()
    assert len(store.entries()) == 1
    assert store.prune().files == (first.path,)


def test_what_killed_processes_left_goes_but_not_what_is_in_use(store: ModelStore) -> None:
    """A scratch folder goes where its lock is free, and stays where somebody holds it."""
    add(store, "a.gguf", b"a")
    dead, alive = key_id({"k": "dead"}), key_id({"k": "alive"})
    for key in (dead, alive):
        folder = store.root / f"v1/tmp/{key}-x1y2"
        folder.mkdir()
        (folder / "half.gguf").write_bytes(b"half")
    with FileLock(store.root / f"v1/locks/{alive}.lock"):
        pruned = store.prune(older_than_days=30)
    assert [path.name for path in pruned.files] == [f"{dead}-x1y2"]
    assert pruned.bytes == 4
    assert pruned.in_use == (alive,)
    assert [path.name for path in (store.root / "v1/tmp").iterdir()] == [f"{alive}-x1y2"]


def test_a_record_that_is_being_made_stays(store: ModelStore) -> None:
    """What another process holds the lock of is not pruned, and named."""
    stored = add(store, "a.gguf", b"a", age_days=99)
    with FileLock(store.root / f"v1/locks/{key_id({'of': 'a.gguf'})}.lock"):
        pruned = store.prune()
    assert pruned.files == ()
    assert pruned.in_use == ("a.gguf",)
    assert stored.path.exists()


def test_a_cut_off_download_is_kept_until_it_is_old(store: ModelStore) -> None:
    """A download can be resumed for as long as a model would be kept."""
    add(store, "a.gguf", b"a")
    partials = store.root / "v1/partial"
    partials.mkdir()
    key = key_id({"source": "hf:o/m@main/f"})
    for name, age_days in (("new", 1), ("old", 31)):
        path = partials / f"{key}-{name}.part"
        path.write_bytes(b"part")
        os.utime(path, (time.time() - age_days * DAY_S,) * 2)
    assert [path.name for path in store.prune(older_than_days=30).files] == [f"{key}-old.part"]
    assert (partials / f"{key}-new.part").exists()


def test_files_without_a_record_and_useless_records_go(store: ModelStore) -> None:
    """Neither an orphan nor a record of nothing takes up room for ever."""
    orphan = add(store, "orphan.gguf", b"123")
    (store.root / f"v1/records/{key_id({'of': 'orphan.gguf'})}.json").unlink()
    gone = add(store, "gone.gguf", b"4")
    gone.path.unlink()
    record = store.root / f"v1/records/{key_id({'of': 'gone.gguf'})}.json"
    assert set(store.prune(older_than_days=30).files) == {orphan.path, record}
    assert not orphan.path.exists()
    assert not record.exists()


def test_hashes_of_files_that_are_gone_are_forgotten(store: ModelStore, tmp_path: Path) -> None:
    """The memory of users' files does not grow for ever."""
    for name in ("here.gguf", "gone.gguf"):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (1_000, 1_000))
        store.fetch(PathSource(tmp_path / name))
    add(store, "a.gguf", b"a")
    (tmp_path / "gone.gguf").unlink()
    assert len(list((store.root / "v1/hashes").iterdir())) == 2
    store.prune(older_than_days=30)
    assert len(list((store.root / "v1/hashes").iterdir())) == 1
    assert (tmp_path / "here.gguf").exists()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (98_362_432, "93.8 MiB"),
        (1_048_524, "1023.9 KiB"),
        (1_048_575, "1.0 MiB"),
        (3_825_807_040, "3.6 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes_are_told_in_the_unit_that_fits(count: int, text: str) -> None:
    """1024 of a unit are one of the next."""
    assert human_bytes(count) == text


def run(*arguments: str, answer: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(
        models, list(arguments), input=answer, env={"COLUMNS": "80"}, catch_exceptions=False
    )
    return result.exit_code, result.output


def test_list_is_a_table_of_80_columns(store: ModelStore) -> None:
    """Name, size, origin and last use of each model, and the size in all."""
    add(store, "SmolLM2-135M-Instruct-with-a-long-name.Q4_K_M.gguf", b"1" * 2048)
    add(store, "b.gguf", b"2" * 1024)
    status, output = run("list")
    assert status == 0
    lines = output.splitlines()
    assert max(len(line) for line in lines[:-1]) <= 80
    assert "quantizer 1" in output
    assert "2.0 KiB" in output
    assert lines[-1] == f"3.0 KiB in {store.root}"


def test_list_as_json_holds_everything(store: ModelStore) -> None:
    """The JSON has the path, the hash and what was asked for."""
    stored = add(store, "a.gguf", b"abc")
    status, output = run("list", "--json")
    document = json.loads(output)
    assert status == 0
    assert document["root"] == str(store.root)
    (model,) = document["models"]
    assert model["path"] == str(stored.path)
    assert model["sha256"] == stored.sha256
    assert model["request"] == {"of": "a.gguf"}
    assert model["made_by"] == "quantizer 1"


def test_list_tells_of_ratings(store: ModelStore) -> None:
    """How many, of which model, their size, also in the total; and as JSON."""
    stored = add(store, "a.gguf", b"1" * 1024)
    rate(store, stored.sha256, b"2" * 512, b"3" * 512)
    rate(store, "f" * 64, b"4" * 1024, age_days=1)
    status, output = run("list")
    assert status == 0
    assert output.splitlines()[-3:] == [
        "1.0 KiB: what the reference says of 2 pieces of text, by a.gguf",
        (
            "1.0 KiB: what the reference says of 1 piece of text, by a model that is not here "
            "(ffffffffffff)"
        ),
        f"3.0 KiB in {store.root}",
    ]
    first, second = json.loads(run("list", "--json")[1])["references"]
    assert (first["source_sha256"], first["source_name"]) == (stored.sha256, "a.gguf")
    assert (first["windows"], first["bytes"]) == (2, 1024)
    assert second["source_name"] is None
    assert (store.root / "v1/references" / ("f" * 64 + "-1")).samefile(second["path"])


def test_a_store_of_ratings_only_is_not_empty(store: ModelStore) -> None:
    """It can be listed, and pruned."""
    folder = rate(store, "f" * 64, b"4")
    assert run("list")[1].splitlines()[-1] == f"1 B in {store.root}"
    status, output = run("prune", "--all", "--yes")
    assert status == 0
    assert output.splitlines()[0] == f"  v1/references/{folder.name}"
    assert f"Removed 1 file, 1 B, from {store.root}." in output
    assert not folder.exists()


def test_an_empty_store_is_said_to_be_empty(store: ModelStore) -> None:
    """No empty table is printed."""
    assert run("list") == (0, f"The model store at {store.root} is empty.\n")


def test_prune_asks_first(store: ModelStore) -> None:
    """Without a yes nothing is removed."""
    stored = add(store, "a.gguf", b"abc")
    status, output = run("prune", "--all", answer="n\n")
    assert status == 1
    assert f"Remove 1 file, 3 B, from {store.root}?" in output
    assert stored.path.exists()
    status, output = run("prune", "--all", answer="y\n")
    assert status == 0
    assert f"Removed 1 file, 3 B, from {store.root}." in output
    assert not stored.path.exists()


def test_prune_removes_what_was_not_used_for_a_month(store: ModelStore) -> None:
    """The default limit is 30 days, another one is given in days, and --yes does not ask."""
    month = add(store, "month.gguf", b"a", age_days=31)
    week = add(store, "week.gguf", b"bb", age_days=8)
    day = add(store, "day.gguf", b"ccc", age_days=1)
    assert run("prune", "--yes")[0] == 0
    assert [path.exists() for path in (month.path, week.path, day.path)] == [False, True, True]
    assert run("prune", "--older-than", "7", "--yes")[0] == 0
    assert [path.exists() for path in (week.path, day.path)] == [False, True]
    assert "Nothing to remove" in run("prune", "--yes")[1]


def test_prune_dry_run_removes_nothing(store: ModelStore) -> None:
    """A dry run lists what would go."""
    stored = add(store, "a.gguf", b"abc")
    status, output = run("prune", "--all", "--dry-run")
    assert status == 0
    assert output.splitlines()[0] == "  a.gguf"
    assert f"1 file, 3 B, would be removed from {store.root}." in output
    assert stored.path.exists()


def test_prune_says_what_is_in_use(store: ModelStore) -> None:
    """What another process holds is named, and left alone."""
    add(store, "a.gguf", b"abc")
    with FileLock(store.root / f"v1/locks/{key_id({'of': 'a.gguf'})}.lock"):
        status, output = run("prune", "--all", "--yes")
    assert status == 0
    assert "In use by another edgebench, left alone: a.gguf." in output


def test_all_and_a_limit_exclude_each_other() -> None:
    """The two are not guessed about."""
    assert run("prune", "--all", "--older-than", "3")[0] == 2


def test_a_store_that_cannot_be_read_is_our_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line gets a StoreError, which it prints, and no traceback."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(StoreError):
        ModelStore().derive({"a": "b"}, "n", lambda _: {}, needed_bytes=0)
