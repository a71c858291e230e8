"""Configurations as Hugging Face's folders have them, good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields
from edgebench.models.hf_config import parse_config

# As SmolLM2-135M-Instruct's, which an older transformers wrote.
SMOLLM2: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 576,
    "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536,
    "is_llama_config": True,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "pad_token_id": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
    "transformers_version": "4.42.3",
    "use_cache": True,
    "vocab_size": 49152,
}
# As Qwen2.5-0.5B-Instruct's.
QWEN2: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "hidden_act": "silu",
    "hidden_size": 896,
    "initializer_range": 0.02,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "max_window_layers": 21,
    "model_type": "qwen2",
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.43.1",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
MISTRAL: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mistral",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "sliding_window": None,
    "vocab_size": 32000,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def parsed(base: dict[str, Any], **changes: Any) -> Any:
    return parse_config(Fields("config.json", base | changes))


def test_a_published_llama_config_is_understood() -> None:
    """SmolLM2's own configuration gives its shape, rotation and end token."""
    config = parsed(SMOLLM2)
    architecture = config.architecture

    assert config.end_ids == (2,)
    assert (architecture.heads, architecture.kv_heads, architecture.head_size) == (9, 3, 64)
    assert architecture.parameters == 134_515_008  # as the package's own count says
    assert architecture.rope.theta == 100000.0
    assert architecture.tied_embeddings
    assert not architecture.attention_bias


def test_a_published_qwen2_config_is_understood() -> None:
    """Queries, keys and values have biases, which the file does not say; the window is off."""
    architecture = parsed(QWEN2).architecture

    assert architecture.attention_bias
    assert not architecture.output_bias
    assert architecture.parameters == 494_032_768  # as its model card says: 0.49 B


def test_qwen3_has_a_head_size_of_its_own() -> None:
    """Heads of 128 are the default there, whatever the hidden size."""
    config = {**QWEN2, "model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16}

    assert parsed(config).architecture.head_size == 128
    assert parsed(config, head_dim=64).architecture.head_size == 64
    assert parsed(config).architecture.qk_norm
    assert not parsed(config).architecture.attention_bias


def test_rotations_are_the_same_in_both_styles() -> None:
    """rope_theta beside rope_scaling means what rope_parameters with both inside means."""
    old = parsed(SMOLLM2, rope_theta=500000.0, rope_scaling=LLAMA3)
    new = parsed(
        {key: value for key, value in SMOLLM2.items() if not key.startswith("rope_t")},
        rope_parameters={**LLAMA3, "rope_theta": 500000.0},
    )
    older = parsed(SMOLLM2, rope_scaling={"type": "linear", "factor": 2.0})

    assert old.architecture.rope == new.architecture.rope
    assert old.architecture.rope.kind == "llama3"
    assert older.architecture.rope.kind == "linear"
    assert older.architecture.rope.inverse_frequencies[0] == 0.5


def test_a_yarn_factor_that_is_missing_follows_from_the_contexts() -> None:
    """The stretch is the new context over the old one."""
    scaling = {"rope_type": "yarn", "original_max_position_embeddings": 8192}

    rope = parsed(QWEN2, rope_scaling=scaling).architecture.rope

    assert dict(rope.scaling)["factor"] == 4.0


def test_kinds_of_layers_are_compared_whatever_their_number() -> None:
    """A damaged number of layers fills no memory; that it is wrong shows beside the weights."""
    kinds = ["full_attention"] * 3
    window = {"use_sliding_window": True, "sliding_window": 8, "layer_types": kinds}
    assert parsed(QWEN2, num_hidden_layers=3, **window).architecture.layers == 3
    with pytest.raises(UnsupportedModelError, match="sliding_window = 8"):
        parsed(QWEN2, num_hidden_layers=10**15, **window)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "gemma3"}, '"gemma3" are not understood; understood are llama, mistral'),
        ({"model_type": None}, "names no model_type: this is not Hugging Face's layout"),
        ({"hidden_act": "gelu"}, 'hidden_act "gelu"'),
        ({"quantization_config": {"bits": 4}}, "quantised already"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0"),
        ({"num_local_experts": 8}, "num_local_experts = 8"),
        ({"logit_scale": 0.5, "new": [1]}, "logit_scale = 0.5, new = \\[1\\]"),
        ({"rope_interleaved": True}, "rope_interleaved = true"),
        ({"auto_map": {"AutoModel": "x.Y"}}, "auto_map"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"head_dim": 63}, "odd size 63"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, '"dynamic" is not understood'),
        ({"rope_scaling": {"rope_type": "longrope"}}, '"longrope"'),
        ({"rope_scaling": {"type": "linear", "factor": 2.0, "x": 1}}, "rope_scaling: x = 1"),
        ({"rope_scaling": {**LLAMA3, "partial_rotary_factor": 0.5}}, "rope_scaling: partial"),
    ],
)
def test_what_may_change_the_forward_pass_is_refused_by_name(
    changes: dict[str, Any], named: str
) -> None:
    """No key is passed over in silence; the message has the key and its value."""
    with pytest.raises(UnsupportedModelError, match=named):
        parsed(SMOLLM2, **changes)


