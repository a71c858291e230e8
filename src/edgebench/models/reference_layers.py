"""The parts of a decoder layer in numpy, float32, as the papers and transformers define them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.weights import Floats, row_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.architecture import Architecture, Rope
    from edgebench.models.weights import Weights

QUERY_ROWS = 256
"""Queries whose attention is computed at once: it takes 4 bytes x heads x rows x keys."""


@dataclass(frozen=True, slots=True)
class Span:
    """Rows ``[start:stop]`` of the tokens of a pass that follow each other.

    Attributes:
        before: the rows, start and stop, that stand before them in their text; empty where
            nothing does.
    """

    start: int
    stop: int
    before: tuple[int, int] = (0, 0)


def linear(weights: Weights, name: str, values: Floats) -> Floats:
    """``values @ W.T + b`` of the projection `name`, never all of W in memory.

    Args:
        weights: of the model.
        name: without ``.weight`` and ``.bias``; the bias is added where there is one.
        values: (tokens, in).

    Returns:
        (tokens, out).
    """
    tensor = weights[f"{name}.weight"]
    out = np.empty((len(values), tensor.shape[0]), dtype=np.float32)
    start = 0
    for rows in row_blocks(tensor):
        np.matmul(values, rows.T, out=out[:, start : start + len(rows)])
        start += len(rows)
    bias = weights.get(f"{name}.bias")
    if bias is not None:
        out += bias.read()
    return out


def rms_norm(values: Floats, scale: Floats, epsilon: float) -> Floats:
    """Each vector along the last axis over its root mean square, times `scale`."""
    mean = np.mean(values * values, axis=-1, keepdims=True, dtype=np.float32)
    root = np.sqrt(mean + epsilon).astype(np.float32)
    return (values / root) * scale


def rotation(rope: Rope, positions: Sequence[int]) -> tuple[Floats, Floats]:
    """Cosine and sine for each position and pair of a head, each (tokens, 1, head_size / 2)."""
    frequencies = np.asarray(rope.inverse_frequencies, dtype=np.float64)
    angles = np.asarray(positions, dtype=np.float64)[:, None] * frequencies
    cosine, sine = (
        (function(angles) * rope.attention_factor).astype(np.float32)[:, None, :]
        for function in (np.cos, np.sin)
    )
    return cosine, sine


def rotate(values: Floats, cosine: Floats, sine: Floats) -> Floats:
    """Turn each head's first half against its second; `values` is (tokens, heads, head_size)."""
    half = values.shape[-1] // 2
    first, second = values[..., :half], values[..., half:]
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)


def attention(
    architecture: Architecture,
    weights: Weights,
    prefix: str,
    values: Floats,
    turn: tuple[Floats, Floats],
    spans: Sequence[Span],
) -> Floats:
    """Self-attention of one layer, with its four projections.

    Args:
        architecture: of the model.
        weights: of the model.
        prefix: of the layer's names, such as ``model.layers.0.``.
        values: (tokens, hidden), normalised.
        turn: what `rotation` gave.
        spans: which tokens follow each other.

    Returns:
        (tokens, hidden).
    """
    size = architecture.head_size
    queries = linear(weights, f"{prefix}self_attn.q_proj", values)
    keys = linear(weights, f"{prefix}self_attn.k_proj", values)
    queries = queries.reshape(len(values), architecture.heads, size)
    keys = keys.reshape(len(values), architecture.kv_heads, size)
    if architecture.qk_norm:
        epsilon = architecture.norm_epsilon
        queries = rms_norm(queries, weights[f"{prefix}self_attn.q_norm.weight"].read(), epsilon)
        keys = rms_norm(keys, weights[f"{prefix}self_attn.k_norm.weight"].read(), epsilon)
    queries, keys = rotate(queries, *turn), rotate(keys, *turn)
    held = linear(weights, f"{prefix}self_attn.v_proj", values).reshape(keys.shape)
    seen = np.empty_like(queries)
    for span in spans:
        _attend(queries, keys, held, span, seen)
    return linear(weights, f"{prefix}self_attn.o_proj", seen.reshape(len(values), -1))


def _attend(queries: Floats, keys: Floats, held: Floats, span: Span, seen: Floats) -> None:
    """Fill ``seen[span]``: each token looks at those before its span and at its span up to itself.

    `queries` and `seen` are (tokens, heads, size), `keys` and `held` (tokens, kv_heads, size).
    """
    before = slice(*span.before)
    rows = slice(span.start, span.stop)
    known = span.before[1] - span.before[0]
    # Shapes: kv_heads, size, keys; and kv_heads, keys, size.
    all_keys = np.concatenate((keys[before], keys[rows])).transpose(1, 2, 0)
    all_held = np.concatenate((held[before], held[rows])).transpose(1, 0, 2)
    heads, size = queries.shape[1:]
    groups = keys.shape[1]
    scale = np.float32(1 / np.sqrt(size))
    for start in range(span.start, span.stop, QUERY_ROWS):
        stop = min(start + QUERY_ROWS, span.stop)
        count = stop - start
        # The queries of the heads that share a key head stand below each other.
        grouped = queries[start:stop].reshape(count, groups, heads // groups, size)
        asked = grouped.transpose(1, 2, 0, 3).reshape(groups, -1, size)
        visible = known + stop - span.start  # to the last of these queries
        flat = (asked @ all_keys[..., :visible]) * scale
        last = known + np.arange(start - span.start, stop - span.start)
        hidden = np.arange(visible)[None, :] > last[:, None]
        scores = flat.reshape(groups, heads // groups, count, visible)
        scores += np.where(hidden, np.float32(-np.inf), np.float32(0))
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = scores.reshape(groups, -1, visible) @ all_held[:, :visible]
        mixed = mixed.reshape(groups, heads // groups, count, size).transpose(2, 0, 1, 3)
        seen[start:stop] = mixed.reshape(count, heads, size)


def feed_forward(weights: Weights, prefix: str, values: Floats) -> Floats:
    """The gated MLP of one layer: down(silu(gate) * up); (tokens, hidden) in and out."""
    gate = linear(weights, f"{prefix}mlp.gate_proj", values)
    # The sigmoid; with tanh, a very negative gate overflows nowhere.
    share = gate * np.float32(0.5)
    np.tanh(share, out=share)
    share += 1
    share *= 0.5
    gate *= share
    del share
    gate *= linear(weights, f"{prefix}mlp.up_proj", values)
    return linear(weights, f"{prefix}mlp.down_proj", gate)
