"""Which shapes of a model MNN computes correctly, and which blocks of integers fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from edgebench.models.architecture import Architecture
    from edgebench.runners.mnn_weights import Format

STEP = 8
"""MNN multiplies integers eight columns at a time. With other blocks its low-memory mode gives
wrong numbers without a word: with blocks of 2, 6, 10 or 30 always, of 20 as soon as a prompt is
shared among threads; with 4 and 12 the number of threads shows (3.6.1 on x86-64)."""

SUGGESTED = (16, 32, 48, 64, 96, 128, 192, 256)


def check_shapes(architecture: Architecture, weights: Format, output: Format) -> None:
    """Refuse by name what MNN would compute wrongly.

    Raises:
        RunnerFailure: the head's size is odd, or blocks don't fit the linear layers.
    """
    if architecture.head_size % 2:
        msg = f"heads of {architecture.head_size} numbers can't be rotated: the size is odd"
        raise RunnerFailure(msg, reason="unsupported")
    layers = {
        "hidden_size": architecture.hidden_size,
        "heads x head_size": architecture.heads * architecture.head_size,
        "intermediate_size": architecture.intermediate_size,
    }
    inputs: dict[str, int] = {}
    if weights.integers:
        inputs |= layers
    if output.integers:
        inputs["hidden_size"] = architecture.hidden_size
    if inputs:
        _check_blocks(inputs, (weights if weights.integers else output).block_size)


def _check_blocks(inputs: dict[str, int], size: int) -> None:
    """Every layer's inputs are whole blocks, and a block is whole steps."""
    if size < 0 or size % STEP:
        problem = f"is no multiple of {STEP}, which MNN needs to multiply integers correctly"
    elif size:
        unfit = _listed({name: n for name, n in inputs.items() if n % size})
        problem = f"does not divide {unfit}" if unfit else ""
    else:
        unfit = _listed({name: n for name, n in inputs.items() if n % STEP})
        problem = f"(whole rows) needs multiples of {STEP}, unlike {unfit}" if unfit else ""
    if problem:
        fit = [n for n in SUGGESTED if not any(count % n for count in inputs.values())]
        remedy = f"these fit: {', '.join(map(str, fit))}" if fit else _other_sizes(inputs)
        msg = f"block_size {size} {problem}; {remedy}"
        raise RunnerFailure(msg, reason="invalid")


def _other_sizes(inputs: dict[str, int]) -> str:
    """What to do where none of the usual sizes fits."""
    if all(count % STEP == 0 for count in inputs.values()):
        return f"{STEP} fits, and 0 for whole rows"
    return "none fits this model: choose fp16 or fp32"


def _listed(inputs: dict[str, int]) -> str:
    return " and ".join(f"{name} {count}" for name, count in inputs.items())
