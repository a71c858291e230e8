"""The architecture of a decoder, as far as a forward pass needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["llama", "mistral", "qwen2", "qwen3"]
RopeKind: TypeAlias = Literal["default", "linear", "llama3", "yarn"]

LARGEST_HEAD = 1 << 16
"""Heads of more numbers are taken for damage; those of published models have a few hundred."""


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary position embedding, its scaling already worked into the frequencies.

    Attributes:
        theta: the base.
        kind: which scaling the model was trained with.
        inverse_frequencies: ``head_size / 2`` angles per position, in radian.
        attention_factor: both cosine and sine are multiplied by it (yarn); 1 otherwise.
        scaling: the scaling's parameters by the names that Hugging Face's configurations use,
            for export; the frequencies have them already.
    """

    theta: float
    kind: RopeKind
    inverse_frequencies: tuple[float, ...]
    attention_factor: float = 1.0
    scaling: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """A llama-like decoder: RMS norm, rotary positions, grouped-query attention, SwiGLU.

    Attributes:
        family: whose configuration it is.
        context_tokens: the longest context that it was trained for.
        attention_bias: q, k and v projections have a bias.
        output_bias: the attention's output projection has a bias.
        mlp_bias: the three projections of the MLP have a bias.
        qk_norm: queries and keys are normalised, head by head, before the rotation.
        tied_embeddings: the output layer is the embedding; there is no ``lm_head.weight``.
    """

    family: Family
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary_size: int
    context_tokens: int
    norm_epsilon: float
    rope: Rope
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied_embeddings: bool = False

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor of the canonical form by its Hugging Face name; a matrix is (out, in)."""
        hidden, inner = self.hidden_size, self.intermediate_size
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocabulary_size, hidden)
        }
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            shapes[prefix + "input_layernorm.weight"] = (hidden,)
            for name, rows in (("q", queries), ("k", keys), ("v", keys)):
                shapes[prefix + f"self_attn.{name}_proj.weight"] = (rows, hidden)
                if self.attention_bias:
                    shapes[prefix + f"self_attn.{name}_proj.bias"] = (rows,)
            if self.qk_norm:
                shapes[prefix + "self_attn.q_norm.weight"] = (self.head_size,)
                shapes[prefix + "self_attn.k_norm.weight"] = (self.head_size,)
            shapes[prefix + "self_attn.o_proj.weight"] = (hidden, queries)
            if self.output_bias:
                shapes[prefix + "self_attn.o_proj.bias"] = (hidden,)
            shapes[prefix + "post_attention_layernorm.weight"] = (hidden,)
            for name, shape in (
                ("gate", (inner, hidden)),
                ("up", (inner, hidden)),
                ("down", (hidden, inner)),
            ):
                shapes[prefix + f"mlp.{name}_proj.weight"] = shape
                if self.mlp_bias:
                    shapes[prefix + f"mlp.{name}_proj.bias"] = shape[:1]
        shapes["model.norm.weight"] = (hidden,)
        if not self.tied_embeddings:
            shapes["lm_head.weight"] = (self.vocabulary_size, hidden)
        return shapes

    @property
    def parameters(self) -> int:
        """How many weights there are; tied embeddings count once."""
        total = 0
        for shape in self.tensor_shapes().values():
            count = 1
            for length in shape:
                count *= length
            total += count
        return total
