"""Output cut into pieces, and what of it is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.devices.pieces import Pieces


@given(st.lists(st.text("<a/>\n", max_size=9)), st.sampled_from([b"\n", b"</a>"]))
def test_pieces_come_whole_however_they_arrive(texts: list[str], end: bytes) -> None:
    """What goes in comes out, cut where a piece ends and nowhere else."""
    pieces = Pieces(end, 10_000)
    found = [each for text in texts for each in pieces.feed(text.encode())]

    *whole, rest = "".join(texts).encode().split(end)
    assert found == whole
    assert pieces.loose_bytes == len(rest)


@pytest.mark.parametrize("end", [b"\n", b"</plist>"])
@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_what_is_too_long_is_left_out_to_its_end(end: bytes, at_once: int) -> None:
    """Neither the begin of it nor its end is a piece, and what follows is one."""
    data = b"one" + end + b"x" * 50 + end + b"two" + end
    pieces = Pieces(end, 10)
    parts = [data[at : at + at_once] for at in range(0, len(data), at_once)]

    assert [each for part in parts for each in pieces.feed(part)] == [b"one", b"two"]
