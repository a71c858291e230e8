"""SentencePiece's BPE, as Llama 2 has it, in the parts of a ``tokenizer.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.pre_tokenizers import Json

BLANK = "▁"


def spm_parts(
    texts: Sequence[str],
    scores: Sequence[float],
    mergeable: Sequence[bool],
    *,
    space_prefix: bool,
) -> dict[str, Json]:
    """Normalizer, pre-tokenizer, decoder and model.

    Args:
        texts: tokens by id.
        scores: one a token; of two possible merges the one with the higher score comes first.
        mergeable: which tokens a text's characters may grow together to.
        space_prefix: a blank is put before every text, and after every special token.
    """
    blanks: Json = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
    before: Json = {"type": "Prepend", "prepend": BLANK}
    decoders: list[Json] = [
        {"type": "Replace", "pattern": {"String": BLANK}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if space_prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    vocabulary: dict[str, Json] = {text: number for number, text in enumerate(texts)}
    merges: list[Json] = [[*pair] for pair in derived_merges(texts, scores, mergeable)]
    return {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [before, blanks] if space_prefix else [blanks],
        },
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>" if "<unk>" in vocabulary else None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


def derived_merges(
    texts: Sequence[str], scores: Sequence[float], mergeable: Sequence[bool]
) -> list[tuple[str, str]]:
    """The merges that scores stand for: every way to make a token of two, best token first.

    >>> derived_merges(["a", "b", "ab", "aab"], [0.0, 0.0, -1.0, -2.0], [True] * 4)
    [('a', 'b'), ('a', 'ab')]
    """
    ids = {text: number for number, text in enumerate(texts) if mergeable[number]}
    merges: list[tuple[float, int, int, int]] = []
    for text, number in ids.items():
        for middle in range(1, len(text)):
            first, second = ids.get(text[:middle]), ids.get(text[middle:])
            if first is not None and second is not None:
                merges.append((-scores[number], number, first, second))
    merges.sort()
    return [(texts[first], texts[second]) for _, _, first, second in merges]
