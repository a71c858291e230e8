"""Rotary frequencies of configurations against transformers' own."""

from __future__ import annotations

from typing import Any

import pytest

from edgebench.models.fields import Fields
from edgebench.models.hf_config import parse_config

pytestmark = pytest.mark.transformers

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 32768,
    "vocab_size": 10,
    "rope_theta": 500000.0,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
CASES: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 8.0},
    "linear, by its old name": {"type": "linear", "factor": 1.5},
    "llama 3.1": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "llama 3.2": {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "yarn": YARN,
    "yarn, other betas": YARN | {"beta_fast": 16, "beta_slow": 2},
    "yarn, factor given": YARN | {"attention_factor": 1.25},
    "yarn, two weights": YARN | {"mscale": 0.707, "mscale_all_dim": 1.0},
    "yarn, one weight, which counts for nothing": YARN | {"mscale": 0.707},
    "yarn, exact ends": YARN | {"truncate": False},
    "yarn, no stretch": YARN | {"factor": 1.0},
}


@pytest.mark.parametrize("style", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("scaling", CASES.values(), ids=CASES.keys())
def test_scaled_rotations_are_those_of_transformers(scaling: dict[str, Any], style: str) -> None:
    """Frequencies agree to float32's rounding, and the factor of cosine and sine exactly."""
    import transformers
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = CONFIG | {style: dict(scaling)}
    rope = parse_config(Fields("config.json", config)).architecture.rope

    made = transformers.LlamaConfig(**(CONFIG | {style: dict(scaling)}))
    theirs = LlamaRotaryEmbedding(made)
    assert rope.inverse_frequencies == pytest.approx(theirs.inv_freq.tolist(), rel=3e-6)
    assert rope.attention_factor == pytest.approx(theirs.attention_scaling, rel=1e-12)
