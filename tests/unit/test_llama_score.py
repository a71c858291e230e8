"""How a window is cut into decodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgebench.runners.llama_score import parts


def test_a_window_that_fits_is_one_decode() -> None:
    """With its last token, of which nothing is asked."""
    assert list(parts(512, 257, batch_size=2048, rows=341)) == [(0, 512)]


def test_tokens_before_the_first_scored_one_need_no_room_for_logits() -> None:
    """Of 600 tokens, 300 have none: with room for 100 rows the first part takes 400."""
    found = list(parts(600, 301, batch_size=2048, rows=100))
    assert found == [(0, 400), (400, 500), (500, 600)]


def test_a_batch_bounds_all_tokens() -> None:
    """Also those without logits; the last token alone gets no decode."""
    assert list(parts(129, 100, batch_size=64, rows=100)) == [(0, 64), (64, 128)]


@given(
    count=st.integers(2, 300), start=st.integers(1, 299), batch=st.integers(1, 100),
    rows=st.integers(0, 100),
)  # fmt: skip
def test_every_token_before_the_last_is_decoded_once(
    count: int, start: int, batch: int, rows: int
) -> None:
    """In order, within both bounds, whatever they are."""
    start = min(start, count - 1)
    found = list(parts(count, start, batch, rows))
    places = [place for first, last in found for place in range(first, last)]
    assert places[: count - 1] == list(range(count - 1))
    assert len(places) <= count
    for first, last in found:
        assert last - first <= batch
        assert sum(start - 1 <= place < count - 1 for place in range(first, last)) <= max(rows, 1)
