"""The graph of a canonical model, with its weights written as the graph comes to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.mnn_graph import PLAIN, Graph

if TYPE_CHECKING:
    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.mnn_weights import Format, Matrix, WeightFile

OUTPUT = "logits"


class Decoder:
    """Builds the graph of a model.

    Args:
        model: a llama-like decoder.
        file: where its weights go.
        weights: how the layers' matrices are kept.
        output: how the matrix that makes logits is kept.
    """

    def __init__(
        self, model: CanonicalModel, file: WeightFile, weights: Format, output: Format
    ) -> None:
        self._architecture = model.architecture
        self._file = file
        self._weights = weights
        self._output = output
        self.graph = Graph()

    def build(self, embedding_parts: int) -> Matrix:
        """Add the whole graph, whose result is `OUTPUT`; returns where the output layer lies.

        Args:
            embedding_parts: rows that MNN hands over for each token, to be added up.
        """
        architecture, graph = self._architecture, self.graph
        hidden = architecture.hidden_size
        # MNN's names, by which it hands them over.
        embedded = graph.input("input_ids", [1, 1, embedding_parts * hidden], "DT_FLOAT")
        mask = graph.input("attention_mask", [1, 1, -1, -1], "DT_FLOAT")
        positions = graph.input("position_ids", [1, -1], "DT_INT32")
        start = graph.input("logits_index", [1], "DT_INT32")

        state = self._enter(embedded, embedding_parts)
        angles = self._angles(positions)
        added: int | None = None
        for layer in range(architecture.layers):
            prefix = f"model.layers.{layer}."
            state, normed = self._norm(prefix + "input_layernorm", state, added)
            added = self._attention(layer, normed, angles, mask)
            state, normed = self._norm(prefix + "post_attention_layernorm", state, added)
            added = self._mlp(layer, normed)
        if added is not None:
            state = graph.binary("layers", "ADD", state, added)
        state = graph.tail("last_tokens", state, start)
        _, state = self._norm("model.norm", state)
        name = "model.embed_tokens" if architecture.tied_embeddings else "lm_head"
        matrix = self._file.matrix(name + ".weight", self._output)
        state = graph.unpack("lm_head.plain", graph.linear("lm_head", state, matrix))
        graph.reshape(OUTPUT, state, [1, -1, architecture.vocabulary_size])
        return matrix

    def _enter(self, embedded: int, parts: int) -> int:
        graph, hidden = self.graph, self._architecture.hidden_size
        state = embedded
        if parts > 1:
            rows = graph.reshape("embedding.parts", embedded, [-1, parts, hidden, 1])
            state = graph.total("embedding.sum", rows, axis=1)
        state = graph.reshape("embedding.column", state, [-1, hidden, 1, 1], layout="NCHW")
        return graph.pack("embedding", state)

    def _angles(self, positions: int) -> tuple[int, int]:
        """Cosine and sine of each position, the scaling of the model's rope included."""
        graph, rope = self.graph, self._architecture.rope
        head = self._architecture.head_size
        frequencies = [*rope.inverse_frequencies, *rope.inverse_frequencies]
        position = graph.to_float("positions", positions)
        position = graph.reshape("positions.column", position, [1, -1, 1, 1])
        inverse = graph.floats("inverse_frequencies", [1, 1, 1, head], frequencies)
        angle = graph.binary("angles", "MUL", position, inverse, layout=PLAIN)
        results = []
        for operation in ("COS", "SIN"):
            value = graph.unary(operation.lower(), operation, angle)
            if rope.attention_factor != 1.0:
                factor = graph.floats(f"{operation.lower()}.factor", [1], [rope.attention_factor])
                value = graph.binary(
                    f"{operation.lower()}.scaled", "MUL", value, factor, layout=PLAIN
                )
            results.append(value)
        return results[0], results[1]

    def _attention(self, layer: int, normed: int, angles: tuple[int, int], mask: int) -> int:
        architecture, graph = self._architecture, self.graph
        prefix = f"model.layers.{layer}."
        names = (f"{prefix}self_attn.{name}_proj" for name in "qkv")
        biased = architecture.attention_bias
        queries, keys, values = (self._linear(name, normed, biased=biased) for name in names)
        rotated = graph.rotate(
            prefix + "rope", [queries, keys, *angles], self._rope_settings(prefix)
        )
        attended = graph.attend(prefix + "attention", [*rotated, values, mask], layer)
        name = prefix + "self_attn.o_proj"
        return self._linear(name, attended, biased=architecture.output_bias)

    def _rope_settings(self, prefix: str) -> dict[str, object]:
        architecture = self._architecture
        settings: dict[str, object] = {
            "rope_cut_head_dim": architecture.head_size,
            "num_head": architecture.heads,
            "kv_num_head": architecture.kv_heads,
            "head_dim": architecture.head_size,
        }
        if architecture.qk_norm:
            for name in ("q_norm", "k_norm"):
                settings[name] = {
                    "axis": [-1],
                    "epsilon": architecture.norm_epsilon,
                    "gamma": self._file.vector(f"{prefix}self_attn.{name}.weight").tolist(),
                    "useRMSNorm": True,
                }
        return settings

    def _mlp(self, layer: int, normed: int) -> int:
        graph, biased = self.graph, self._architecture.mlp_bias
        prefix = f"model.layers.{layer}.mlp."
        gate = self._linear(prefix + "gate_proj", normed, biased=biased)
        up = self._linear(prefix + "up_proj", normed, biased=biased)
        inner = graph.binary(prefix + "gated", "MUL_SILU", up, gate)
        return self._linear(prefix + "down_proj", inner, biased=biased)

    def _norm(self, name: str, state: int, added: int | None = None) -> tuple[int, int]:
        """An RMS norm, of a sum where something is to be added first.

        Its weights are followed by the zeros of a shift, without which MNN doesn't take them.

        Returns:
            The sum, and the norm of it.
        """
        import numpy as np  # noqa: PLC0415 - only a conversion needs it

        weights = self._file.vector(name + ".weight")
        offset = self._file.bytes_written
        lengths = (self._file.floats(weights), self._file.floats(np.zeros_like(weights)))
        place, epsilon = (offset, *lengths), self._architecture.norm_epsilon
        if added is None:
            return state, self.graph.norm(name, state, place, epsilon)
        return self.graph.add_and_norm(name, (state, added), place, epsilon)

    def _linear(self, name: str, state: int, *, biased: bool) -> int:
        bias = name + ".bias" if biased else None
        matrix = self._file.matrix(name + ".weight", self._weights, bias)
        return self.graph.linear(name, state, matrix)
