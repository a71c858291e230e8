"""Inverse frequencies of rotary positions, with the scalings that models are trained with.

All of it is worked out in float64. The results equal those of ``transformers``
(``modeling_rope_utils``), which works in float32, up to float32's rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.architecture import Rope

if TYPE_CHECKING:
    from numpy.typing import NDArray


def default_rope(theta: float, head_size: int) -> Rope:
    """Rotary positions as first published (https://arxiv.org/abs/2104.09864)."""
    return Rope(theta, "default", _tuple(_base(theta, head_size)))


def linear_rope(theta: float, head_size: int, *, factor: float) -> Rope:
    """Every position divided by `factor` (https://arxiv.org/abs/2306.15595)."""
    return Rope(
        theta,
        "linear",
        _tuple(_base(theta, head_size) / factor),
        scaling=(("factor", factor),),
    )


def llama3_rope(
    theta: float,
    head_size: int,
    *,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_context: int,
) -> Rope:
    """Slow rotations are divided by `factor`, fast ones kept, those between are blended.

    As Llama 3.1 does it (https://arxiv.org/abs/2407.21783 and its published code).

    Args:
        theta: the base.
        head_size: of one head, in numbers.
        factor: by how much slow rotations are slowed down.
        low_freq_factor: rotations within `original_context` below which one is slow.
        high_freq_factor: those above which one is fast.
        original_context: the context, in tokens, before the scaling.
    """
    base = _base(theta, head_size)
    turns = original_context * base / (2 * math.pi)
    kept = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0.0, 1.0)
    scaling = (
        ("factor", factor),
        ("low_freq_factor", low_freq_factor),
        ("high_freq_factor", high_freq_factor),
        ("original_max_position_embeddings", float(original_context)),
    )
    frequencies = base * kept + base / factor * (1.0 - kept)
    return Rope(theta, "llama3", _tuple(frequencies), scaling=scaling)


def yarn_rope(
    theta: float,
    head_size: int,
    *,
    factor: float,
    original_context: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
    truncate: bool = True,
) -> Rope:
    """YaRN: fast dimensions kept, slow ones divided, a ramp between (arXiv 2309.00071).

    Args:
        theta: the base.
        head_size: of one head, in numbers.
        factor: by how much slow rotations are slowed down.
        original_context: the context, in tokens, before the scaling.
        beta_fast: rotations within `original_context` from which on a dimension is fast.
        beta_slow: rotations below which it is slow.
        attention_factor: what cosine and sine are multiplied by; as the paper says where None.
        truncate: the ramp's ends are whole dimensions.
    """
    if attention_factor is None:
        attention_factor = yarn_mscale(factor)
    # The logarithm of a quotient as a difference: absurd numbers of a damaged file overflow else.
    low, high = (
        head_size
        * (math.log(original_context / (2 * math.pi)) - math.log(turns))
        / (2 * math.log(theta))
        for turns in (beta_fast, beta_slow)
    )
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_size - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(head_size // 2, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    base = _base(theta, head_size)
    scaling = (
        ("factor", factor),
        ("original_max_position_embeddings", float(original_context)),
        ("beta_fast", beta_fast),
        ("beta_slow", beta_slow),
        ("attention_factor", attention_factor),
        ("truncate", float(truncate)),
    )
    frequencies = base / factor * ramp + base * (1.0 - ramp)
    return Rope(theta, "yarn", _tuple(frequencies), attention_factor, scaling)


def yarn_mscale(factor: float, weight: float = 1.0) -> float:
    """YaRN's recommended attention factor; 1 where `factor` does not stretch."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _base(theta: float, head_size: int) -> NDArray[np.float64]:
    exponents = np.arange(0, head_size, 2, dtype=np.float64) / head_size
    return np.asarray(1.0 / theta**exponents, dtype=np.float64)


def _tuple(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
