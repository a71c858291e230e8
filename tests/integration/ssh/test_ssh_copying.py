"""Models on their way to a board: once, whole, and on from where they broke off."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ssh_server import SshServer, until

from edgebench.harness.errors import BoardError, BoardLinkError, BoardUnfitError
from edgebench.harness.ssh import copying
from edgebench.harness.store.progress import silent
from edgebench.harness.store.store import StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable

    import psutil
    from tests.integration.ssh.conftest import MakeBoard

    from edgebench.harness.ssh.board import SshBoard

pytestmark = pytest.mark.ssh

MIB = 1 << 20


def stored(path: Path, content: bytes) -> StoredFile:
    """A file as the store gives it."""
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return StoredFile(path, sha256, len(content), path.name, "as published", None)


@pytest.fixture
def model(tmp_path: Path) -> StoredFile:
    """32 MiB, more than all the buffers on the way hold, and no two blocks alike."""
    blocks = (hashlib.sha256(str(number).encode()).digest() * 2048 for number in range(512))
    return stored(tmp_path / "tiny model.gguf", b"".join(blocks))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Where the board keeps them."""
    return tmp_path / "board" / "models"


@dataclass
class Told:
    """What progress was told: the bytes done, each time; does something when some are."""

    when: int = 0
    do: Callable[[], object] | None = None
    done: list[int] = field(default_factory=list)
    what: str = ""

    def __call__(self, what: str, done: int, total: int | None) -> None:
        self.what = what
        self.done.append(done)
        if self.do is not None and done >= self.when:
            do, self.do = self.do, None
            do()


def test_a_model_is_copied_once(make_board: MakeBoard, model: StoredFile, models: Path) -> None:
    """The same bytes under its hash and its own name; a second run copies nothing."""
    told = Told()
    place = make_board().place(model, told)
    assert place == str(models / model.sha256 / model.name)
    assert Path(place).read_bytes() == model.path.read_bytes()
    assert (told.done[0], told.done[-1]) == (0, model.bytes)
    inode = Path(place).stat().st_ino
    again = Told()
    assert make_board().place(model, again) == place
    assert again.done == []
    assert Path(place).stat().st_ino == inode


def test_a_folder_is_copied_with_all_its_files(
    board: SshBoard, models: Path, tmp_path: Path
) -> None:
    """A model that is a folder keeps its shape, an empty file too."""
    folder = tmp_path / "mnn model"
    (folder / "inner").mkdir(parents=True)
    contents = {"config.json": b"{}", "inner/weights.bin": b"w" * 70_000, "empty": b""}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    size = sum(map(len, contents.values()))
    place = Path(board.place(StoredFile(folder, "ab" * 32, size, folder.name, "x", None), silent))
    assert place == models / ("ab" * 32) / folder.name
    assert {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    } == contents


