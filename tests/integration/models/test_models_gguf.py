"""GGUF files against the transformers models that they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError, UnsupportedModelError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.transformers

LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_theta": 500000.0,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
YARN_KEYS = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 64,
}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", {}, {}),
    "llama with every bias, tied": (
        "llama",
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
        {},
    ),
    "llama, one key head": ("llama", {"num_key_value_heads": 1}, {}),
    "llama, linear": (
        "llama",
        {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
        {"rope.scaling.type": "linear", "rope.scaling.factor": 2.5},
    ),
    "mistral, large heads": ("mistral", {"head_dim": 32, "sliding_window": None}, {}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}, {}),
    "qwen2, yarn": ("qwen2", {"rope_parameters": YARN}, YARN_KEYS),
    "qwen3": ("qwen3", {"head_dim": 32}, {}),
}


def without_order(model: Any) -> dict[str, Any]:
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    return state


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_gguf_file_has_the_weights_of_the_model_it_was_made_from(
    case: Any, make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """Names, shapes, order of rows and biases are Hugging Face's again, bit for bit."""
    family, config, keys = case
    model = make_tiny(family, **config)

    canonical = open_model(write_gguf(model, tmp_path / "tiny.gguf", keys=keys))

    state = without_order(model)
    assert set(canonical.weights) == set(state)
    for name, tensor in canonical.weights.items():
        assert np.array_equal(tensor.read(), state[name]), name
    rotary, rope = model.model.rotary_emb, canonical.architecture.rope
    assert rope.inverse_frequencies == pytest.approx(rotary.inv_freq.tolist(), rel=3e-6)
    assert rope.attention_factor == pytest.approx(rotary.attention_scaling)
    assert canonical.architecture.norm_epsilon == model.config.rms_norm_eps


