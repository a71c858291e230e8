"""Which tokens run together."""

from __future__ import annotations

import pytest

from edgebench.models.architecture import Architecture, Rope
from edgebench.models.reference_plan import PASS_BYTES, PASS_TOKENS, passes, tokens_a_pass


def architecture(scale: int) -> Architecture:
    return Architecture(
        family="llama", layers=2, hidden_size=64 * scale, intermediate_size=172 * scale,
        heads=scale, kv_heads=scale, head_size=64, vocabulary_size=32_000, context_tokens=4096,
        norm_epsilon=1e-5, rope=Rope(1e4, "default", (1.0,)),
    )  # fmt: skip


def test_a_pass_of_a_large_model_has_fewer_tokens() -> None:
    """A small one has the most; with Llama 2 7B's sizes, gate and up alone stay below the limit."""
    assert tokens_a_pass(architecture(4), 240) == PASS_TOKENS
    seven = tokens_a_pass(architecture(64), 240)
    assert 2000 < seven < PASS_TOKENS
    assert seven * 4 * (2 * 11_008 + 3 * 4096) < PASS_BYTES


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([4], [(0, 1)]),
        ([4, 4, 2], [(0, 3)]),
        ([4, 4, 3], [(0, 2), (2, 3)]),
        ([99], [(0, 1)]),
        ([1, 99, 1], [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_texts_are_cut_into_passes(lengths: list[int], expected: list[tuple[int, int]]) -> None:
    """At most ten tokens in each, but for a text that has more; none is left out."""
    assert [(part.start, part.stop) for part in passes(lengths, 10)] == expected
