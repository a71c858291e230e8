"""Dropping a file from memory, and knowing whether it is gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.pagecache import evict, resident_share

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(1 << 20))
    return path


def test_a_file_just_written_is_in_memory_and_then_not(file: Path) -> None:
    """All of it before, none of it after; a reader brings it back."""
    with file.open("rb") as opened:
        assert resident_share(opened.fileno()) == 1.0
        assert evict(file) == ""
        assert resident_share(opened.fileno()) == 0.0
        opened.read()
        assert resident_share(opened.fileno()) == 1.0


def test_a_file_that_can_not_be_opened_is_a_reason(tmp_path: Path) -> None:
    """The load that follows is then called what it is: not cold."""
    assert "can't be opened" in evict(tmp_path / "missing")


def test_an_empty_file_has_nothing_in_memory(tmp_path: Path) -> None:
    """Nothing to drop is no error."""
    (tmp_path / "empty").touch()
    assert evict(tmp_path / "empty") == ""
