"""Windows: every token scored once, none twice, none lost, each with enough before it."""

from __future__ import annotations

from itertools import product

import pytest

from edgebench.harness.quality.windows import chunks, sliding

SIZES = [
    (window, stride, score_from)
    for window in range(2, 9)
    for score_from in range(window)
    for stride in range(1, window - max(score_from, 1) + 1)
]


@pytest.mark.parametrize(("window", "stride", "score_from"), SIZES)
def test_sliding_windows_score_every_token_once(window, stride, score_from):
    for count, starts, most in product(range(26), (False, True), (1, 2, 5, 1000)):
        spans = sliding(
            count,
            window=window,
            stride=stride,
            score_from=score_from,
            starts=starts,
            most=most,
        )
        scored = [token for span in spans for token in range(span.first, span.end)]
        # Nothing stands before position 0, so it can't be scored; the start token is position 0.
        leading = max(score_from, 1) - starts
        expected = list(range(leading, count))[:most]
        assert scored == expected
        for span in spans:
            assert 0 <= span.start <= span.first < span.end <= count
            assert span.end - span.start + starts <= window
            assert span.first - span.start + starts >= max(score_from, 1)
            assert span.scored == span.end - span.first
        assert [span.start for span in spans] == [stride * place for place in range(len(spans))]


def test_windows_of_the_default_protocol():
    spans = sliding(1100, window=512, stride=256, score_from=256, starts=False, most=4096)
    assert [(span.start, span.first, span.end) for span in spans] == [
        (0, 256, 512),
        (256, 512, 768),
        (512, 768, 1024),
        (768, 1024, 1100),
    ]
    with_start = sliding(1100, window=512, stride=256, score_from=256, starts=True, most=600)
    assert [(span.start, span.first, span.end) for span in with_start] == [
        (0, 255, 511),
        (256, 511, 767),
        (512, 767, 855),
    ]


@pytest.mark.parametrize(
    ("window", "stride", "score_from"), [(8, 5, 4), (8, 8, 0), (8, 0, 4), (8, 1, 8)]
)
def test_windows_that_lose_tokens_are_refused(window, stride, score_from):
    with pytest.raises(ValueError, match=f"windows of {window}"):
        sliding(50, window=window, stride=stride, score_from=score_from, starts=False, most=50)


def as_the_native_tool_does(stream, window, *, adds_start):
    """llama-perplexity's loop, from its description: chunks of the token stream, start included."""
    start = stream[0]
    for number in range(len(stream) // window):
        chunk = stream[number * window : (number + 1) * window]
        if adds_start:
            chunk = [start, *chunk[1:]]
        # Logits of the positions from half a window on, but for the last, rate the next tokens.
        yield chunk, list(range(window // 2 + 1, window))


@pytest.mark.parametrize("adds_start", [False, True])
@pytest.mark.parametrize("window", [4, 5, 6, 7, 8, 16])
def test_chunks_are_those_of_llama_perplexity(window, adds_start):
    for count in range(1, 60):
        text = [100 + number for number in range(count)]
        stream = ([1] if adds_start else []) + text
        expected = list(as_the_native_tool_does(stream, window, adds_start=adds_start))
        spans = chunks(count, window=window, starts=adds_start, most=10_000)
        made = [
            (
                ([1] if adds_start else []) + text[span.start : span.end],
                [token - span.start + adds_start for token in range(span.first, span.end)],
            )
            for span in spans
        ]
        assert made == expected


def test_chunks_are_whole_or_not_at_all():
    assert len(chunks(10_000, window=512, starts=False, most=1000)) == 3  # of 255 tokens each
    assert chunks(10_000, window=512, starts=False, most=254) == []
    assert chunks(511, window=512, starts=False, most=1000) == []
    assert len(chunks(511, window=512, starts=True, most=1000)) == 1