def test_a_copy_that_breaks_off_goes_on(
    server: SshServer, make_board: MakeBoard, model: StoredFile, models: Path
) -> None:
    """A cut in the middle is no failure: only what had not arrived is sent."""
    seen: list[bool] = []

    def cut() -> None:
        seen.append((models / model.sha256).exists())
        server.cut()

    told = Told(when=model.bytes * 3 // 4, do=cut)
    place = Path(make_board().place(model, told))
    assert place.read_bytes() == model.path.read_bytes()
    assert seen == [False]  # not there before it is whole
    sizes = zip(told.done, told.done[1:], strict=False)
    (again,) = [after for before, after in sizes if after < before]
    assert again > MIB  # from there on it was sent a second time, and what is before it was not
    names = sorted(path.name for path in models.iterdir())
    assert names == [model.sha256, f"{model.sha256}.json"]  # and no lock


def test_a_copy_waits_for_its_own_beginning_to_notice_that_the_link_is_dead(
    server: SshServer, board: SshBoard, model: StoredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that is dead at one end: the receiver of the first try still holds the lock."""
    monkeypatch.setattr(copying, "STALL_S", 2.0)
    frozen: list[psutil.Process] = []
    told = Told(when=model.bytes // 4, do=lambda: frozen.extend(server.freeze()))
    try:
        place = Path(board.place(model, told))
        assert frozen
        assert place.read_bytes() == model.path.read_bytes()
    finally:
        for process in frozen:
            process.resume()


def test_a_copy_to_a_board_that_stays_away_is_given_up(
    server: SshServer, make_board: MakeBoard, model: StoredFile, models: Path
) -> None:
    """What arrived is kept there for the next run."""

    def go_away() -> None:
        (server.folder / "authorized_keys").rename(server.folder / "away")
        server.cut()

    with pytest.raises(BoardError, match="does not let us in"):
        make_board().place(model, Told(when=model.bytes * 3 // 4, do=go_away))
    until(lambda: not server.agents(), "the receiver outlived its link")
    arrived = (models / f"{model.sha256}.part" / model.name).stat().st_size
    (server.folder / "away").rename(server.folder / "authorized_keys")
    told = Told()
    make_board().place(model, told)
    assert told.done[0] == arrived > MIB


def test_a_copy_with_other_bytes_than_told_is_refused(
    board: SshBoard, model: StoredFile, models: Path
) -> None:
    """The hash is compared on the board, and what is wrong is removed there."""
    with pytest.raises(BoardLinkError, match="was damaged on its way"):
        board.place(replace(model, sha256="cd" * 32), silent)
    assert not [path for path in models.rglob("*") if path.is_file() and path.stat().st_size]


def test_a_damaged_beginning_is_sent_again(
    server: SshServer, board: SshBoard, model: StoredFile, models: Path
) -> None:
    """Half a copy of something else is noticed at the end, and the second try is whole."""
    part = models / f"{model.sha256}.part" / model.name
    part.parent.mkdir(parents=True)
    part.write_bytes(b"not the model" * 1000)
    assert Path(board.place(model, silent)).read_bytes() == model.path.read_bytes()


def test_a_model_that_was_damaged_on_the_board_is_sent_again(
    make_board: MakeBoard, model: StoredFile
) -> None:
    """Its size is right and something wrote into it: that is noticed, told, and mended."""
    place = Path(make_board().place(model, silent))
    with place.open("r+b") as file:
        file.seek(MIB)
        file.write(b"damage")
    told = Told()
    assert make_board().place(model, told) == str(place)
    assert place.read_bytes() == model.path.read_bytes()
    assert told.done[-1] == model.bytes
    assert "where it was damaged" in told.what


def test_only_the_file_that_was_damaged_is_sent_again(board: SshBoard, tmp_path: Path) -> None:
    """Of a model of several files the others stay as they are."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"w" * MIB)
    (folder / "config").write_bytes(b"{}")
    file = StoredFile(folder, "ab" * 32, MIB + 2, "model", "x", None)
    place = Path(board.place(file, silent))
    (place / "config").write_bytes(b"[]")
    board._placed.clear()
    told = Told()
    board.place(file, told)
    assert (place / "config").read_bytes() == b"{}"
    assert told.done[-2:] == [MIB, MIB + 2]  # what comes before is of hashing it here


def test_a_model_that_nothing_was_written_to_is_not_hashed_again(
    make_board: MakeBoard, model: StoredFile
) -> None:
    """Its size and the time of its last change are what they were: it is taken as it is."""
    place = Path(make_board().place(model, silent))
    before = place.stat()
    with place.open("r+b") as file:
        file.write(b"damage")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a failing card would
    told = Told()
    make_board().place(model, told)
    assert told.done == []
    os.utime(place)
    make_board().place(model, told)
    assert place.read_bytes() == model.path.read_bytes()


def test_beginnings_that_nobody_went_on_with_are_removed(
    board: SshBoard, model: StoredFile, models: Path
) -> None:
    """After a month, when the next copy begins; younger ones stay."""
    day = 24 * 60 * 60
    for name, age in (("ab" * 32, 31 * day), ("cd" * 32, 29 * day)):
        part = models / f"{name}.part" / "weights"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"half")
        for path in (part, part.parent):
            os.utime(path, (time.time() - age,) * 2)
    board.place(model, silent)
    assert [path.name for path in models.glob("*.part")] == [f"{'cd' * 32}.part"]


def test_a_model_that_the_disk_has_no_room_for_is_not_begun(
    board: SshBoard, model: StoredFile, models: Path
) -> None:
    """It is asked before anything is sent; both numbers are told."""
    told = Told()
    with pytest.raises(BoardUnfitError, match=r"needs 1024\.0 TiB, and .* are free") as caught:
        board.place(replace(model, bytes=1 << 50), told)
    assert told.done == []
    assert str(models) in str(caught.value)


def test_a_disk_that_fills_up_is_told(board: SshBoard, model: StoredFile, models: Path) -> None:
    """Somebody else may have taken what was free when it was asked."""
    part = models / f"{model.sha256}.part" / model.name
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")  # takes nothing, as a full disk does
    with pytest.raises(BoardUnfitError, match=r"no space on board.*No space left"):
        board.place(model, silent)


def test_a_folder_of_models_that_can_not_be_written_is_told(
    board: SshBoard, model: StoredFile, models: Path
) -> None:
    """A file stands where the folder should be."""
    models.parent.mkdir()
    models.write_bytes(b"")
    with pytest.raises(BoardUnfitError, match=r"can't be written to .*models"):
        board.place(model, silent)


def test_two_runs_do_not_copy_the_same_at_once(make_board: MakeBoard, model: StoredFile) -> None:
    """The second is told so, and the first is not disturbed."""
    first, second = make_board(), make_board()
    refused: list[str] = []

    def beside() -> None:
        with pytest.raises(BoardUnfitError, match="another run is copying") as caught:
            second.place(model, silent)
        refused.append(caught.value.message)

    place = Path(first.place(model, Told(when=MIB, do=beside)))
    assert refused
    assert place.read_bytes() == model.path.read_bytes()
    assert second.place(model, silent) == str(place)


def test_a_model_that_vanished_here_is_told(board: SshBoard, tmp_path: Path) -> None:
    """Its folder is gone before it was copied."""
    folder = tmp_path / "gone"
    folder.mkdir()
    with pytest.raises(BoardUnfitError, match="holds no file"):
        board.place(StoredFile(folder, "ab" * 32, 1, "gone", "x", None), silent)
