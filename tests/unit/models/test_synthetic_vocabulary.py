"""The tokenizers of synthetic weights: any text to tokens and back, as many tokens as the model."""

from __future__ import annotations

import unicodedata
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgebench.models.gguf_file import open_gguf
from edgebench.models.shapes import SHAPES, ModelShape
from edgebench.models.synthetic import write_synthetic
from edgebench.models.synthetic_pieces import merges
from edgebench.models.synthetic_vocabulary import synthetic_vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.tokenizer import Tokenizer

TEXT = "the cat sat on the mat and the other cat sat on that mat " * 3
PROSE = files("edgebench.harness.texts").joinpath("prose.txt").read_text(encoding="utf-8")


def tokenizer(folder: Path, kind: str, text: str, size: int = 9000) -> Tokenizer:
    shape = ModelShape(
        "tiny", "Tiny", "llama", kind, 1, 32, 32, 2, 2, 16, size, 128, 1e-5, 10_000.0  # type: ignore[arg-type]
    )  # fmt: skip
    path = folder / f"{kind}.gguf"
    write_synthetic(shape, "Q4_0", path, text=text)
    return open_gguf(path).tokenizer


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {kind: tokenizer(folder, kind, PROSE) for kind in ("spm", "bpe")}


def test_merges_are_the_most_frequent_pairs() -> None:
    """By hand: in "ab ab ac" a is followed by b twice; blanks begin words."""
    assert merges(" ab ab ac", 3) == [(" ", "a"), (" a", "b"), (" a", "c")]


@pytest.mark.parametrize("count", [1, 50, 5000, 60_000])
def test_there_are_as_many_merges_as_asked(count: int) -> None:
    """All make different pieces, of parts that are single signs or were made before."""
    made: set[str] = set()
    for left, right in merges(TEXT, count):
        assert all(len(part) == 1 or part in made for part in (left, right))
        made.add(left + right)
    assert len(made) == count


@pytest.mark.parametrize("key", SHAPES)
def test_a_vocabulary_is_as_large_as_the_model_s(key: str) -> None:
    """Every id has a text, none the same as another's, and special tokens are where they belong."""
    vocabulary = synthetic_vocabulary(SHAPES[key], TEXT)
    assert len(set(vocabulary.texts)) == len(vocabulary.kinds) == SHAPES[key].vocabulary
    named = {"llama2-7b": (1, "<s>"), "qwen2.5-0.5b": (151643, "<|endoftext|>"),
             "llama3.2-1b": (128009, "<|eot_id|>"), "gemma2-2b": (2, "<bos>")}  # fmt: skip
    if key in named:
        number, text = named[key]
        assert vocabulary.texts[number] == text


def test_too_few_tokens_are_refused() -> None:
    """Bytes and special tokens alone need more."""
    small = ModelShape(
        "small", "Small", "llama", "spm", 1, 32, 32, 2, 2, 16, 100, 128, 1e-5, 10_000.0
    )  # fmt: skip
    with pytest.raises(ValueError, match="a vocabulary of 100 tokens is too small"):
        synthetic_vocabulary(small, TEXT)


@pytest.mark.parametrize("kind", ["spm", "bpe"])
def test_english_has_about_four_characters_a_token(both: dict[str, Tokenizer], kind: str) -> None:
    """As published tokenizers have it, on text that was not learned from as well."""
    other = "Two roads lead to the village; the shorter one is flooded every spring. " * 5
    assert 3.5 < len(PROSE) / len(both[kind].encode(PROSE)) < 5
    assert 2 < len(other) / len(both[kind].encode(other)) < 5


@pytest.mark.parametrize("kind", ["spm", "bpe"])
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"])))
def test_any_text_comes_back(both: dict[str, Tokenizer], kind: str, text: str) -> None:
    """All of Unicode, by bytes where there is no token; SentencePiece's blank mark aside."""
    text = unicodedata.normalize("NFC", text)
    used = both[kind].encode_text(text).ids
    assert both[kind].decode(used) == text
