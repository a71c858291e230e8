"""Tokenizers rebuilt from metadata: what is due, what ends a text, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.gguf_header import Header
from edgebench.models.gguf_tokenizer import read_tokenizer
from edgebench.models.pre_tokenizers import PRE_TOKENIZERS, pre_tokenizer_name
from edgebench.models.spm import derived_merges

BYTE_LEVEL: dict[str, Any] = {
    "model": "gpt2",
    "pre": "gpt-2",
    "tokens": ["a", "b", "ab", "<s>", "<|im_end|>", "<|eot_id|>", "tool"],
    "token_type": [1, 1, 1, 3, 3, 1, 4],
    "merges": ["a b"],
    "bos_token_id": 3,
    "eos_token_id": 4,
}
SENTENCEPIECE: dict[str, Any] = {
    "model": "llama",
    "tokens": ["<unk>", "<s>", "</s>", "<0x41>", "▁", "a", "▁a"],
    "token_type": [2, 3, 3, 6, 1, 1, 1],
    "scores": [0.0, 0.0, 0.0, 0.0, -2.0, -1.0, -3.0],
}


def read(base: dict[str, Any], **changes: Any) -> Any:
    keys = {key: value for key, value in (base | changes).items() if value is not None}
    metadata: dict[str, Any] = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    metadata["tokenizer.chat_template"] = "T"
    return read_tokenizer(Header(Path("m.gguf"), metadata, {}, 0), 7)


def test_end_tokens_are_the_files_and_the_known_ones() -> None:
    """eos, eot and eom of the metadata come first, then tokens that always end a turn."""
    assert read(BYTE_LEVEL).end_ids == (4, 5)
    assert read(BYTE_LEVEL, eos_token_id=0, eom_token_id=6, eot_token_id=2).end_ids == (
        0,
        2,
        6,
        4,
        5,
    )
    assert read(BYTE_LEVEL, eos_token_id=99).end_ids == (4, 5)  # no token: as if absent
    assert read(SENTENCEPIECE).end_ids == (2,)


@pytest.mark.parametrize(
    ("base", "changes", "start"),
    [
        (BYTE_LEVEL, {}, None),
        (BYTE_LEVEL, {"add_bos_token": True}, 3),
        (BYTE_LEVEL, {"pre": "llama-bpe"}, 3),
        (BYTE_LEVEL, {"pre": "llama-bpe", "add_bos_token": False}, None),
        (SENTENCEPIECE, {}, 1),
        (SENTENCEPIECE, {"add_bos_token": False}, None),
        (SENTENCEPIECE, {"bos_token_id": 2}, 2),
    ],
)
def test_a_start_token_is_due_where_llama_cpp_adds_one(
    base: dict[str, Any], changes: dict[str, Any], start: int | None
) -> None:
    """The file's flag decides, and where it has none, the kind of tokenizer."""
    tokenizer = read(base, **changes)

    assert tokenizer.start_id == start
    assert tokenizer.encode("a")[:-1] == ([] if start is None else [start])
    assert tokenizer.chat_template == "T"


def test_a_token_that_always_ends_a_turn_is_special_whatever_its_type() -> None:
    """A file that marks it as normal is a known fault of converters."""
    assert read(BYTE_LEVEL).encode("ab<|eot_id|>") == [2, 5]


def test_a_rebuilt_tokenizer_adds_its_start_token_to_others_too() -> None:
    """The tokenizer.json itself puts the start token first, for tools that ask it to."""
    from tokenizers import Tokenizer

    engine = Tokenizer.from_str(read(SENTENCEPIECE).json)

    assert engine.encode("a").ids == [1, 6]


@pytest.mark.parametrize(
    ("base", "changes", "named"),
    [
        (BYTE_LEVEL, {"model": "bert"}, '"bert" is not understood'),
        (BYTE_LEVEL, {"pre": "jais-2"}, '"jais-2" is not understood'),
        (BYTE_LEVEL, {"add_eos_token": True}, "add_eos_token"),
    ],
)
def test_other_tokenizers_are_refused_by_name(
    base: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    """A tokenizer that would be rebuilt wrongly is not rebuilt."""
    with pytest.raises(UnsupportedModelError, match=named):
        read(base, **changes)


@pytest.mark.parametrize(
    ("base", "changes", "said"),
    [
        (BYTE_LEVEL, {"tokens": None}, "tokens is missing"),
        (BYTE_LEVEL, {"merges": None}, "merges is missing"),
        (BYTE_LEVEL, {"merges": ["ab"]}, '"ab" has no two parts'),
        (BYTE_LEVEL, {"tokens": ["a"] * 7}, '"a" stands twice'),
        (BYTE_LEVEL, {"tokens": [str(n) for n in range(8)]}, "8 tokens, but the weights have 7"),
        (BYTE_LEVEL, {"token_type": [1]}, "no list of 7 types"),
        (BYTE_LEVEL, {"add_bos_token": True, "bos_token_id": None}, "there is no bos_token_id"),
        (SENTENCEPIECE, {"scores": [0.0]}, "not as many scores as tokens"),
    ],
)
def test_damaged_metadata_are_told(
    base: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    """What is missing or does not fit is named."""
    with pytest.raises(ModelFormatError, match=said):
        read(base, **changes)


def test_merges_follow_scores_and_leave_special_tokens_out() -> None:
    """Every way to make a token of two others is a merge; the best token's come first."""
    texts = ["a", "b", "ab", "ba", "aba", "<s>"]
    scores = [0.0, 0.0, -2.0, -1.0, -3.0, 0.0]

    merges = derived_merges(texts, scores, [True] * 5 + [False])

    assert merges == [("b", "a"), ("a", "b"), ("a", "ba"), ("ab", "a")]
    assert derived_merges(["<", "s>", "<s>"], [0.0] * 3, [True, True, False]) == []


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_a_way_of_cutting_up_has_the_name_of_one_that_does_the_same(name: str) -> None:
    """The name found for a rebuilt tokenizer.json stands for the same steps."""
    content = json.loads(read(BYTE_LEVEL, pre=name).json)

    found = pre_tokenizer_name(content)

    assert found is not None
    same, other = PRE_TOKENIZERS[name], PRE_TOKENIZERS[found]
    assert (same.steps, same.byte_regex) == (other.steps, other.byte_regex)
    assert (same.ignore_merges, same.normal_form) == (other.ignore_merges, other.normal_form)


# As published with Qwen2 and with SmolLM2.
QWEN2_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.mark.parametrize(
    ("steps", "normalizer", "name"),
    [
        (
            [
                {"type": "Split", "pattern": {"Regex": QWEN2_REGEX}, "behavior": "Isolated",
                 "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                 "use_regex": False},
            ],
            {"type": "NFC"},
            "qwen2",
        ),
        (
            [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                 "use_regex": True},
            ],
            None,
            "smollm",
        ),
        ([{"type": "Whitespace"}], None, None),
    ],
)  # fmt: skip
def test_published_tokenizers_have_their_names(
    steps: list[Any], normalizer: Any, name: str | None
) -> None:
    """The steps of Qwen2's and SmolLM2's tokenizer.json are those that llama.cpp's names mean."""
    pre: Any = {"type": "Sequence", "pretokenizers": steps}
    content = {"normalizer": normalizer, "pre_tokenizer": pre, "model": {"type": "BPE"}}

    found = pre_tokenizer_name(content)

    assert (found and PRE_TOKENIZERS[found]) == (name and PRE_TOKENIZERS[name])
