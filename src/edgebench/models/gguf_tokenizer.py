"""The tokenizer of a GGUF file, rebuilt as a ``tokenizer.json``.

A GGUF file holds the vocabulary and, for byte-level BPE, the merges; what happens to a text
before that is known by a name only. SentencePiece's BPE (Llama 2) has scores and no merges.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields, shown
from edgebench.models.pre_tokenizers import PRE_TOKENIZERS, pre_tokenizer_name
from edgebench.models.spm import spm_parts
from edgebench.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.gguf_header import Header
    from edgebench.models.pre_tokenizers import Json

__all__ = ["pre_tokenizer_name", "read_tokenizer"]

# llama.cpp's types of tokens.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

END_TEXTS = frozenset(
    (
        "</s>",
        "<eos>",
        "<end_of_turn>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|end|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|im_end|>",
        "<｜end▁of▁sentence｜>",
    )
)
"""Tokens that end a text or a turn wherever they occur, whether the metadata say so or not."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id, and what each is.

    Attributes:
        kinds: llama.cpp's type of each.
    """

    texts: Sequence[str]
    kinds: Sequence[int]

    def ids(self) -> dict[str, int]:
        """Ids by token."""
        return {text: number for number, text in enumerate(self.texts)}

    def added(self) -> list[Json]:
        """Entries of a ``tokenizer.json`` for tokens that are found before all else."""
        entries: list[Json] = []
        for number, (text, kind) in enumerate(zip(self.texts, self.kinds, strict=True)):
            special = kind in {CONTROL, UNKNOWN} or (text in END_TEXTS and kind != USER_DEFINED)
            if special or kind == USER_DEFINED:
                entries.append(
                    {
                        "id": number,
                        "content": text,
                        "single_word": False,
                        "lstrip": False,
                        "rstrip": False,
                        "normalized": False,
                        "special": special,
                    }
                )
        return entries


def read_tokenizer(header: Header, vocabulary_size: int) -> Tokenizer:
    """Rebuild a file's tokenizer.

    Args:
        header: of the file.
        vocabulary_size: how many tokens the model has.

    Raises:
        ModelFormatError: the tokenizer's metadata are missing or damaged.
        UnsupportedModelError: a kind of tokenizer that is not understood, which is named.
    """
    prefix = "tokenizer.ggml."
    fields = Fields(
        f"{header.path}, tokenizer.ggml",
        {
            key.removeprefix(prefix): value
            for key, value in header.metadata.items()
            if key.startswith(prefix)
        },
    )
    vocabulary = _vocabulary(fields, vocabulary_size)
    kind = fields.text("model")
    if kind == "gpt2":
        parts, adds_start, default_start = _byte_level(fields, vocabulary)
    elif kind == "llama":
        parts = spm_parts(
            vocabulary.texts,
            _scores(fields, vocabulary),
            [token in (NORMAL, USER_DEFINED) for token in vocabulary.kinds],
            space_prefix=fields.flag("add_space_prefix", default=True),
        )
        adds_start, default_start = True, 1
    else:
        msg = (
            f"{fields.where}: the tokenizer {shown(kind)} is not understood; understood are gpt2 "
            "(byte-level BPE) and llama (SentencePiece's BPE)"
        )
        raise UnsupportedModelError(msg)
    return _tokenizer(header, fields, vocabulary, parts, (adds_start, default_start))


def _tokenizer(
    header: Header,
    fields: Fields,
    vocabulary: Vocabulary,
    parts: dict[str, Json],
    start: tuple[bool, int | None],
) -> Tokenizer:
    """The parts that depend on the kind of tokenizer, with all that does not."""
    if fields.flag("add_eos_token", default=False):
        msg = (
            f"{fields.where}: add_eos_token puts an end token after every prompt, so that the "
            "model is asked to go on after the end; that is not understood"
        )
        raise UnsupportedModelError(msg)
    adds_start, default_start = start
    count = len(vocabulary.texts)
    start_token = _token(fields, "bos_token_id", count, default_start)
    end_token = _token(fields, "eos_token_id", count, 2 if default_start == 1 else None)
    adds_start = fields.flag("add_bos_token", default=adds_start)
    if adds_start and start_token is None:
        msg = f"{fields.where}: add_bos_token is true, but there is no bos_token_id; damaged"
        raise ModelFormatError(msg)
    ends = [end_token, *(_token(fields, key, count) for key in ("eot_token_id", "eom_token_id"))]
    ends += [number for number, text in enumerate(vocabulary.texts) if text in END_TEXTS]
    start_id = start_token if adds_start else None
    template = header.metadata.get("tokenizer.chat_template")
    content: dict[str, Json] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": vocabulary.added(),
        **parts,
        "post_processor": None
        if start_id is None
        else _start_token(vocabulary.texts[start_id], start_id),
    }
    return Tokenizer(
        json=json.dumps(content, ensure_ascii=False),
        start_id=start_id,
        end_ids=tuple(dict.fromkeys(number for number in ends if number is not None)),
        chat_template=template if isinstance(template, str) else None,
        start_text="" if start_token is None else vocabulary.texts[start_token],
        end_text="" if end_token is None else vocabulary.texts[end_token],
        start_token_id=start_token,
    )


def _byte_level(fields: Fields, vocabulary: Vocabulary) -> tuple[dict[str, Json], bool, int | None]:
    """Parts of a byte-level BPE, whether a start token is due, and which by default."""
    name = fields.text("pre", "default")
    way = PRE_TOKENIZERS.get(name)
    if way is None:
        msg = (
            f"{fields.where}: the pre-tokenizer {shown(name)} is not understood; understood are "
            f"{', '.join(PRE_TOKENIZERS)}. Take the model as a Hugging Face folder instead"
        )
        raise UnsupportedModelError(msg)
    merges: list[Json] = []
    for merge in _texts(fields, "merges"):
        # A part may start with a blank in old files: the first character is never the separator.
        middle = merge.find(" ", 1)
        if middle < 0:
            msg = f"{fields.where}: the merge {shown(merge)} has no two parts; damaged"
            raise ModelFormatError(msg)
        merges.append([merge[:middle], merge[middle + 1 :]])
    vocabulary_ids: dict[str, Json] = dict(vocabulary.ids())
    parts: dict[str, Json] = {
        "normalizer": way.normalizer(),
        "pre_tokenizer": way.pre_tokenizer(),
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": way.ignore_merges,
            "vocab": vocabulary_ids,
            "merges": merges,
        },
    }
    return parts, way.adds_start, None


def _start_token(text: str, number: int) -> Json:
    """The post-processor that puts a start token before every text."""
    start: Json = {"SpecialToken": {"id": text, "type_id": 0}}
    first: Json = {"Sequence": {"id": "A", "type_id": 0}}
    second: Json = {"Sequence": {"id": "B", "type_id": 1}}
    again: Json = {"SpecialToken": {"id": text, "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [start, first],
        "pair": [start, first, again, second],
        "special_tokens": {text: {"id": text, "ids": [number], "tokens": [text]}},
    }


def _vocabulary(fields: Fields, vocabulary_size: int) -> Vocabulary:
    texts = _texts(fields, "tokens")
    if len(texts) > vocabulary_size:
        msg = (
            f"{fields.where}: {len(texts)} tokens, but the weights have {vocabulary_size}; the "
            "file is damaged"
        )
        raise ModelFormatError(msg)
    if len(set(texts)) != len(texts):
        twice = next(text for number, text in enumerate(texts) if texts.index(text) != number)
        msg = f"{fields.where}: the token {shown(twice)} stands twice; the file is damaged"
        raise ModelFormatError(msg)
    kinds = fields.get("token_type")
    if kinds is None:
        kinds = [NORMAL] * len(texts)
    if not isinstance(kinds, list) or len(kinds) != len(texts):
        msg = f"{fields.where}: token_type is no list of {len(texts)} types; damaged"
        raise ModelFormatError(msg)
    return Vocabulary(texts, kinds)


def _scores(fields: Fields, vocabulary: Vocabulary) -> list[float]:
    scores = fields.get("scores")
    if not isinstance(scores, list) or len(scores) != len(vocabulary.texts):
        msg = f"{fields.where}: there are not as many scores as tokens; the file is damaged"
        raise ModelFormatError(msg)
    if not all(isinstance(score, int | float) for score in scores):
        msg = f"{fields.where}: the scores are no numbers; the file is damaged"
        raise ModelFormatError(msg)
    return [float(score) for score in scores]


def _texts(fields: Fields, key: str) -> list[str]:
    values = fields.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        msg = f"{fields.where}: {key} is missing or no list of texts; the file is damaged"
        raise ModelFormatError(msg)
    return values


def _token(fields: Fields, key: str, count: int, default: int | None = None) -> int | None:
    """The id under a key; as llama.cpp does, one that is no token counts as absent."""
    value = fields.get(key)
    if type(value) is int and 0 <= value < count:
        return value
    return default if default is not None and default < count else None
