"""Rotary positions as a Hugging Face configuration describes them, old style and new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields, shown
from edgebench.models.rope import (
    default_rope,
    linear_rope,
    llama3_rope,
    yarn_mscale,
    yarn_rope,
)

if TYPE_CHECKING:
    from edgebench.models.architecture import Rope

DEFAULT_THETA = 10_000.0


def rope_of(config: Fields, head_size: int, context_tokens: int) -> Rope:
    """The rotary positions of a ``config.json``.

    Older files have ``rope_theta`` and ``rope_scaling`` beside each other, newer ones
    (transformers 5) ``rope_parameters`` with both inside; where both are there, the older name
    wins, as it does there.

    Raises:
        UnsupportedModelError: a scaling, or a key of one, that is not understood.
        ModelFormatError: a value is missing or of the wrong type.
    """
    theta = config.number("rope_theta", DEFAULT_THETA)
    parameters = config.section("rope_parameters")
    old = config.section("rope_scaling")
    if old is not None and old.values:
        parameters = old
    outer_context = config.get("original_max_position_embeddings")
    if parameters is None:
        parameters = Fields(config.where, {})
    theta = parameters.number("rope_theta", theta)
    if theta <= 1:
        msg = f"{config.where}: rope_theta should be above 1, but it is {theta:g}; damaged"
        raise ModelFormatError(msg)
    _refuse_partial(config)
    _refuse_partial(parameters)
    kind = parameters.text("rope_type", parameters.text("type", "default"))
    context = context_tokens
    if parameters.get("original_max_position_embeddings") is not None:
        context = parameters.integer("original_max_position_embeddings")
    if outer_context is not None:
        context = config.integer("original_max_position_embeddings")
    rope = _scaled(kind, parameters, theta, head_size, context, context_tokens)
    parameters.get("finetuned")  # says where the numbers came from
    _refuse_unused(parameters)
    return rope


def _scaled(
    kind: str, fields: Fields, theta: float, head_size: int, context: int, context_tokens: int
) -> Rope:
    if kind == "default":
        return default_rope(theta, head_size)
    if kind == "linear":
        return linear_rope(theta, head_size, factor=fields.number("factor"))
    if kind == "llama3":
        low, high = fields.number("low_freq_factor"), fields.number("high_freq_factor")
        if low >= high:
            msg = (
                f"{fields.where}: low_freq_factor ({low:g}) should be below high_freq_factor "
                f"({high:g}); the file is damaged or wrong"
            )
            raise ModelFormatError(msg)
        return llama3_rope(
            theta,
            head_size,
            factor=fields.number("factor"),
            low_freq_factor=low,
            high_freq_factor=high,
            original_context=context,
        )
    if kind == "yarn":
        return _yarn(fields, theta, head_size, context, context_tokens)
    msg = (
        f"{fields.where}: the rotary scaling {shown(kind)} is not understood; understood are "
        "default, linear, llama3 and yarn"
    )
    raise UnsupportedModelError(msg)


def _yarn(fields: Fields, theta: float, head_size: int, context: int, context_tokens: int) -> Rope:
    factor = fields.number("factor", context_tokens / context)
    attention: float | None = None
    if fields.get("attention_factor") is not None:
        attention = fields.number("attention_factor")
    # Two weights of a rule for the attention factor; it takes both to matter.
    above, below = fields.get("mscale"), fields.get("mscale_all_dim")
    if attention is None and above and below:
        attention = yarn_mscale(factor, fields.number("mscale"))
        attention /= yarn_mscale(factor, fields.number("mscale_all_dim"))
    return yarn_rope(
        theta,
        head_size,
        factor=factor,
        original_context=context,
        beta_fast=fields.number("beta_fast", 32.0),
        beta_slow=fields.number("beta_slow", 1.0),
        attention_factor=attention,
        truncate=fields.flag("truncate", default=True),
    )


def _refuse_partial(fields: Fields) -> None:
    share = fields.number("partial_rotary_factor", 1.0)
    if share != 1.0:
        msg = (
            f"{fields.where}: partial_rotary_factor is {share:g}: heads that are rotated in part "
            "are not understood"
        )
        raise UnsupportedModelError(msg)


def _refuse_unused(fields: Fields) -> None:
    unused = fields.unused()
    if unused:
        named = ", ".join(f"{key} = {shown(value)}" for key, value in unused.items())
        msg = (
            f"{fields.where}: {named} is not understood with this rotary scaling, and may change "
            "what the model computes"
        )
        raise UnsupportedModelError(msg)