def test_an_unknown_key_without_a_value_is_no_matter() -> None:
    """null means that the thing is off."""
    assert parsed(SMOLLM2, something_new=None) == parsed(SMOLLM2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": None}, "hidden_size should be a whole number, 1 or more, but it is miss"),
        ({"num_hidden_layers": 0}, "but it is 0"),
        ({"num_hidden_layers": True}, "but it is true"),
        ({"rms_norm_eps": "1e-5"}, 'rms_norm_eps should be a number above 0, but it is "1e-5"'),
        ({"rms_norm_eps": float("nan")}, "but it is NaN"),
        ({"tie_word_embeddings": "yes"}, "should be true or false"),
        ({"num_attention_heads": 7}, "576 can't be shared among 7 heads"),
        ({"num_key_value_heads": 2}, "9 heads can't share 2"),
        ({"rope_scaling": [1]}, "rope_scaling should be an object"),
        ({"rope_scaling": {"type": "linear"}}, "factor should be a number above 0"),
        ({"rope_scaling": {**LLAMA3, "low_freq_factor": 4.0}}, "should be below"),
        ({"eos_token_id": "</s>"}, "eos_token_id should be a token id or a list"),
    ],
)
def test_values_that_make_no_sense_are_told(changes: dict[str, Any], said: str) -> None:
    """A value that is missing, of the wrong type, or at odds with another is named."""
    with pytest.raises(ModelFormatError, match=said):
        parsed(SMOLLM2, **changes)


@pytest.mark.parametrize(
    ("base", "changes", "refused"),
    [
        (MISTRAL, {"sliding_window": 4096}, True),
        (MISTRAL, {"sliding_window": 32768}, False),
        (MISTRAL, {"sliding_window": 4096, "max_position_embeddings": 4096}, False),
        (MISTRAL, {}, False),
        (QWEN2, {"sliding_window": 4096}, False),
        (QWEN2, {"sliding_window": 4096, "use_sliding_window": True}, True),
        (QWEN2, {"use_sliding_window": True}, False),
        (
            QWEN2,
            {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 24},
            False,
        ),
        (
            QWEN2,
            {
                "sliding_window": 4096,
                "use_sliding_window": True,
                "layer_types": ["full_attention"] * 24,
            },
            False,
        ),
    ],
)
def test_a_window_is_refused_where_it_would_act(
    base: dict[str, Any], changes: dict[str, Any], refused: bool
) -> None:
    """Attention to a window matters where it is on, in some layer, and shorter than a context."""
    if refused:
        with pytest.raises(UnsupportedModelError, match="set max_position_embeddings to 4096"):
            parsed(base, **changes)
    else:
        assert parsed(base, **changes).architecture.family == base["model_type"]


def test_a_mistral_that_says_nothing_of_its_window_has_the_first_ones() -> None:
    """The key's default is 4096 there, so that its absence is no permission."""
    config = {key: value for key, value in MISTRAL.items() if key != "sliding_window"}

    with pytest.raises(UnsupportedModelError, match="sliding_window = 4096"):
        parsed(config)
