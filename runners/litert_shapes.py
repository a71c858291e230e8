"""Which shapes of a model LiteRT's graphs take, and which lengths go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from edgebench.models.architecture import Architecture
    from edgebench.runners.base import Scalar
    from edgebench.runners.litert_decoder import Forms

STEP = 32
"""Other blocks of 4 bits are computed correctly, but by kernels that are there for reference:
SmolLM2 decoded 25 times slower with blocks of 16 and 48 than with 32 (ai-edge-litert 2.3.0)."""

SUGGESTED = (32, 64, 128, 256)


def check_shapes(architecture: Architecture, forms: Forms) -> None:
    """Refuse by name what LiteRT can't compute.

    Raises:
        RunnerFailure: the head's size is odd, or blocks don't fit the linear layers.
    """
    if architecture.head_size % 2:
        msg = f"heads of {architecture.head_size} numbers can't be rotated: the size is odd"
        raise RunnerFailure(msg, reason="unsupported")
    inputs: dict[str, int] = {}
    if forms.layers.precision == "int4":
        inputs = {
            "hidden_size": architecture.hidden_size,
            "heads x head_size": architecture.heads * architecture.head_size,
            "intermediate_size": architecture.intermediate_size,
        }
    elif forms.output.precision == "int4":
        inputs = {"hidden_size": architecture.hidden_size}
    if inputs:
        _check_blocks(inputs, forms.layers.block_size)


def _check_blocks(inputs: dict[str, int], size: int) -> None:
    """Every layer's inputs are whole blocks, and a block is whole steps."""
    problem = ""
    if size < 1 or size % STEP:
        problem = f"is no multiple of {STEP}, without which LiteRT is many times slower"
    elif unfit := {name: count for name, count in inputs.items() if count % size}:
        listed = " and ".join(f"{name} {count}" for name, count in unfit.items())
        problem = f"does not divide {listed}"
    if not problem:
        return
    fit = [n for n in SUGGESTED if not any(count % n for count in inputs.values())]
    remedy = f"these fit: {', '.join(map(str, fit))}" if fit else "none fits: choose int8"
    msg = f"block_size {size} {problem}; {remedy}"
    raise RunnerFailure(msg, reason="invalid")


def check_lengths(prefill_lengths: Scalar, cache_length: int) -> tuple[int, ...]:
    """The prefill lengths of a list such as ``32,128,512``, ascending.

    The engine shares a prompt out among the graphs and pads the last part; it refuses prompts that
    don't fit into the cache with that. If all lengths are multiples of the shortest, every prompt
    fits that the cache can hold.

    Raises:
        RunnerFailure: one is no whole number from 2 to the cache's length, or stands twice; or one,
            or the cache's length, is no multiple of the shortest.
    """
    lengths: list[int] = []
    for part in str(prefill_lengths).split(","):
        if not part.strip().isdecimal() or not 1 < int(part) <= cache_length:
            msg = (
                f"prefill_lengths {prefill_lengths} should be whole numbers from 2 to "
                f"cache_length {cache_length}, with commas between, unlike {part.strip()!r}"
            )
            raise RunnerFailure(msg, reason="invalid")
        lengths.append(int(part))
    if len(set(lengths)) < len(lengths):
        msg = f"prefill_lengths {prefill_lengths} names a length twice"
        raise RunnerFailure(msg, reason="invalid")
    least = min(lengths)
    named = {f"the prefill length {length}": length for length in lengths}
    for name, length in {**named, "cache_length": cache_length}.items():
        if length % least:
            shown = name if length in lengths else f"{name} {length}"
            msg = (
                f"{shown} is no multiple of the shortest prefill length {least}, without which "
                "LiteRT-LM has no room for the padding of some prompts"
            )
            raise RunnerFailure(msg, reason="invalid")
    return tuple(sorted(lengths))
