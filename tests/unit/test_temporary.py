"""Temporary folders, and those of processes that were killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.temporary import TemporaryFolder

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "edgebench-tested-"
OWNER = f"""
import sys
from edgebench.harness.temporary import TemporaryFolder
folder = TemporaryFolder({PREFIX!r})
(folder.path / "file").write_bytes(b"x")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary place, for this process and its children."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_it_is_there_until_it_is_put_away(place: Path) -> None:
    """And twice is as good as once."""
    folder = TemporaryFolder(PREFIX)
    assert folder.path.parent == place
    assert folder.path.name.startswith(PREFIX)
    folder.cleanup()
    folder.cleanup()
    assert list(place.iterdir()) == []


def test_the_next_one_removes_that_of_a_killed_process(place: Path) -> None:
    """Not while its owner lives; then with all that is in it."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        left = place / owner.stdout.readline().strip()
        TemporaryFolder(PREFIX).cleanup()
        assert (left / "file").exists()
        owner.kill()
        owner.wait()
    assert left.exists()
    TemporaryFolder(PREFIX).cleanup()
    assert list(place.iterdir()) == []


def test_what_is_not_of_this_kind_stays(place: Path) -> None:
    """A folder without a lock, one of another prefix, and a link to somewhere else."""
    elsewhere = place / "elsewhere"
    for folder in (place / f"{PREFIX}old", place / "edgebench-other-1", elsewhere):
        folder.mkdir()
    (place / "edgebench-other-1" / "lock").touch()
    (elsewhere / "lock").touch()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    before = sorted(place.iterdir())
    TemporaryFolder(PREFIX).cleanup()
    assert sorted(place.iterdir()) == before
