"""Tokenizers of models whose architecture nobody here understands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tiny_models import byte_level_tokenizer
from tokenizers import Tokenizer

from edgebench.harness.tokenization import own_tokenizer, text_tokenizer
from edgebench.models.errors import ModelFormatError, UnsupportedModelError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "It was the best of times, <|end|> naïve"


def write_gguf(path: Path, architecture: str, kind: str | None = "gpt2") -> Path:
    """The header of a model with a tokenizer and no weights."""
    import gguf

    model = json.loads(byte_level_tokenizer())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(1)
    if kind:
        writer.add_tokenizer_model(kind)
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([3 if text.startswith("<|") else 1 for text in tokens])
        writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_of_an_unknown_architecture_has_its_tokenizer(tmp_path: Path) -> None:
    """Ids are those of the tokenizer that it was made of, and its tokens are the vocabulary."""
    engine = Tokenizer.from_str(byte_level_tokenizer())
    size, tokenizer = text_tokenizer(write_gguf(tmp_path / "new.gguf", "gemma9"))
    assert size == engine.get_vocab_size()
    assert tokenizer.encode(TEXT) == engine.encode(TEXT).ids
    encoded = tokenizer.encode_text(TEXT)
    assert encoded.ends[-1] == len(TEXT.encode())
    assert engine.token_to_id("<|end|>") not in encoded.ids
    assert (tokenizer.start_id, tokenizer.start_token_id) == (None, 0)
    facts, prompts = own_tokenizer(tmp_path / "new.gguf")
    assert facts.vocabulary_size == size
    assert prompts.tokenize(TEXT) == engine.encode(TEXT).ids


def test_a_folder_of_an_unknown_architecture_has_its_tokenizer(tmp_path: Path) -> None:
    """The vocabulary's size is config.json's, in a section of its own or not."""
    (tmp_path / "tokenizer.json").write_text(byte_level_tokenizer(), encoding="utf-8")
    for config in (
        {"model_type": "gemma9", "vocab_size": 400},
        {"model_type": "gemma9", "text_config": {"vocab_size": 400}},
    ):
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        size, tokenizer = text_tokenizer(tmp_path)
        assert size == 400
        assert tokenizer.encode(TEXT) == Tokenizer.from_str(byte_level_tokenizer()).encode(TEXT).ids


def test_without_a_tokenizer_the_architecture_is_named(tmp_path: Path) -> None:
    """And where there is one of a kind that is not understood, that is."""
    with pytest.raises(UnsupportedModelError, match="gemma9"):
        text_tokenizer(write_gguf(tmp_path / "none.gguf", "gemma9", kind=None))
    with pytest.raises(UnsupportedModelError, match='the tokenizer "wordpiece9"'):
        text_tokenizer(write_gguf(tmp_path / "odd.gguf", "gemma9", kind="wordpiece9"))
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "gemma9"}', encoding="utf-8")
    with pytest.raises(UnsupportedModelError, match="gemma9"):
        text_tokenizer(tmp_path / "model")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ModelFormatError, match="neither a GGUF file nor a folder"):
        text_tokenizer(tmp_path / "text.gguf")
