"""Random weights in the shape of a known model, as a GGUF file, for speed, memory and power.

What the model says is noise. How fast it says it is not: the tensors have the sizes and types of
the published file, and no framework's work depends on what the weights are.
"""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import TYPE_CHECKING, Final, get_args

from edgebench.models.gguf_fields import header_bytes, padding
from edgebench.models.synthetic_template import TEMPLATES
from edgebench.models.synthetic_tensors import (
    NUMBERS,
    Quantization,
    synthetic_tensors,
    tensor_bytes,
)
from edgebench.models.synthetic_vocabulary import synthetic_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.models.gguf_fields import FieldValue
    from edgebench.models.shapes import ModelShape
    from edgebench.models.synthetic_vocabulary import SyntheticVocabulary

VERSION: Final = 1
"""Another number wherever the same shape and seed give another file."""
CHAT_VERSION: Final = 2
"""The same of shapes with a chat template: since 2 they have one."""

SEED: Final = 20_230_718
"""The day on which Llama 2 was published; any other number is as good."""

QUANTIZATIONS: Final[tuple[Quantization, ...]] = get_args(Quantization)

# llama.cpp's numbers of what most of a file's tensors are (general.file_type).
_FILE_TYPES: Final[dict[Quantization, int]] = {"Q4_0": 2, "Q8_0": 7, "F16": 1}

# What Gemma 2's configuration says beside its shape.
_GEMMA2: Final[dict[str, FieldValue]] = {
    "attention.sliding_window": 4096,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
}


def version_of(shape: ModelShape) -> int:
    """That of the file of a shape."""
    return CHAT_VERSION if shape.key in TEMPLATES else VERSION


def synthetic_bytes(shape: ModelShape, quantization: Quantization) -> int:
    """About how large the file will be: its tensors and, roughly, its vocabulary."""
    weights = sum(tensor.nbytes for tensor in synthetic_tensors(shape, quantization))
    return weights + shape.vocabulary * 64 + (1 << 20)


def write_synthetic(
    shape: ModelShape,
    quantization: Quantization,
    target: Path,
    *,
    text: str,
    seed: int = SEED,
    tell: Callable[[int], None] = lambda _: None,
) -> str:
    """Write a model's file from front to back, a few megabytes in memory at a time.

    Args:
        shape: the model's.
        quantization: of its matrices; the output is kept as llama.cpp's quantiser keeps it.
        target: the file, which must not exist yet.
        text: English that the tokenizer learns pieces of words from.
        seed: the same gives the same bytes.
        tell: called with how many bytes are written.

    Returns:
        The file's SHA-256, in hexadecimal.

    Raises:
        ValueError: the shape can't be quantised so, or has too small a vocabulary.
        OSError: the file can't be written.
    """
    tensors = synthetic_tensors(shape, quantization)
    fields = _fields(shape, quantization, synthetic_vocabulary(shape, text))
    head = header_bytes(fields, tensors, NUMBERS)
    digest, written = hashlib.sha256(head), len(head)
    with target.open("xb") as file:
        file.write(head)
        for tensor in tensors:
            zeros = bytes(padding(tensor.nbytes))
            for piece in chain(tensor_bytes(tensor, shape, seed), (zeros,)):
                file.write(piece)
                digest.update(piece)
                written += len(piece)
                tell(written)
    return digest.hexdigest()


def _fields(
    shape: ModelShape, quantization: Quantization, vocabulary: SyntheticVocabulary
) -> dict[str, FieldValue]:
    described: dict[str, FieldValue] = {
        "context_length": shape.context_tokens,
        "embedding_length": shape.hidden,
        "block_count": shape.layers,
        "feed_forward_length": shape.intermediate,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_size,
        "attention.value_length": shape.head_size,
        "attention.layer_norm_rms_epsilon": shape.norm_epsilon,
        "rope.freq_base": shape.rope_theta,
        **(_GEMMA2 if shape.family == "gemma2" else {"rope.dimension_count": shape.head_size}),
    }
    return {
        "general.architecture": shape.family,
        "general.name": f"{shape.title} (synthetic weights)",
        "general.file_type": _FILE_TYPES[quantization],
        **{f"{shape.family}.{key}": value for key, value in described.items()},
        **_tokenizer(vocabulary),
        **({"tokenizer.chat_template": TEMPLATES[shape.key]} if shape.key in TEMPLATES else {}),
    }


def _tokenizer(vocabulary: SyntheticVocabulary) -> dict[str, FieldValue]:
    layout = vocabulary.layout
    ids = {text: number for number, text in layout.special.items()}
    fields: dict[str, FieldValue] = {
        "model": "llama" if vocabulary.scores else "gpt2",
        **({} if vocabulary.scores else {"pre": layout.pre}),
        "tokens": vocabulary.texts,
        **({"scores": vocabulary.scores} if vocabulary.scores else {}),
        "token_type": vocabulary.kinds,
        **({"merges": vocabulary.merges} if vocabulary.merges else {}),
        "bos_token_id": ids[layout.start],
        "eos_token_id": ids[layout.end],
        **({"unknown_token_id": ids["<unk>"]} if "<unk>" in ids else {}),
        "add_bos_token": layout.adds_start,
        "add_eos_token": False,
        **({"add_space_prefix": layout.space_prefix} if vocabulary.scores else {}),
    }
    return {f"tokenizer.ggml.{key}": value for key, value in fields.items()}
