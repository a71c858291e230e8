"""How much room a conversion is expected to take, against real files' sizes."""

from __future__ import annotations

import pytest

from edgebench.harness.prepare import expected_bytes

MB = 1_000_000


@pytest.mark.parametrize(
    ("source", "source_bytes", "quantization", "really"),
    [
        # SmolLM2-135M, made with llama_model_quantize
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "Q8_0", 144_811_072),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "F32", 539_000_000),
        # Llama-2 7B as published
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q4_0", 3_826 * MB),
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q4_K_M", 4_081 * MB),
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q8_0", 7_161 * MB),
    ],
)
def test_enough_room_is_asked_for_and_not_much_more(
    source: str, source_bytes: int, quantization: str, really: int
) -> None:
    """The estimate is no less than what came out, and less than twice that."""
    assert really <= expected_bytes(source, source_bytes, quantization) < 2 * really


def test_a_name_that_tells_nothing_is_taken_for_four_bits() -> None:
    """Without a hint the source may be 4 bits already: 16 bits take about four times its room."""
    assert expected_bytes("model.gguf", 100, "F16") == pytest.approx(400, rel=0.1)


def test_an_unknown_kind_of_artifact_is_as_large_as_its_source() -> None:
    """Names without bits say nothing about size."""
    assert expected_bytes("model.bin", 100, "copy") == 100
