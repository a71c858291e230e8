"""The parts of a decoder in TVM's `relax`: matrices, whole or in groups, and rotary positions.

Imports TVM: import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

from edgebench.runners.mlc_layout import GROUP, PER_WORD
from edgebench.runners.tvm_words import LARGEST, word_product

if TYPE_CHECKING:
    from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache

    from edgebench.models.architecture import Architecture
    from edgebench.runners.mlc_layout import Quantization

PRODUCT_PATTERN = 4
"""TVM's number for an operator to which others, number by number, may be fused."""


def _weight(
    words: te.Tensor, scales: te.Tensor, row: tirx.Expr, column: tirx.Expr, dtype: str
) -> tirx.Expr:
    """One weight out of its group: ``(code - 7) * scale``."""
    shift = tirx.Cast("uint32", column % PER_WORD * 4)
    code = tirx.bitwise_and(
        tirx.shift_right(words[row, column // PER_WORD], shift), tirx.const(15, "uint32")
    )
    # By way of a signed number, from which CPUs convert faster.
    level = tirx.Cast(dtype, tirx.Cast("int32", code)) - tirx.const(LARGEST, dtype)
    return level * scales[row, column // GROUP]


class Matrix(nn.Module):  # type: ignore[misc] # TVM has no types
    """Weights (outputs, inputs), whole or in groups.

    Args:
        inputs, outputs: its lengths.
        quantization: how they are kept.
        bias: added to the product.
    """

    def __init__(
        self, inputs: int, outputs: int, quantization: Quantization, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.dtype = inputs, outputs, quantization.dtype
        self.grouped = quantization.grouped
        if self.grouped:
            groups = -(-inputs // GROUP)
            self.q_weight = nn.Parameter((outputs, groups * GROUP // PER_WORD), "uint32")
            self.q_scale = nn.Parameter((outputs, groups), self.dtype)
        else:
            self.weight = nn.Parameter((outputs, inputs), self.dtype)
        self.bias = nn.Parameter((outputs,), self.dtype) if bias else None

    def forward(self, state: nn.Tensor, out_dtype: str | None = None) -> nn.Tensor:
        """The product of (1, n, inputs) and the transposed weights: (1, n, outputs).

        Summed up in float32 whatever the weights are.
        """
        out_dtype = out_dtype or self.dtype
        if self.grouped:
            product = self._grouped(state)
        else:
            product = op.matmul(state, op.permute_dims(self.weight), out_dtype="float32")
        if product.dtype != out_dtype:
            product = product.astype(out_dtype)
        return product if self.bias is None else product + self.bias

    def _grouped(self, state: nn.Tensor) -> nn.Tensor:
        arguments = [state, self.q_weight, self.q_scale]
        if state.shape[1] == 1 and self.inputs % GROUP == 0 and self.dtype == "float32":
            # Told to be a product, so that what follows it is fused to it.
            told = {"op_pattern": PRODUCT_PATTERN}
            return op.tensor_expr_op(word_product, "NT_words_matmul", arguments, attrs=told)
        return op.tensor_expr_op(self._grouped_product, "NT_dequant_matmul", arguments)

    def _grouped_product(self, state: te.Tensor, words: te.Tensor, scales: te.Tensor) -> te.Tensor:
        weights = te.compute(
            (self.outputs, self.inputs),
            lambda row, column: _weight(words, scales, row, column, self.dtype),
            name="dequantize",
        )
        along = te.reduce_axis((0, self.inputs), name="k")
        return te.compute(
            (state.shape[0], state.shape[1], self.outputs),
            lambda b, i, j: te.sum(state[b, i, along] * weights[j, along], axis=along),
            name="NT_matmul",
        )


class Embedding(Matrix):
    """Weights (vocabulary, hidden), which give a row for each token, and logits where tied."""

    def rows(self, ids: nn.Tensor) -> nn.Tensor:
        """The rows (n, hidden) of tokens (n,)."""

        def taken(*arguments: te.Tensor) -> te.Tensor:
            *kept, ids = arguments

            def one(place: tirx.Var, column: tirx.Var) -> tirx.Expr:
                row = ids[place]
                if self.grouped:
                    return _weight(kept[0], kept[1], row, column, self.dtype)
                return kept[0][row, column]

            return te.compute((ids.shape[0], self.inputs), one, name="take")

        kept = [self.q_weight, self.q_scale] if self.grouped else [self.weight]
        return op.tensor_expr_op(taken, "take", [*kept, ids])


class Rotation:
    """Rotates queries and keys by the positions that the KV cache has for them.

    Args:
        architecture: its rope's frequencies and factor.
        dtype: of queries and keys.
    """

    def __init__(self, architecture: Architecture, dtype: str) -> None:
        self._architecture = architecture
        self._dtype = dtype

    def tables(self, cache: PagedKVCache, count: tirx.Expr) -> tuple[nn.Tensor, nn.Tensor]:
        """Cosine and sine (n, head_size / 2), in float32, of the next n positions."""
        rope = self._architecture.rope
        half = len(rope.inverse_frequencies)
        inverse = nn.Tensor.from_const(np.asarray(rope.inverse_frequencies, np.float32))
        factor = tirx.const(rope.attention_factor, "float32")

        def both(positions: te.Tensor, inverse: te.Tensor) -> list[te.Tensor]:
            def angle(place: tirx.Var, pair: tirx.Var) -> tirx.Expr:
                return tirx.Cast("float32", positions[place]) * inverse[pair]

            shape = (positions.shape[0], half)
            return [
                te.compute(shape, lambda i, j: tirx.cos(angle(i, j)) * factor, name="cosine"),
                te.compute(shape, lambda i, j: tirx.sin(angle(i, j)) * factor, name="sine"),
            ]

        positions = cache.get_query_positions(count)
        cosine, sine = op.tensor_expr_op(both, "rope_tables", [positions, inverse])
        return cosine, sine

    def rotate(self, joined: nn.Tensor, tables: tuple[nn.Tensor, nn.Tensor]) -> nn.Tensor:
        """Rotate the heads of (1, n, heads + 2 * kv_heads, head_size) but those of values."""
        architecture = self._architecture
        rotated = architecture.heads + architecture.kv_heads
        half = architecture.head_size // 2

        def turn(joined: te.Tensor, cosine: te.Tensor, sine: te.Tensor) -> te.Tensor:
            def one(b: tirx.Var, i: tirx.Var, head: tirx.Var, column: tirx.Var) -> tirx.Expr:
                value = tirx.Cast("float32", joined[b, i, head, column])
                other = tirx.Cast("float32", joined[b, i, head, (column + half) % (2 * half)])
                other = tirx.Select(column < half, -other, other)
                pair = column % half
                turned = value * cosine[i, pair] + other * sine[i, pair]
                turned = tirx.Select(head < rotated, turned, value)
                return tirx.Cast(self._dtype, turned)

            return te.compute(joined.shape, one, name="rotate")

        return op.tensor_expr_op(turn, "rotate", [joined, *tables])
