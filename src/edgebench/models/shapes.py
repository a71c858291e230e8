"""The shapes of well-known models, for synthetic weights and for predictions: no weight is needed.

All figures are those of the models' published configurations (``config.json`` in Hugging Face's
layout).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder as its published configuration describes it.

    Attributes:
        key: what people write, such as ``llama2-7b``.
        title: what it is called.
        family: whose configuration it is.
        tokenizer: SentencePiece's kind with byte fallback, or byte-level BPE.
        tied: the output layer is the embedding.
        attention_bias: q, k and v projections have a bias.
        long_rope: the scaling of the rotations is that of Llama 3.1 and later, by a factor of 32.
        window: tokens that the attention of some layers looks back to; None where all see all.
        windowed_layers: how many layers that is.
    """

    key: str
    title: str
    family: Literal["llama", "qwen2", "gemma2"]
    tokenizer: Literal["spm", "bpe"]
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context_tokens: int
    norm_epsilon: float
    rope_theta: float
    tied: bool = False
    attention_bias: bool = False
    long_rope: bool = False
    window: int | None = None
    windowed_layers: int = 0

    def layer_matrices(self) -> dict[str, tuple[int, int]]:
        """The matrices of one layer, (out, in), by the last part of Hugging Face's name."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        return {
            "q_proj": (queries, self.hidden),
            "k_proj": (keys, self.hidden),
            "v_proj": (keys, self.hidden),
            "o_proj": (self.hidden, queries),
            "gate_proj": (self.intermediate, self.hidden),
            "up_proj": (self.intermediate, self.hidden),
            "down_proj": (self.hidden, self.intermediate),
        }

    @property
    def layer_vector_weights(self) -> int:
        """Weights of one layer that are no matrices: norms and biases."""
        norms = 4 if self.family == "gemma2" else 2
        biases = (self.heads + 2 * self.kv_heads) * self.head_size if self.attention_bias else 0
        return norms * self.hidden + biases

    @property
    def parameters(self) -> int:
        """How many weights there are; tied embeddings count once."""
        in_layer = sum(rows * columns for rows, columns in self.layer_matrices().values())
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * (in_layer + self.layer_vector_weights) + embeddings + self.hidden


_ALL: Final = (
    ModelShape(
        "llama2-7b", "Llama 2 7B", "llama", "spm",
        32, 4096, 11008, 32, 32, 128, 32000, 4096, 1e-5, 10_000.0,
    ),
    ModelShape(
        "tinyllama-1.1b", "TinyLlama 1.1B", "llama", "spm",
        22, 2048, 5632, 32, 4, 64, 32000, 2048, 1e-5, 10_000.0,
    ),
    ModelShape(
        "qwen2.5-0.5b", "Qwen2.5 0.5B", "qwen2", "bpe",
        24, 896, 4864, 14, 2, 64, 151936, 32768, 1e-6, 1_000_000.0,
        tied=True, attention_bias=True,
    ),
    ModelShape(
        "llama3.2-1b", "Llama 3.2 1B", "llama", "bpe",
        16, 2048, 8192, 32, 8, 64, 128256, 131072, 1e-5, 500_000.0,
        tied=True, long_rope=True,
    ),
    ModelShape(
        "gemma2-2b", "Gemma 2 2B", "gemma2", "spm",
        26, 2304, 9216, 8, 4, 256, 256000, 8192, 1e-6, 10_000.0,
        tied=True, window=4096, windowed_layers=13,
    ),
    ModelShape(
        "smollm2-135m", "SmolLM2 135M", "llama", "bpe",
        30, 576, 1536, 9, 3, 64, 49152, 8192, 1e-5, 100_000.0,
        tied=True,
    ),
)  # fmt: skip

SHAPES: Final[Mapping[str, ModelShape]] = MappingProxyType({each.key: each for each in _ALL})
"""By key."""
