"""A GGUF file as a canonical model; what is not understood is refused by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.architecture import LARGEST_HEAD, Architecture
from edgebench.models.canonical import CanonicalModel
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields, shown
from edgebench.models.gguf_header import is_gguf, read_header
from edgebench.models.gguf_rope import rope_of
from edgebench.models.gguf_tensors import ROPE_FACTORS, find_tensor, read_weights
from edgebench.models.gguf_tokenizer import read_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.architecture import Family
    from edgebench.models.gguf_header import Header

__all__ = ["is_gguf", "open_gguf"]

# Mistral models come as llama: the two differ in nothing but the window of the first Mistral 7B.
FAMILIES: dict[str, Family] = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}

# They say how the file was made, or what llama.cpp needs for itself.
HARMLESS = frozenset({"vocab_size", "tensor_data_layout", "rope.scaling.finetuned"})

# They may stand there as long as they say what is done anyway.
FIXED: dict[str, object] = {
    "attention.causal": True,
    "use_parallel_residual": False,
    "expert_count": 0,
    "expert_used_count": 0,
    "logit_scale": 1.0,
    "residual_scale": 1.0,
    "embedding_scale": 1.0,
    "pooling_type": 0,
    "rope.scaling.yarn_log_multiplier": 0.0,
}


def open_gguf(path: Path) -> CanonicalModel:
    """Open a GGUF file; nothing but its header is read.

    Raises:
        ModelFormatError: the file is cut off or damaged, or tensors don't fit the metadata.
        UnsupportedModelError: the model holds something that is not understood, which is named.
    """
    header = read_header(path)
    _refuse_parts(header)
    architecture = _architecture(header)
    weights = read_weights(header, architecture, neighbours=architecture.family == "llama")
    return CanonicalModel(
        path,
        architecture,
        weights,
        partial(read_tokenizer, header, architecture.vocabulary_size),
    )


def _architecture(header: Header) -> Architecture:
    general = Fields(str(header.path), header.metadata)
    name = general.text("general.architecture")
    family = FAMILIES.get(name)
    if family is None:
        msg = (
            f"{header.path}: models of the architecture {shown(name)} are not understood; "
            f"understood are {', '.join(FAMILIES)}"
        )
        raise UnsupportedModelError(msg)
    fields = Fields(
        f"{header.path}, {name}",
        {
            key.removeprefix(f"{name}."): value
            for key, value in header.metadata.items()
            if key.startswith(f"{name}.")
        },
    )
    hidden, heads = fields.integer("embedding_length"), _one(fields, "attention.head_count")
    kv_heads = _one(fields, "attention.head_count_kv", heads)
    head_size = _head_size(fields, hidden, heads, kv_heads)
    context = fields.integer("context_length")
    tensors = header.tensors
    embedding = find_tensor(header, "token_embd.weight")
    factors = find_tensor(header, ROPE_FACTORS).read() if ROPE_FACTORS in tensors else None
    architecture = Architecture(
        family=family,
        layers=fields.integer("block_count"),
        hidden_size=hidden,
        intermediate_size=_one(fields, "feed_forward_length"),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocabulary_size=embedding.shape[0],
        context_tokens=context,
        norm_epsilon=fields.number("attention.layer_norm_rms_epsilon"),
        rope=rope_of(fields, head_size, context, factors),
        attention_bias="blk.0.attn_q.bias" in tensors,
        output_bias="blk.0.attn_output.bias" in tensors,
        mlp_bias="blk.0.ffn_gate.bias" in tensors,
        qk_norm="blk.0.attn_q_norm.weight" in tensors,
        tied_embeddings="output.weight" not in tensors,
    )
    if (architecture.qk_norm, architecture.attention_bias) not in _SHAPES[family]:
        msg = (
            f"{header.path}: a {family} model with"
            f"{'' if architecture.qk_norm else 'out'} norms of queries and keys, and with"
            f"{'' if architecture.attention_bias else 'out'} their biases, is not understood"
        )
        raise UnsupportedModelError(msg)
    _refuse_window(fields, context)
    _refuse_unused(fields)
    return architecture


# Whether queries and keys are normalised, and whether they have biases.
_SHAPES: dict[Family, set[tuple[bool, bool]]] = {
    "llama": {(False, False), (False, True)},
    "qwen2": {(False, True)},
    "qwen3": {(True, False), (True, True)},
}


def _one(fields: Fields, key: str, default: int | None = None) -> int:
    """A number that may differ from layer to layer, but must not."""
    value = fields.get(key)
    if isinstance(value, list) and len(set(value)) == 1 and type(value[0]) is int:
        return int(value[0])
    if isinstance(value, list):
        msg = f"{fields.where}: {key} differs from layer to layer, which is not understood"
        raise UnsupportedModelError(msg)
    return fields.integer(key, default)


def _head_size(fields: Fields, hidden: int, heads: int, kv_heads: int) -> int:
    if fields.get("attention.key_length") is None and hidden % heads:
        msg = f"{fields.where}: {hidden} numbers can't be shared among {heads} heads; damaged"
        raise ModelFormatError(msg)
    if heads % kv_heads:
        msg = f"{fields.where}: {heads} heads can't share {kv_heads} key-value heads; damaged"
        raise ModelFormatError(msg)
    size = fields.integer("attention.key_length", hidden // heads, most=LARGEST_HEAD)
    for key in ("attention.value_length", "rope.dimension_count"):
        other = fields.integer(key, size)
        if other != size:
            msg = (
                f"{fields.where}: {key} is {other} where heads have {size} numbers; heads that "
                "are rotated in part, or whose values differ in size, are not understood"
            )
            raise UnsupportedModelError(msg)
    if size % 2 or size > LARGEST_HEAD:
        msg = f"{fields.where}: heads of the odd or excessive size {size} can't be rotated"
        raise UnsupportedModelError(msg)
    return size


def _refuse_parts(header: Header) -> None:
    kind = header.metadata.get("general.type", "model")
    if kind != "model":
        msg = f"{header.path} is no model, but a GGUF file of the type {shown(kind)}"
        raise UnsupportedModelError(msg)
    parts = header.metadata.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        msg = (
            f"{header.path} is one of {parts} parts of a model (split.count); join them with "
            "llama.cpp's llama-gguf-split --merge"
        )
        raise UnsupportedModelError(msg)


def _refuse_window(fields: Fields, context: int) -> None:
    window = fields.integer("attention.sliding_window", context, least=0)
    if 0 < window < context:
        msg = (
            f"{fields.where}: attention.sliding_window = {window} is shorter than the context of "
            f"{context} tokens: attention to a window is not understood"
        )
        raise UnsupportedModelError(msg)


def _refuse_unused(fields: Fields) -> None:
    size = fields.integer("attention.key_length", 1)
    usual = dict(FIXED)
    if "attention.key_length" in fields.values:
        usual["attention.scale"] = float(str(np.float32(size**-0.5)))
    unknown = {
        key: value
        for key, value in fields.unused().items()
        if key not in HARMLESS and not (key in usual and value == usual[key])
    }
    if unknown:
        named = ", ".join(f"{key} = {shown(value)}" for key, value in unknown.items())
        msg = f"{fields.where}: {named} is not understood, and may change what the model computes"
        raise UnsupportedModelError(msg)
