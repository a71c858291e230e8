"""The pictures that the README shows can be taken of any report."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from report_pictures import PICTURES, WIDTH, take

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser


def test_the_pictures_of_the_readme_are_taken(browser, report, tmp_path: Path) -> None:
    """Each is as wide as the page or its text, and shows something."""
    paths = take(browser, report, tmp_path)
    assert [each.name for each in paths] == list(PICTURES)
    for path in paths:
        content = path.read_bytes()
        width, height = struct.unpack(">II", content[16:24])
        assert WIDTH // 2 < width <= WIDTH
        assert height > 600
        # A blank picture of this size is compressed to a few kB.
        assert len(content) > 30_000
