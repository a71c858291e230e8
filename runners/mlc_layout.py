"""Which parameters MLC's models have, by MLC's names, and which weights each is made of.

MLC joins what is multiplied by the same input: queries, keys and values, and the two halves of a
gated MLP. Names and orders are those of ``python/mlc_llm/model`` in MLC LLM's sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.models.architecture import Architecture

Dtype: TypeAlias = Literal["float32", "float16", "uint32"]

GROUP = 32
"""How many neighbours of a row share a scale."""

PER_WORD = 8
"""How many codes of 4 bits stand in a word of 32."""

ITEM_BYTES: dict[Dtype, int] = {"float32": 4, "float16": 2, "uint32": 4}

JOINED_ATTENTION = {
    "llama": "qkv_proj",
    "mistral": "qkv_proj",
    "qwen2": "c_attn",
    "qwen3": "c_attn",
}
"""What a family calls the joined product of queries, keys and values."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a model's weights are kept.

    Attributes:
        name: MLC's.
        dtype: of what isn't quantised, of what is computed, and of the KV cache.
        grouped: matrices are codes of 4 bits, with a scale for each group.
    """

    name: str
    dtype: Dtype
    grouped: bool = False


OWN = {
    each.name: each
    for each in (
        Quantization("q0f32", "float32"),
        Quantization("q0f16", "float16"),
        Quantization("q4f32_1", "float32", grouped=True),
    )
}
"""The quantisations that edgebench makes itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor in the cache.

    Attributes:
        name: MLC's.
        shape: lengths of its axes.
        dtype: of its elements.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Dtype

    @property
    def nbytes(self) -> int:
        """Its size, written out."""
        count = ITEM_BYTES[self.dtype]
        for length in self.shape:
            count *= length
        return count


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a model, before it is quantised.

    Attributes:
        name: MLC's, with ``.weight`` or ``.bias``.
        sources: names of the canonical tensors that it consists of, one below the other.
        shape: of all of them together.
    """

    name: str
    sources: tuple[str, ...]
    shape: tuple[int, ...]

    def entries(self, quantization: Quantization) -> tuple[Entry, ...]:
        """The tensors that it is kept as: itself, or its codes and its scales."""
        if not quantization.grouped or len(self.shape) == 1:
            return (Entry(self.name, self.shape, quantization.dtype),)
        rows, columns = self.shape
        groups = -(-columns // GROUP)
        stem = self.name.removesuffix("weight")
        return (
            Entry(stem + "q_weight", (rows, groups * GROUP // PER_WORD), "uint32"),
            Entry(stem + "q_scale", (rows, groups), quantization.dtype),
        )


def parameters(architecture: Architecture) -> Iterator[Parameter]:
    """Every parameter of a model."""
    shapes = architecture.tensor_shapes()
    joined = JOINED_ATTENTION[architecture.family]
    for name in shapes:
        if name.endswith((".k_proj.weight", ".v_proj.weight", ".k_proj.bias", ".v_proj.bias")):
            continue
        if name.endswith((".up_proj.weight", ".up_proj.bias")):
            continue
        stem, _, kind = name.rpartition(".")
        sources: tuple[str, ...] = (name,)
        if stem.endswith(".q_proj"):
            prefix = stem.removesuffix("q_proj")
            sources = tuple(f"{prefix}{each}_proj.{kind}" for each in "qkv")
            stem = prefix + joined
        elif stem.endswith(".gate_proj"):
            prefix = stem.removesuffix("gate_proj")
            sources = tuple(f"{prefix}{each}_proj.{kind}" for each in ("gate", "up"))
            stem = prefix + "gate_up_proj"
        rows = sum(shapes[source][0] for source in sources)
        yield Parameter(f"{stem}.{kind}", sources, (rows, *shapes[name][1:]))
