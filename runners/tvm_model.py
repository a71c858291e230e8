"""A llama-like decoder in TVM's `relax`, with the functions that MLC's model libraries have.

Its parameters have MLC's names and shapes (see `mlc_layout`). Unlike MLC's models it rotates
queries and keys itself, by the model's own frequencies, before they go into TVM's KV cache: that
does every kind of scaling, with angles exactly as `transformers` has them, and works sine and
cosine out once for all layers.

Imports TVM: import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import relax, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

from edgebench.runners.mlc_layout import JOINED_ATTENTION
from edgebench.runners.tvm_layers import Embedding, Matrix, Rotation

if TYPE_CHECKING:
    from edgebench.models.architecture import Architecture
    from edgebench.runners.mlc_layout import Quantization


class Attention(nn.Module):  # type: ignore[misc] # TVM has no types
    """Grouped-query attention over TVM's paged KV cache."""

    def __init__(self, architecture: Architecture, quantization: Quantization) -> None:
        super().__init__()
        self.heads, self.kv_heads = architecture.heads, architecture.kv_heads
        self.head_size, hidden = architecture.head_size, architecture.hidden_size
        joined = Matrix(
            hidden,
            (self.heads + 2 * self.kv_heads) * self.head_size,
            quantization,
            bias=architecture.attention_bias,
        )
        self.joined_name = JOINED_ATTENTION[architecture.family]
        setattr(self, self.joined_name, joined)
        self.o_proj = Matrix(
            self.heads * self.head_size, hidden, quantization, bias=architecture.output_bias
        )
        self.qk_norm = architecture.qk_norm
        if self.qk_norm:
            self.q_norm = _norm(self.head_size, architecture, quantization)
            self.k_norm = _norm(self.head_size, architecture, quantization)
        self.rotation = Rotation(architecture, quantization.dtype)

    def forward(
        self,
        state: nn.Tensor,
        cache: PagedKVCache,
        layer: int,
        tables: tuple[nn.Tensor, nn.Tensor],
    ) -> nn.Tensor:
        """From (1, n, hidden) to the same shape."""
        one, count, _ = state.shape
        joined = getattr(self, self.joined_name)(state)
        all_heads = self.heads + 2 * self.kv_heads
        joined = op.reshape(joined, (one, count, all_heads, self.head_size))
        if self.qk_norm:
            cuts = [self.heads, self.heads + self.kv_heads]
            queries, keys, values = op.split(joined, cuts, axis=2)
            joined = op.concat([self.q_norm(queries), self.k_norm(keys), values], dim=2)
        joined = self.rotation.rotate(joined, tables)
        scale = self.head_size**-0.5
        attended = cache.attention_with_fused_qkv(layer, joined, self.heads, sm_scale=scale)
        return self.o_proj(op.reshape(attended, (one, count, self.heads * self.head_size)))


class Mlp(nn.Module):  # type: ignore[misc] # TVM has no types
    """``down(silu(gate(x)) * up(x))``."""

    def __init__(self, architecture: Architecture, quantization: Quantization) -> None:
        super().__init__()
        hidden, inner = architecture.hidden_size, architecture.intermediate_size
        bias = architecture.mlp_bias
        self.gate_up_proj = Matrix(hidden, 2 * inner, quantization, bias=bias)
        self.down_proj = Matrix(inner, hidden, quantization, bias=bias)

    def forward(self, state: nn.Tensor) -> nn.Tensor:
        """From (1, n, hidden) to the same shape."""
        gate, up = op.split(self.gate_up_proj(state), 2, axis=-1)
        return self.down_proj(op.silu(gate) * up)


class Layer(nn.Module):  # type: ignore[misc] # TVM has no types
    """One of the layers."""

    def __init__(self, architecture: Architecture, quantization: Quantization) -> None:
        super().__init__()
        hidden = architecture.hidden_size
        self.self_attn = Attention(architecture, quantization)
        self.mlp = Mlp(architecture, quantization)
        self.input_layernorm = _norm(hidden, architecture, quantization)
        self.post_attention_layernorm = _norm(hidden, architecture, quantization)

    def forward(
        self,
        state: nn.Tensor,
        cache: PagedKVCache,
        layer: int,
        tables: tuple[nn.Tensor, nn.Tensor],
    ) -> nn.Tensor:
        """From (1, n, hidden) to the same shape."""
        attended = self.self_attn(self.input_layernorm(state), cache, layer, tables)
        state = state + attended
        return state + self.mlp(self.post_attention_layernorm(state))


def _norm(size: int, architecture: Architecture, quantization: Quantization) -> nn.RMSNorm:
    epsilon = architecture.norm_epsilon
    return nn.RMSNorm(size, -1, epsilon, bias=False, dtype=quantization.dtype)


class Body(nn.Module):  # type: ignore[misc] # TVM has no types
    """Everything between ids and logits."""

    def __init__(self, architecture: Architecture, quantization: Quantization) -> None:
        super().__init__()
        hidden = architecture.hidden_size
        self.embed_tokens = Embedding(hidden, architecture.vocabulary_size, quantization)
        layers = range(architecture.layers)
        self.layers = nn.ModuleList([Layer(architecture, quantization) for _ in layers])
        self.norm = _norm(hidden, architecture, quantization)
        self.rotation = Rotation(architecture, quantization.dtype)

    def forward(self, state: nn.Tensor, cache: PagedKVCache) -> nn.Tensor:
        """From (1, n, hidden) to the same shape."""
        tables = self.rotation.tables(cache, state.shape[1])
        for number, layer in enumerate(self.layers):
            state = layer(state, cache, number, tables)
        return self.norm(state)


