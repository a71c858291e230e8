"""Texts to tokens with their places: by hand, and against transformers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import TEXT, byte_level_tokenizer

from edgebench.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def made(*tokens: str, added: dict[str, bool] | None = None, **parts: Any) -> Tokenizer:
    """A BPE of `tokens`, each made of its characters, and of added ones, special or not."""
    vocabulary = {text: number for number, text in enumerate(tokens)}
    merges = [
        [text[:middle], text[middle:]]
        for text in tokens
        for middle in range(1, len(text))
        if text[:middle] in vocabulary and text[middle:] in vocabulary
    ]
    special = [
        {"id": len(tokens) + number, "content": text, "special": special, "single_word": False,
         "lstrip": False, "rstrip": False, "normalized": False}
        for number, (text, special) in enumerate((added or {}).items())
    ]  # fmt: skip
    content = {
        "version": "1.0", "added_tokens": special, "normalizer": None, "pre_tokenizer": None,
        "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }  # fmt: skip
    return Tokenizer(json.dumps(content | parts), start_id=0, start_token_id=0)


def test_tokens_end_at_bytes_of_the_text() -> None:
    """Of "añb漢": a has 1 byte, ñ 2, b漢 1 + 3; and no start token is put before it."""
    tokenizer = made("a", "ñ", "b", "漢", "b漢")
    encoded = tokenizer.encode_text("añb漢")
    assert (encoded.ids, encoded.ends) == ((0, 1, 4), (1, 3, 7))
    assert tokenizer.encode("añb漢") == [0, 0, 1, 4]


def test_the_bytes_of_a_split_character_are_shared_out() -> None:
    """The bytes of é are Ã and ©, of 漢 æ, ¼ and ¢ in byte-level letters."""
    tokenizer = made("a", "Ã", "©", "æ", "¼", "¢", "aÃ", "©æ", pre_tokenizer=BYTES)
    encoded = tokenizer.encode_text("aé漢a")
    # a and the first byte of é; its second and the first of 漢; ¼; ¢; a.
    assert encoded.ids == (6, 7, 4, 5, 0)
    # What begins within é has the rest of it; of 漢's 3 bytes, ¼ has 1 and ¢ has 2.
    assert encoded.ends == (1, 3, 4, 6, 7)


def test_texts_of_special_tokens_are_text() -> None:
    """But tokens that users added are found; and parsing them elsewhere is as before."""
    tokenizer = made("a", "<", "s", ">", "t", added={"<s>": True, "<t>": False})
    before = tokenizer.encode("a<s><t>")
    assert before == [0, 0, 5, 6]
    encoded = tokenizer.encode_text("a<s><t>")
    assert (encoded.ids, encoded.ends) == ((0, 1, 2, 3, 6), (1, 2, 3, 4, 7))
    assert tokenizer.encode("a<s><t>") == before


def test_what_is_normalised_counts_as_it_stands_in_the_text() -> None:
    """e and an accent, 1 + 2 bytes, are one token of NFC; a blank and what stands before it too."""
    encoded = made("é", "a", normalizer={"type": "NFC"}).encode_text("ae\u0301a")
    assert (encoded.ids, encoded.ends) == ((1, 0, 1), (1, 4, 5))
    assert made("é", "a", normalizer={"type": "NFC"}).encode_text("ae\u0301").ends == (1, 4)
    blanks = {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    }
    encoded = made("▁", "a", "b", "▁b", normalizer=blanks).encode_text("a b")
    assert (encoded.ids, encoded.ends) == ((0, 1, 3), (0, 1, 3))


def test_bytes_for_characters_that_are_no_tokens() -> None:
    """SentencePiece's: each byte a token, and each of them counts one byte."""
    model = {
        "type": "BPE", "byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>", "merges": [],
        "vocab": {"<unk>": 0, "a": 1, "<0xC3>": 2, "<0xA9>": 3, "<0xBC>": 4},
    }  # fmt: skip
    encoded = made(model=model).encode_text("aéüa")
    assert encoded.ids == (1, 2, 3, 2, 4, 1)
    assert encoded.ends == (1, 2, 3, 4, 5, 6)


def test_a_character_without_any_token_counts_with_one_beside_it() -> None:
    """A tokenizer that leaves characters out has tokens for all bytes, where it has any."""
    tokenizer = made("a", "b")
    encoded = tokenizer.encode_text("aéb")
    assert encoded.ids == (0, 1)
    assert encoded.ends in {(1, 4), (3, 4)}
    assert tokenizer.encode_text("éa").ends == tokenizer.encode_text("aé").ends == (3,)
    assert tokenizer.encode_text("") == tokenizer.encode_text("é")


def test_neither_cutting_off_nor_trimming_matters() -> None:
    """A file may say that texts are cut off, filled up, or that blanks are no part of places."""
    parts = {
        "truncation": {
            "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0,
        },
        "padding": {
            "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "a",
        },
        "pre_tokenizer": BYTES,
        "post_processor": BYTES,
    }  # fmt: skip
    encoded = made("a", "Ġ", "aĠ", "ĠĠ", **parts).encode_text("a a  ")
    assert (encoded.ids, encoded.ends) == ((2, 2, 1), (2, 4, 5))


@pytest.mark.transformers
def test_ids_and_places_are_transformers(tmp_path: Path) -> None:
    """A trained byte-level BPE, on its own text and on one that it can't know."""
    import transformers

    (tmp_path / "tokenizer.json").write_text(byte_level_tokenizer(), encoding="utf-8")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    ours = Tokenizer(byte_level_tokenizer())
    for text in (TEXT, "times 漢字 🙂 e\u0301 \t\n  x" * 3):
        told = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
        found = ours.encode_text(text)
        assert list(found.ids) == told.input_ids
        assert found.ends[-1] == len(text.encode())
        assert list(found.ends) == sorted(found.ends)
        for place, (first, last) in enumerate(told.offset_mapping):
            # A character of several tokens has the same place in each of them.
            following = told.offset_mapping[place + 1][0] if place + 1 < len(found.ids) else last
            if following > first:
                assert found.ends[place] == len(text[: min(last, following)].encode())
