"""The graphs of a canonical model as LiteRT-LM runs them.

A graph takes a fixed number of tokens: each ``prefill_N`` takes N and only fills the cache,
``decode`` takes one and gives logits. The engine finds inputs and outputs by their names, which are
those of Google's own exporter. Keys are cached as (1, heads, places, size), values turned, as
(1, heads, size, places), so that both matrix products of the attention are of the same kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.runners.litert_graph import Graph
from edgebench.runners.litert_weights import Form, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.litert_weights import Matrix

EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True, slots=True)
class Forms:
    """How a model's matrices are kept.

    Attributes:
        layers: those of the layers.
        output: the one that makes logits, and the embedding.
    """

    layers: Form
    output: Form


def decoder_graphs(
    model: CanonicalModel, forms: Forms, prefill_lengths: Sequence[int], places: int
) -> list[Graph]:
    """The graphs of a model.

    Args:
        model: a llama-like decoder; nothing but its vectors is read.
        forms: how its matrices are kept.
        prefill_lengths: how many tokens each prefill graph takes.
        places: of the cache.

    Raises:
        RunnerFailure: a norm or a bias holds something that is no finite number.
        ModelFormatError: the model can't be read.
    """
    store = Store(model.weights)
    named = [(f"prefill_{length}", length) for length in prefill_lengths] + [("decode", 1)]
    return [
        _Decoder(model, store, forms, Graph(name), length, places).built(logits=name == "decode")
        for name, length in named
    ]


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the graph's tokens stand.

    Attributes:
        mask: added to the scores of every key.
        cosine, sine: the rotation of each token, the sine's first half negative.
        keys, values: where the first token's keys and values go in their caches.
    """

    mask: int
    cosine: int
    sine: int
    keys: int
    values: int