class Decoder(nn.Module):  # type: ignore[misc] # TVM has no types
    """A model with the functions of MLC's libraries.

    Args:
        architecture: what its forward pass is.
        quantization: how weights are kept and with what is computed.
        target: what it will be compiled for, by which TVM chooses the cache's kernels.
    """

    def __init__(
        self, architecture: Architecture, quantization: Quantization, target: object
    ) -> None:
        super().__init__()
        self.architecture, self.target = architecture, target
        self.dtype: str = quantization.dtype
        self.model = Body(architecture, quantization)
        if not architecture.tied_embeddings:
            hidden, vocabulary = architecture.hidden_size, architecture.vocabulary_size
            self.lm_head = Matrix(hidden, vocabulary, quantization)

    def _logits(self, state: nn.Tensor) -> nn.Tensor:
        tied = self.architecture.tied_embeddings
        head = self.model.embed_tokens if tied else self.lm_head
        logits = head(state, "float32")
        return logits if logits.dtype == "float32" else logits.astype("float32")

    def embed(self, input_ids: nn.Tensor) -> nn.Tensor:
        """Rows of the embedding, (n, hidden), of tokens (n,)."""
        return self.model.embed_tokens.rows(input_ids)

    def prefill(
        self, input_embed: nn.Tensor, paged_kv_cache: PagedKVCache
    ) -> tuple[nn.Tensor, PagedKVCache]:
        """Logits (1, 1, vocabulary) after the last of (1, n, hidden)."""
        state = self.model(input_embed, paged_kv_cache)
        one, _, hidden = state.shape

        def last(state: te.Tensor) -> te.Tensor:
            end = state.shape[1] - 1
            return te.compute(
                (one, 1, hidden), lambda b, _, column: state[b, end, column], name="index_last"
            )

        state = op.tensor_expr_op(last, "index_last", [state])
        return self._logits(state), paged_kv_cache

    def decode(
        self, input_embed: nn.Tensor, paged_kv_cache: PagedKVCache
    ) -> tuple[nn.Tensor, PagedKVCache]:
        """Logits (1, 1, vocabulary) after one token, (1, 1, hidden)."""
        return self._logits(self.model(input_embed, paged_kv_cache)), paged_kv_cache

    def batch_verify(
        self, input_embeds: nn.Tensor, paged_kv_cache: PagedKVCache
    ) -> tuple[nn.Tensor, PagedKVCache]:
        """Logits (1, n, vocabulary) after each of (1, n, hidden)."""
        return self._logits(self.model(input_embeds, paged_kv_cache)), paged_kv_cache

    def create_tir_paged_kv_cache(
        self,
        max_batch_size: tirx.Var,
        max_total_seq_len: tirx.Var,
        prefill_chunk_size: tirx.Var,
        page_size: tirx.Var,
        support_sliding_window: tirx.Var,
    ) -> PagedKVCache:
        """An empty cache."""
        architecture = self.architecture
        head_size = architecture.head_size
        return TIRPagedKVCache(
            attn_kind="mha",
            max_batch_size=max_batch_size,
            max_total_seq_len=max_total_seq_len,
            prefill_chunk_size=prefill_chunk_size,
            page_size=page_size,
            support_sliding_window=support_sliding_window,
            layer_partition=relax.ShapeExpr([0, architecture.layers]),
            num_hidden_layers=architecture.layers,
            num_attention_heads=architecture.heads,
            num_key_value_heads=architecture.kv_heads,
            qk_head_dim=head_size,
            v_head_dim=head_size,
            mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0,
            # What stands in it has been rotated.
            rope_mode=RopeMode.NONE,
            rope_scale=1,
            rope_theta=10000,
            rope_scaling={},
            rope_ext_factors=relax.prim_value(0),
            rotary_dim=head_size,
            enable_disaggregation=False,
            dtype=self.dtype,
            target=self.target,
        )

    def functions(self) -> nn.spec.ModuleSpec:
        """The functions that a library has, and the shapes that they take."""
        hidden = self.architecture.hidden_size
        packed = {"param_mode": "packed", "effect_mode": "none"}
        plain = {"param_mode": "none", "effect_mode": "none"}
        cache = nn.spec.Object(object_type=PagedKVCache)

        def step(name: str, count: int | str) -> dict[str, object]:
            state = nn.spec.Tensor([1, count, hidden], self.dtype)
            return {name: state, "paged_kv_cache": cache, "$": packed}

        sizes = (
            "max_batch_size",
            "max_total_seq_len",
            "prefill_chunk_size",
            "page_size",
            "support_sliding_window",
        )
        functions = {
            "embed": {"input_ids": nn.spec.Tensor(["seq_len"], "int32"), "$": packed},
            "prefill": step("input_embed", "seq_len"),
            "decode": step("input_embed", 1),
            "batch_verify": step("input_embeds", "seq_len"),
            "create_tir_paged_kv_cache": {**dict.fromkeys(sizes, int), "$": plain},
        }
        return nn.spec.ModuleSpec.from_raw(functions, self)
