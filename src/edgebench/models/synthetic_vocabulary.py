"""A plausible tokenizer for synthetic weights: as large as the real one, and none of its content.

Any text goes to tokens and back. SentencePiece's kind writes a blank as a mark and falls back to
bytes; byte-level BPE writes every byte as a letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.models.gguf_tokenizer import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED
from edgebench.models.spm import BLANK
from edgebench.models.synthetic_pieces import merges

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgebench.models.shapes import ModelShape

PRINTABLE: Final = tuple(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a model's special tokens are, as its published tokenizer has them.

    Attributes:
        special: tokens by id.
        size: ids that are tokens; those above stand for nothing, as where rows were added to the
            embedding to make its length round. 0 for all.
        start: begins texts.
        end: ends them.
        adds_start: a prompt gets a start token.
        space_prefix: a blank is put before every text (SentencePiece's kind only).
        pre: llama.cpp's name of how texts are cut (byte-level BPE only).
    """

    special: Mapping[int, str]
    start: str
    end: str
    adds_start: bool
    size: int = 0
    space_prefix: bool = True
    pre: str = ""


_LLAMA2: Final = Layout({0: "<unk>", 1: "<s>", 2: "</s>"}, "<s>", "</s>", adds_start=True)
_GEMMA2: Final = Layout(
    {0: "<pad>", 1: "<eos>", 2: "<bos>", 3: "<unk>", 106: "<start_of_turn>", 107: "<end_of_turn>"},
    "<bos>",
    "<eos>",
    adds_start=True,
    space_prefix=False,
)
_QWEN2: Final = Layout(
    {151643: "<|endoftext|>", 151644: "<|im_start|>", 151645: "<|im_end|>"}
    | {number: f"<|extra_{number - 151646}|>" for number in range(151646, 151665)},
    "<|endoftext|>",
    "<|endoftext|>",
    adds_start=False,
    size=151665,
    pre="qwen2",
)
_LLAMA3: Final = Layout(
    {number: f"<|reserved_{number - 128002}|>" for number in range(128002, 128256)}
    | {
        128000: "<|begin_of_text|>",
        128001: "<|end_of_text|>",
        128006: "<|start_header_id|>",
        128007: "<|end_header_id|>",
        128009: "<|eot_id|>",
    },
    "<|begin_of_text|>",
    "<|end_of_text|>",
    adds_start=True,
    pre="llama-bpe",
)
_SMOLLM2: Final = Layout(
    {0: "<|endoftext|>", 1: "<|im_start|>", 2: "<|im_end|>"}
    | {number: f"<extra_{number - 3}>" for number in range(3, 17)},
    "<|endoftext|>",
    "<|endoftext|>",
    adds_start=False,
    pre="smollm",
)

LAYOUTS: Final[Mapping[str, Layout]] = {
    "llama2-7b": _LLAMA2,
    "tinyllama-1.1b": _LLAMA2,
    "qwen2.5-0.5b": _QWEN2,
    "llama3.2-1b": _LLAMA3,
    "gemma2-2b": _GEMMA2,
    "smollm2-135m": _SMOLLM2,
}
"""By the shape's key. Other shapes have no special tokens but a start and an end."""


@dataclass(frozen=True, slots=True)
class SyntheticVocabulary:
    """Tokens by id, with what llama.cpp's files say of them.

    Attributes:
        kinds: llama.cpp's types.
        scores: of SentencePiece's kind, higher first; empty for byte-level BPE.
        merges: of byte-level BPE, ``left right``; empty for SentencePiece's kind.
        layout: where its special tokens are.
    """

    texts: tuple[str, ...]
    kinds: tuple[int, ...]
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    layout: Layout


def synthetic_vocabulary(shape: ModelShape, text: str) -> SyntheticVocabulary:
    """A tokenizer of just as many tokens as the shape has.

    Args:
        shape: the model's.
        text: English that the pieces of words are learned from. The same text gives the same
            tokenizer.

    Raises:
        ValueError: the shape has fewer tokens than bytes and special tokens need.
    """
    if shape.tokenizer == "spm":
        layout = LAYOUTS.get(shape.key, _LLAMA2)
        return _sentencepiece(layout, shape.vocabulary, text)
    layout = LAYOUTS.get(shape.key) or Layout(
        {0: "<|endoftext|>"}, "<|endoftext|>", "<|endoftext|>", adds_start=False, pre="gpt-2"
    )
    return _byte_level(layout, shape.vocabulary, text)


def _sentencepiece(layout: Layout, size: int, text: str) -> SyntheticVocabulary:
    """Special tokens, bytes, pieces by rank, and single characters last, as Llama 2 has them."""
    octets = [f"<0x{number:02X}>" for number in range(256)]
    characters = [BLANK, *PRINTABLE, *sorted(_beyond_ascii(text))]
    room = _room(size, len(layout.special) + len(octets) + len(characters))
    pieces = ["".join(pair).replace(" ", BLANK) for pair in merges(text, room)]
    texts, kinds, scores = _start(layout, size)
    filled = [(octet, BYTE, 0.0) for octet in octets]
    filled += [(piece, NORMAL, -float(rank)) for rank, piece in enumerate((*pieces, *characters))]
    _fill(texts, kinds, scores, filled, size)
    return SyntheticVocabulary(tuple(texts), tuple(kinds), tuple(scores), (), layout)


def _byte_level(layout: Layout, size: int, text: str) -> SyntheticVocabulary:
    """Bytes, then what each merge makes, and special tokens where the layout has them."""
    letters = byte_letters()
    tokens = layout.size or size
    pairs = [
        (left.replace(" ", letters[0x20]), right.replace(" ", letters[0x20]))
        for left, right in merges(text, _room(tokens, len(layout.special) + 256))
    ]
    texts, kinds, scores = _start(layout, size)
    made = [*letters, *("".join(pair) for pair in pairs)]
    _fill(texts, kinds, scores, [(each, NORMAL, 0.0) for each in made], tokens)
    joined = tuple(" ".join(pair) for pair in pairs)
    return SyntheticVocabulary(tuple(texts), tuple(kinds), (), joined, layout)


def _room(size: int, taken: int) -> int:
    if size < taken:
        msg = f"a vocabulary of {size} tokens is too small: {taken} are bytes and special tokens"
        raise ValueError(msg)
    return size - taken


def _start(layout: Layout, size: int) -> tuple[list[str], list[int], list[float]]:
    """Every token, of which only the special ones are known yet."""
    texts = [f"[PAD{number}]" for number in range(size)]
    kinds = [UNUSED] * size
    for number, special in layout.special.items():
        texts[number] = special
        kinds[number] = UNKNOWN if special == "<unk>" else CONTROL
    return texts, kinds, [0.0] * size


def _fill(
    texts: list[str],
    kinds: list[int],
    scores: list[float],
    tokens: Iterable[tuple[str, int, float]],
    size: int,
) -> None:
    """Put tokens on the ids below `size` that no special token has."""
    free = (number for number in range(size) if kinds[number] == UNUSED)
    for number, token in zip(free, tokens, strict=False):
        texts[number], kinds[number], scores[number] = token


def _beyond_ascii(text: str) -> set[str]:
    return {sign for sign in text if ord(sign) > 0x7F and sign != BLANK}  # noqa: PLR2004


def byte_letters() -> list[str]:
    """What byte-level BPE writes for each byte: those that can be seen stand for themselves."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (number for number in range(256) if number not in seen)
    letters = {number: chr(256 + place) for place, number in enumerate(others)}
    return [letters.get(number, chr(number)) for number in range(256)]
