"""A text made into windows of ids, and how many of them there is time for."""

from __future__ import annotations

import hashlib

import pytest

from edgebench.harness.errors import ModelError
from edgebench.harness.quality.plan import (
    TokenizedText,
    affordable,
    quality_task,
    text_range,
    tokens_needed,
)
from edgebench.harness.quality.texts import QualityText
from edgebench.harness.quality.tokens import CUT_TOKENS, TextWorkload, make_tasks
from edgebench.harness.scenario.model import Quality, Workload

TEXT = "abcdefghij" * 4


def tokens(text: str, *, start: int | None = None, any_start: int | None = 1) -> TokenizedText:
    """A token a character."""
    return TokenizedText(
        ids=[10 + ord(letter) for letter in text],
        ends=list(range(1, len(text) + 1)),
        due_start=start,
        any_start=any_start,
        vocabulary_size=300,
        tokenizer="a test",
    )


def task(text: str = TEXT, *, start: int | None = None, any_start: int | None = 1, **keys: object):
    quality = Quality(text="path:a", **{"window": 8, **keys})
    made = QualityText("path:a", text, hashlib.sha256(text.encode()).hexdigest(), "a")
    return quality_task("rated", quality, made, tokens(text, start=start, any_start=any_start))


def test_windows_hold_the_tokens_of_the_text() -> None:
    """Half a window stands before what the first one scores."""
    made = task(max_tokens=9)
    assert [window.ids for window in made.windows] == [
        tuple(10 + ord(letter) for letter in part) for part in ("abcdefgh", "efghijab", "ijabc")
    ]
    assert [window.start for window in made.windows] == [4, 4, 4]
    assert made.scored_bytes == (4, 4, 1)
    record = made.recorded(2)
    assert (record.windows, record.windows_planned) == (2, 3)
    assert (record.scored_tokens, record.scored_bytes) == (8, 8)
    assert text_range(made, 2) == "window 3 of 3, scored tokens 9 to 9"


@pytest.mark.parametrize(
    ("bos", "due", "before"), [("model", 7, 7), ("model", None, None), ("never", 7, None)]
)
def test_a_start_token_stands_where_the_rule_says(
    bos: str, due: int | None, before: object
) -> None:
    """It counts as the first position."""
    made = task(bos=bos, start=due)
    first = made.windows[0]
    assert made.record.bos_id == before
    assert (first.ids[0] == 7) == (before == 7)
    assert (len(first.ids), first.start) == (8, 4)


def test_a_start_token_that_is_not_there_can_not_be_asked_for() -> None:
    """Whatever the tokenizer does by itself."""
    assert task(bos="always", any_start=1).record.bos_id == 1
    with pytest.raises(ModelError, match="has none"):
        task(bos="always", any_start=None)


@pytest.mark.parametrize(
    ("text", "keys", "says"),
    [
        ("abcd", {}, "has 4 tokens for this model; more than 4 are needed"),
        ("a", {"score_from": 0}, "has 1 token for this model; more than 1 are needed"),
        ("abcdefg", {"protocol": "llama-perplexity"}, "one window takes 8"),
    ],
)
def test_too_short_a_text_says_what_is_needed(text: str, keys: dict, says: str) -> None:
    """A text that gives nothing to score is no row of zeros."""
    with pytest.raises(ModelError, match=says):
        task(text, **keys)


def test_the_key_is_that_of_the_tokens_that_windows_hold() -> None:
    """A text of which only the beginning is rated has the same key, however it goes on."""
    short, long = task(max_tokens=9), task(TEXT + "and more", max_tokens=9)
    assert short.record.ids_sha256 == long.record.ids_sha256
    held = ",".join(str(10 + ord(letter)) for letter in TEXT[:13])
    assert short.record.ids_sha256 == hashlib.sha256(held.encode()).hexdigest()


def test_of_a_long_text_only_the_beginning_is_tokenized() -> None:
    """As much as windows may hold, and some more, since tokens at a cut may be others."""
    asked: list[int] = []

    def tokenize(text: str) -> TokenizedText:
        asked.append(len(text))
        return tokens(text)

    quality = Quality(text="path:a", window=8, max_tokens=9)
    workload = Workload(name="rated", quality=quality)
    for size in (200_000, 2_000):
        long = QualityText("path:a", "x" * size, "0" * 64, "a")
        made = make_tasks([TextWorkload(workload, long)], tokenize)
        assert made.tasks[0].scored_tokens(3) == 9
    assert tokens_needed(quality) == 4 + 9 + 8
    assert asked == [8 * (4 + 9 + 8 + CUT_TOKENS), 2_000]


@pytest.mark.parametrize(
    ("left", "count"), [(100.0, 16), (34.9, 8), (5.0, 1), (-50.0, 1), (16.0, 4), (15.9, 3)]
)
def test_as_many_windows_as_there_is_time_for(left: float, count: int) -> None:
    """Two load once more in 3 and 1 s; a window takes them 2.5 and 0.5 s, and the reference 1 s."""
    assert affordable(16, left, [3.0, 1.0], [2.5, 0.5, 1.0]) == count
