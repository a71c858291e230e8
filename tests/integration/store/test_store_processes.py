"""The store between processes, when they are killed, and when the disk is full."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import RunnerError, StoreError
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

# printf 'weights' | sha256sum
WEIGHTS_SHA256 = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"


# (printf '%s 2 config.json\n' "$(printf '{}' | sha256sum | cut -c-64)";
#  printf '%s 7 weights.bin\n' "$(printf weights | sha256sum | cut -c-64)") | sha256sum
FOLDER_SHA256 = "a5a0a3f93f77b0c26db55bf8a8ebede39f92e89f839a636109cf339fce7e050a"

ONE_OF_EACH = pytest.mark.parametrize(
    ("source", "name", "sha256"),
    [("derive", "x.gguf", WEIGHTS_SHA256), ("derive folder", "x", FOLDER_SHA256)],
    ids=["file", "folder"],
)


@ONE_OF_EACH
def test_two_processes_make_one_model_once(
    start: Callable, source: str, name: str, sha256: str
) -> None:
    """The second waits, says so, and takes what the first has made."""
    first = start(source)
    first.until(lambda line: "making" in line)
    second = start(source)
    waiting = second.until(lambda line: "waiting" in line.get("what", ""))
    assert waiting["what"] == f"waiting for another edgebench process: {name}"
    first.go_on()
    made = first.result()
    assert made["sha256"] == sha256
    rest = list(second.lines())
    assert not any("making" in line for line in rest)
    assert rest[-1] == made


@ONE_OF_EACH
def test_a_killed_maker_leaves_nothing_that_is_taken_for_whole(
    start: Callable, tmp_path: Path, leftovers: Callable, source: str, name: str, sha256: str
) -> None:
    """After kill -9 in the middle the next process makes the model, whole, and clears up."""
    store = ModelStore(tmp_path / "store")
    killed = start(source)
    half = Path(killed.until(lambda line: "making" in line)["making"])
    killed.close()
    assert half.read_bytes() == b"wei"
    assert store.entries() == []
    assert not (store.root / "v1/files").exists()
    second = start(source)
    again = Path(second.until(lambda line: "making" in line)["making"])
    assert not half.exists()
    assert again != half
    second.go_on()
    assert second.result()["sha256"] == sha256
    # The file or files, and their record.
    expected = {"derive": ["x.gguf"], "derive folder": ["config.json", "weights.bin"]}[source]
    (record,) = set(leftovers(store.root)) - set(expected)
    assert record.endswith(".json")
    assert set(expected) <= set(leftovers(store.root))
    assert [entry.name for entry in store.entries()] == [name]


def test_prune_clears_up_after_a_killed_maker_but_not_after_a_living_one(
    start: Callable, tmp_path: Path
) -> None:
    """The lock tells the two apart."""
    store = ModelStore(tmp_path / "store")
    maker = start("derive")
    half = Path(maker.until(lambda line: "making" in line)["making"])
    pruned = store.prune()
    assert pruned.files == ()
    assert len(pruned.in_use) == 1
    assert half.exists()
    maker.close()
    assert store.prune().files == (half.parent,)
    assert not half.exists()


def test_what_does_not_fit_is_not_begun(small_disk: Path) -> None:
    """The space is checked first."""
    store = ModelStore(small_disk / "store")

    def make(_: Path) -> dict[str, str]:
        raise AssertionError

    with pytest.raises(StoreError, match=r"needs 2\.0 MiB, and .* are free at"):
        store.derive({"a": "b"}, "m.gguf", make, needed_bytes=2 << 20)


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_a_disk_that_is_full_in_the_middle_leaves_no_half_model(
    small_disk: Path, leftovers: Callable, folder: bool
) -> None:
    """The error is the same as that of the check before, and the space is free again."""
    store = ModelStore(small_disk / "store")

    def make(path: Path) -> dict[str, str]:
        if folder:
            path.mkdir()
            (path / "config.json").write_bytes(b"{}")
            path /= "weights.bin"
        path.write_bytes(bytes(2 << 20))
        return {"tool": "quantizer 1"}

    with pytest.raises(StoreError) as caught:
        store.derive({"a": "b"}, "m.gguf", make, needed_bytes=7)
    assert "not enough disk space: making m.gguf needs" in str(caught.value)
    assert "edgebench models prune" in str(caught.value)
    assert leftovers(store.root) == []
    assert store.entries() == []


def test_a_framework_that_fails_on_a_full_disk_is_told_as_a_full_disk(small_disk: Path) -> None:
    """Whatever the framework calls it, the user hears what it is."""

    def make(path: Path) -> dict[str, str]:
        with path.open("wb") as file:
            try:
                file.write(bytes(2 << 20))
            except OSError as error:
                msg = "quantize: write error"
                raise RunnerError(msg) from error
        return {}

    with pytest.raises(StoreError, match="not enough disk space"):
        ModelStore(small_disk / "store").derive({"a": "b"}, "m.gguf", make, needed_bytes=7)


def test_a_disk_that_is_full_already_is_the_same_error(small_disk: Path) -> None:
    """Even the lock and the record need a little space."""
    store = ModelStore(small_disk / "store")
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(2 << 20))

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(b"weights")
        return {"tool": "quantizer 1"}

    with pytest.raises(StoreError, match="not enough disk space"):
        store.derive({"a": "b"}, "m.gguf", make, needed_bytes=0)
    filler.unlink()
    assert store.derive({"a": "b"}, "m.gguf", make, needed_bytes=7).sha256 == WEIGHTS_SHA256


def test_a_readable_store_need_not_be_writable(small_disk: Path) -> None:
    """What is in a store on a read-only disk is used; what is not is refused with a reason."""
    store = ModelStore(small_disk / "store")

    def make(path: Path) -> dict[str, str]:
        path.write_bytes(b"weights")
        return {"tool": "quantizer 1"}

    stored = store.derive({"a": "b"}, "m.gguf", make, needed_bytes=7)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert store.derive({"a": "b"}, "m.gguf", make, needed_bytes=7) == stored
    assert [entry.name for entry in store.entries()] == ["m.gguf"]
    with pytest.raises(StoreError, match="Read-only file system") as caught:
        store.derive({"a": "c"}, "m.gguf", make, needed_bytes=7)
    assert "EDGEBENCH_CACHE" in str(caught.value)