def test_rows_of_queries_are_the_same_however_they_are_cut(
    make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """Any range of reordered rows, across heads or within one, is that range of the whole."""
    model = make_tiny("llama", attention_bias=True)
    canonical = open_model(write_gguf(model, tmp_path / "tiny.gguf"))

    for name in ("self_attn.q_proj.weight", "self_attn.k_proj.bias", "self_attn.v_proj.weight"):
        whole = model.state_dict()[f"model.layers.1.{name}"].numpy()
        tensor = canonical.weights[f"model.layers.1.{name}"]
        for start, stop in ((0, 1), (5, 21), (15, 16), (17, None), (3, 3)):
            rows = tensor.read(start, stop)
            assert np.array_equal(rows, whole[start:stop])
            assert rows.flags.c_contiguous


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_quantised_weights_are_dequantised_as_the_format_says(
    kind: str, make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """Dequantised rows equal those of the whole tensor through the gguf package."""
    import gguf

    model = make_tiny("qwen2", hidden_size=256)  # whose rows keep their order
    path = write_gguf(model, tmp_path / "tiny.gguf", kind=kind)

    canonical = open_model(path)

    name = "model.layers.0.self_attn.q_proj.weight"
    number = gguf.GGMLQuantizationType[kind]
    packed = gguf.quants.quantize(model.state_dict()[name].numpy(), number)
    expected = gguf.quants.dequantize(packed, number)
    assert canonical.weights[name].stored_as == kind
    assert np.array_equal(canonical.weights[name].read(), expected)
    assert np.array_equal(canonical.weights[name].read(7, 12), expected[7:12])
    assert canonical.lossy_types == (() if kind in {"F16", "BF16"} else (kind,))


def test_llama_3s_factors_are_recognised(make_tiny: Any, write_gguf: Any, tmp_path: Path) -> None:
    """The tensor of factors gives the frequencies of transformers, and the parameters behind."""
    model = make_tiny("llama", rope_parameters=LLAMA3, max_position_embeddings=131072)
    plain = 500000.0 ** -(np.arange(0, 16, 2) / 16)
    factors = plain / model.model.rotary_emb.inv_freq.numpy()

    rope = open_model(
        write_gguf(model, tmp_path / "tiny.gguf", rope_factors=factors)
    ).architecture.rope

    frequencies = model.model.rotary_emb.inv_freq.tolist()
    assert rope.kind == "llama3"
    assert rope.inverse_frequencies == pytest.approx(frequencies, rel=1e-6)
    assert dict(rope.scaling)["factor"] == 8.0


def test_factors_that_nobody_published_are_used_as_they_are(
    make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """Inverse frequencies are divided by the file's factors, whatever they are."""
    model = make_tiny("llama")
    factors = np.linspace(1.0, 3.0, 8)

    rope = open_model(
        write_gguf(model, tmp_path / "tiny.gguf", rope_factors=factors)
    ).architecture.rope

    expected = 10000.0 ** -(np.arange(0, 16, 2) / 16) / factors
    assert rope.inverse_frequencies == pytest.approx(expected.tolist(), rel=1e-6)


def test_a_file_that_is_cut_off_is_refused_before_any_work(
    make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """A file shorter than its header says is refused on opening, wherever it was cut."""
    path = write_gguf(make_tiny("llama"), tmp_path / "tiny.gguf")
    whole = path.read_bytes()

    for length in (len(whole) - 1, len(whole) // 2, 700, 100, 10):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFormatError, match="cut off"):
            open_model(path)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"attention.sliding_window": 128}, "attention.sliding_window = 128"),
        ({"expert_count": 8}, "expert_count = 8"),
        ({"logit_scale": 0.5}, "logit_scale = 0.5"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0"),
        ({"rope.dimension_count": 8}, "rope.dimension_count is 8"),
        ({"rope.scaling.type": "longrope"}, "longrope"),
        ({"rope.scaling.type": "yarn", "rope.scaling.attn_factor": 2.0}, "attn_factor = 2"),
        ({"something.new": 1}, "something.new = 1"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    keys: Any, named: str, make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """A key that may change the forward pass is never passed over."""
    path = write_gguf(make_tiny("llama"), tmp_path / "tiny.gguf", keys=keys)

    with pytest.raises(UnsupportedModelError, match=named):
        open_model(path)


def test_tensors_of_another_family_are_refused_by_name(
    make_tiny: Any, write_gguf: Any, tmp_path: Path
) -> None:
    """Norms of queries and keys in a file that says llama are no llama's."""
    model = make_tiny("qwen3", head_dim=16)
    model.config.model_type = "llama"

    with pytest.raises(UnsupportedModelError, match="with norms of queries and keys"):
        open_model(write_gguf(model, tmp_path / "tiny.gguf"))


@pytest.mark.llama_cpp
@pytest.mark.parametrize("name", ["llama", "llama, linear", "qwen2, yarn", "qwen3", "llama3"])
def test_a_file_of_the_tests_is_what_llama_cpp_takes_it_for(
    name: str, make_tiny: Any, write_gguf: Any, llama_cpp: Any, tmp_path: Path
) -> None:
    """llama.cpp computes from these files what transformers computes from the models.

    This is what the expected values above rest on: the order of rows, the names, and what the
    keys of the rotary scalings mean.
    """
    import torch

    factors = None
    if name == "llama3":
        model = make_tiny("llama", rope_parameters=LLAMA3, max_position_embeddings=131072)
        keys: dict[str, Any] = {}
        plain = 500000.0 ** -(np.arange(0, 16, 2) / 16)
        factors = plain / model.model.rotary_emb.inv_freq.numpy()
    else:
        family, config, keys = CASES[name]
        model = make_tiny(family, **config)
    path = write_gguf(model, tmp_path / "tiny.gguf", keys=keys, tokens=300, rope_factors=factors)
    ids = [int(number) for number in np.arange(120) * 7 % 300]

    logits = native_logits(llama_cpp, path, ids)

    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0, -1].numpy()
    assert np.abs(logits - expected).max() < 2e-3 * np.abs(expected).max()


def native_logits(lib: Any, path: Path, ids: list[int]) -> Any:
    """llama.cpp's logits after the last of some tokens."""
    parameters = lib.llama_context_default_params()
    parameters.n_ctx, parameters.type_k, parameters.type_v = 256, 0, 0  # float32
    parameters.n_threads = parameters.n_threads_batch = 1
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    assert model
    context = lib.llama_init_from_model(model, parameters)
    tokens = (lib.llama_token * len(ids))(*ids)
    assert lib.llama_decode(context, lib.llama_batch_get_one(tokens, len(ids))) == 0
    pointer = lib.llama_get_logits_ith(context, -1)
    logits = np.ctypeslib.as_array(pointer, shape=(300,)).copy()
    lib.llama_free(context)
    lib.llama_model_free(model)
    return logits