class _Decoder:
    """Builds one graph."""

    def __init__(
        self,
        model: CanonicalModel,
        store: Store,
        forms: Forms,
        graph: Graph,
        tokens: int,
        places: int,
    ) -> None:
        self._architecture = model.architecture
        self._store = store
        self._forms = forms
        self._graph = graph
        self._tokens = tokens
        self._places = places

    def built(self, *, logits: bool) -> Graph:
        """The graph, with `logits` for its only token or without."""
        architecture, graph, tokens = self._architecture, self._graph, self._tokens
        ids = graph.input("tokens", (1, tokens), "INT32")
        position = graph.input("input_pos", (tokens,), "INT32")
        mask = graph.input("mask", (1, 1, tokens, self._places))
        caches = [self._cache(layer) for layer in range(architecture.layers)]
        state = self._embedded(ids)
        places = self._placed(position, mask)
        for layer, cache in enumerate(caches):
            last = layer == architecture.layers - 1
            added = self._attention(layer, state, cache, places, only_cache=last and not logits)
            if added is None:
                return graph
            state = graph.add(state, added)
            state = graph.add(state, self._mlp(layer, state))
        state = self._norm("model.norm.weight", state)
        graph.output("logits", graph.linear(state, self._output_matrix()))
        return graph

    def _cache(self, layer: int) -> tuple[int, int]:
        architecture, graph = self._architecture, self._graph
        heads, size = architecture.kv_heads, architecture.head_size
        return (
            graph.input(f"kv_cache_k_{layer}", (1, heads, self._places, size)),
            graph.input(f"kv_cache_v_{layer}", (1, heads, size, self._places)),
        )

    def _embedded(self, ids: int) -> int:
        graph, tokens = self._graph, self._tokens
        rows = graph.reshape(ids, (tokens,), "INT32")
        found = graph.lookup(rows, self._store.matrix(EMBEDDING, self._forms.output))
        return graph.reshape(found, (1, tokens, self._architecture.hidden_size))

    def _output_matrix(self) -> Matrix:
        source = EMBEDDING if self._architecture.tied_embeddings else OUTPUT
        return self._store.matrix(source, self._forms.output)

    def _placed(self, position: int, mask: int) -> _Places:
        architecture, graph, tokens = self._architecture, self._graph, self._tokens
        rope = architecture.rope
        frequencies = graph.floats(rope.inverse_frequencies, (1, 1, 1, architecture.head_size // 2))
        column = graph.to_float(graph.reshape(position, (1, 1, tokens, 1), "INT32"))
        angle = graph.multiply(column, frequencies)
        cosine, sine = graph.unary("COS", angle), graph.unary("SIN", angle)
        if rope.attention_factor != 1.0:
            factor = graph.floats([rope.attention_factor], ())
            cosine, sine = graph.multiply(cosine, factor), graph.multiply(sine, factor)
        negative = graph.multiply(sine, graph.floats([-1.0], ()))
        first = position if tokens == 1 else graph.slice(position, [0], (1,), "INT32")
        start, zero = graph.reshape(first, (), "INT32"), graph.integer(0)
        if tokens > 1 and (shared := architecture.heads // architecture.kv_heads) > 1:
            # The queries of all heads that share keys stand below each other.
            mask = graph.concatenate([mask] * shared, axis=2)
        return _Places(
            mask=mask,
            cosine=graph.concatenate([cosine, cosine], axis=3),
            sine=graph.concatenate([negative, sine], axis=3),
            keys=graph.pack([zero, zero, start, zero]),
            values=graph.pack([zero, zero, zero, start]),
        )

    def _attention(
        self, layer: int, state: int, cache: tuple[int, int], places: _Places, *, only_cache: bool
    ) -> int | None:
        """Fill the cache of a layer; gives what its attention adds, unless nothing needs it."""
        architecture, graph, tokens = self._architecture, self._graph, self._tokens
        heads, kv_heads, size = architecture.heads, architecture.kv_heads, architecture.head_size
        prefix = f"model.layers.{layer}."
        biased = architecture.attention_bias
        normed = self._norm(prefix + "input_layernorm.weight", state)
        prefix += "self_attn."
        keys = self._linear(prefix + "k_proj", normed, biased=biased)
        values = self._linear(prefix + "v_proj", normed, biased=biased)
        keys = self._rotated(self._heads(prefix + "k_norm.weight", keys, kv_heads), places)
        values = self._turned(values)
        name = f"{graph.name}_kv_cache_{{}}_{layer}_out"
        keys = graph.overwrite(cache[0], keys, places.keys, name.format("k"))
        values = graph.overwrite(cache[1], values, places.values, name.format("v"))
        graph.output(f"kv_cache_k_{layer}", keys)
        graph.output(f"kv_cache_v_{layer}", values)
        if only_cache:
            return None
        queries = self._linear(prefix + "q_proj", normed, biased=biased)
        queries = self._rotated(self._heads(prefix + "q_norm.weight", queries, heads), places)
        queries = graph.multiply(queries, graph.floats([1 / math.sqrt(size)], ()))
        queries = graph.reshape(queries, (1, kv_heads, heads // kv_heads * tokens, size))
        scores = graph.add(graph.matmul_transposed(queries, keys), places.mask)
        mixed = graph.matmul_transposed(graph.softmax(scores), values)
        if tokens > 1:
            mixed = graph.transpose(graph.reshape(mixed, (1, heads, tokens, size)), (0, 2, 1, 3))
        mixed = graph.reshape(mixed, (1, tokens, heads * size))
        return self._linear(prefix + "o_proj", mixed, biased=architecture.output_bias)

    def _heads(self, norm: str, vectors: int, heads: int) -> int:
        """(1, tokens, heads x size) as (1, heads, tokens, size), normalised where it is due."""
        graph, tokens, size = self._graph, self._tokens, self._architecture.head_size
        split = graph.reshape(vectors, (1, tokens, heads, size))
        if self._architecture.qk_norm:
            split = self._norm(norm, split)
        if tokens == 1:
            return graph.reshape(split, (1, heads, 1, size))
        return graph.transpose(split, (0, 2, 1, 3))

    def _turned(self, values: int) -> int:
        """(1, tokens, heads x size) as (1, heads, size, tokens)."""
        graph, tokens = self._graph, self._tokens
        heads, size = self._architecture.kv_heads, self._architecture.head_size
        if tokens == 1:
            return graph.reshape(values, (1, heads, size, 1))
        return graph.transpose(graph.reshape(values, (1, tokens, heads, size)), (0, 2, 3, 1))

    def _rotated(self, heads: int, places: _Places) -> int:
        graph = self._graph
        shape = graph.shape(heads)
        half = shape[-1] // 2
        first = graph.slice(heads, (0, 0, 0, 0), (*shape[:-1], half))
        second = graph.slice(heads, (0, 0, 0, half), (*shape[:-1], half))
        swapped = graph.concatenate([second, first], axis=3)
        return graph.add(graph.multiply(heads, places.cosine), graph.multiply(swapped, places.sine))

    def _mlp(self, layer: int, state: int) -> int:
        graph, biased = self._graph, self._architecture.mlp_bias
        prefix = f"model.layers.{layer}."
        normed = self._norm(prefix + "post_attention_layernorm.weight", state)
        gate = self._linear(prefix + "mlp.gate_proj", normed, biased=biased)
        gate = graph.multiply(gate, graph.unary("LOGISTIC", gate))
        up = self._linear(prefix + "mlp.up_proj", normed, biased=biased)
        return self._linear(prefix + "mlp.down_proj", graph.multiply(gate, up), biased=biased)

    def _norm(self, name: str, vectors: int) -> int:
        """An RMS norm of plain operators, which the engine runs with less memory than its own."""
        graph = self._graph
        mean = graph.mean(graph.multiply(vectors, vectors))
        mean = graph.add(mean, graph.floats([self._architecture.norm_epsilon], ()))
        normed = graph.multiply(vectors, graph.unary("RSQRT", mean))
        return graph.multiply(normed, self._vector(name))

    def _linear(self, name: str, vectors: int, *, biased: bool) -> int:
        bias = self._vector(name + ".bias") if biased else None
        matrix = self._store.matrix(name + ".weight", self._forms.layers)
        return self._graph.linear(vectors, matrix, bias)

    def _vector(self, name: str) -> int:
        values = self._store.vector(name)
        return self._graph.floats(values, values.shape)
