"""Folders on the disk that outlive a killed process, until the next one comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgebench.runners.scratch import PREFIX, scratch_folder

HOLD = """
import sys, time
from edgebench.runners.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "weights").write_bytes(bytes(1000))
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def hold() -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    """Neither the folder nor what was written into it."""
    with scratch_folder() as folder:
        (folder / "weights").write_bytes(b"0")
        assert tmp_path in folder.parents
    assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_what_a_killed_process_left_is_taken_away() -> None:
    """By whoever makes the next folder; one that a living process holds stays."""
    killed, left = hold()
    living, held = hold()
    try:
        end(killed)
        assert (left / "weights").exists()
        with scratch_folder():
            assert not left.parent.exists()
            assert (held / "weights").exists()
    finally:
        end(living)
