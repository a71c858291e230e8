"""Texts whose ids begin with given ones, by a tokenizer of Hugging Face's in the engine's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from edgebench.runners.litert_texts import Texts

if TYPE_CHECKING:
    from collections.abc import Sequence


class Engine:
    """A byte-level tokenizer that joins two line breaks at the end of a text, as GPT-2's does."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        self._tokenizer: Any = Tokenizer(models.BPE())
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=300,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self._tokenizer.train_from_iterator(["one line\n\n", "and another\n\n"] * 3, trainer)

    def tokenize(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def test_a_text_that_ends_between_line_breaks_and_a_word_goes_on(engine: Engine) -> None:
    """No text has these ids alone, since two line breaks at its end are one token."""
    whole = engine.tokenize("one line\n\nand")
    ids = whole[: whole.index(engine.tokenize("and")[0])]
    assert ids[-1] == ids[-2] == engine.tokenize("\n")[0]
    texts = Texts(engine, None, "")
    assert texts.find(ids) is None
    found = texts.beginning(ids, 1)
    assert found is not None
    text, more = found
    assert text.startswith("one line\n\n")
    made = engine.tokenize(text)
    assert (made[: len(ids)], len(made) - len(ids)) == (ids, more)
    assert more == 1


def test_there_is_none_without_room_or_of_no_texts_ids(engine: Engine) -> None:
    """Tokens behind the ids take places of the context; and letters of a word are no word."""
    texts = Texts(engine, None, "")
    whole = engine.tokenize("one line\n\nand")
    ids = whole[: whole.index(engine.tokenize("and")[0])]
    assert texts.beginning(ids, 0) is None
    letters = [engine.tokenize(letter)[0] for letter in "line"]
    assert engine.tokenize("line") != letters
    assert texts.beginning(letters, 5) is None
