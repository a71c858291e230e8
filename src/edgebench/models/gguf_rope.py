"""Rotary positions as a GGUF file's metadata describe them, as llama.cpp understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.architecture import Rope
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import shown
from edgebench.models.rope import default_rope, linear_rope, llama3_rope, yarn_rope

if TYPE_CHECKING:
    from edgebench.models.fields import Fields
    from edgebench.models.weights import Floats

DEFAULT_THETA = 10_000.0

# The scalings of the Llama 3.1 and 3.2 models, but for the factor, which is the greatest of the
# tensor's. Low and high frequency factor, and original context.
PUBLISHED = ((1.0, 4.0, 8192),)

# Neutral values of what llama.cpp multiplies on top of YaRN's own factors.
NEUTRAL = {"attn_factor": 1.0, "yarn_attn_factor": 1.0, "yarn_ext_factor": 1.0}


def rope_of(fields: Fields, head_size: int, context_tokens: int, factors: Floats | None) -> Rope:
    """The rotary positions of a GGUF file.

    Args:
        fields: the keys of its architecture.
        head_size: of one head, in numbers.
        context_tokens: the longest context.
        factors: what each inverse frequency is divided by (the tensor ``rope_freqs.weight``).

    Raises:
        UnsupportedModelError: a scaling, or a key of one, that is not understood.
        ModelFormatError: a value is of the wrong type, or the factors are too few or many.
    """
    theta = fields.number("rope.freq_base", DEFAULT_THETA)
    if theta <= 1:
        msg = f"{fields.where}: rope.freq_base should be above 1, but it is {theta:g}; damaged"
        raise ModelFormatError(msg)
    kind = fields.text("rope.scaling.type", "linear")
    factor = fields.number("rope.scaling.factor", fields.number("rope.scale_linear", 1.0))
    context = fields.integer("rope.scaling.original_context_length", context_tokens)
    if kind not in {"none", "linear", "yarn"}:
        msg = (
            f"{fields.where}: the rotary scaling {shown(kind)} is not understood; understood are "
            "none, linear and yarn, and Llama 3's factors"
        )
        raise UnsupportedModelError(msg)
    for key, neutral in NEUTRAL.items():
        value = fields.number(f"rope.scaling.{key}", neutral)
        if value != neutral:
            msg = f"{fields.where}: rope.scaling.{key} = {value:g} is not understood"
            raise UnsupportedModelError(msg)
    scaled = kind != "none" and factor != 1.0
    if factors is not None:
        if scaled:
            msg = (
                f"{fields.where}: {kind} scaling by {factor:g} together with the factors of "
                "rope_freqs.weight is not understood"
            )
            raise UnsupportedModelError(msg)
        return _divided(fields, theta, head_size, factors)
    if kind == "yarn":
        return yarn_rope(
            theta,
            head_size,
            factor=factor,
            original_context=context,
            beta_fast=fields.number("rope.scaling.yarn_beta_fast", 32.0),
            beta_slow=fields.number("rope.scaling.yarn_beta_slow", 1.0),
        )
    if scaled:
        return linear_rope(theta, head_size, factor=factor)
    return default_rope(theta, head_size)


def _divided(fields: Fields, theta: float, head_size: int, factors: Floats) -> Rope:
    plain = default_rope(theta, head_size)
    if factors.shape != (head_size // 2,) or not (factors > 0).all():
        msg = (
            f"{fields.where}: rope_freqs.weight has shape {list(factors.shape)}, and should have "
            f"{head_size // 2} numbers above 0; the file is damaged or wrong"
        )
        raise ModelFormatError(msg)
    divided = np.asarray(plain.inverse_frequencies) / factors.astype(np.float64)
    for low, high, context in PUBLISHED:
        rope = llama3_rope(
            theta,
            head_size,
            factor=float(str(factors.max())),
            low_freq_factor=low,
            high_freq_factor=high,
            original_context=context,
        )
        # The file's factors are roundings to float32 of just this.
        if np.allclose(divided, rope.inverse_frequencies, rtol=1e-6, atol=0):
            return rope
    if (factors == 1).all():
        return plain
    return Rope(theta, "llama3", tuple(float(value) for value in divided))
