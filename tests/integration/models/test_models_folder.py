"""Hugging Face folders against transformers, which wrote them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError
from edgebench.models.export import export_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.transformers

LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64, "rope_theta": 1e5,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
CASES = {
    "llama": ("llama", {}),
    "llama with every bias, tied": (
        "llama",
        {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    ),
    "llama, linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.5}}),
    "llama, llama3": ("llama", {"rope_parameters": LLAMA3}),
    "mistral, large heads": ("mistral", {"head_dim": 32, "sliding_window": None}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, yarn": ("qwen2", {"rope_parameters": YARN}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "qwen3 with bias": ("qwen3", {"head_dim": 8, "attention_bias": True}),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def tiny(request: pytest.FixtureRequest, make_tiny: Any) -> Any:
    family, config = request.param
    return make_tiny(family, **config)


def assert_same_weights(model: Any, canonical: Any) -> None:
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    assert set(state) == set(canonical.weights)
    for name, tensor in canonical.weights.items():
        assert np.array_equal(tensor.read(), state[name]), name


def test_a_folder_has_the_weights_and_rotations_of_the_model_saved(
    tiny: Any, tmp_path: Path
) -> None:
    """Every tensor is bit for bit the one of transformers, and rotations agree to float32."""
    tiny.save_pretrained(tmp_path)

    canonical = open_model(tmp_path)

    assert_same_weights(tiny, canonical)
    assert canonical.architecture.parameters == sum(w.numel() for w in tiny.parameters())
    rotary = tiny.model.rotary_emb
    rope = canonical.architecture.rope
    assert rope.inverse_frequencies == pytest.approx(rotary.inv_freq.tolist(), rel=3e-6)
    assert rope.attention_factor == pytest.approx(rotary.attention_scaling)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_type_of_weights_is_read_by_rows(dtype: str, make_tiny: Any, tmp_path: Path) -> None:
    """Some rows are what the same rows of the whole are, of float32, float16 and bfloat16."""
    import torch

    model = make_tiny("llama").to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)

    canonical = open_model(tmp_path)

    assert_same_weights(model, canonical)
    name = "model.layers.1.mlp.up_proj.weight"
    whole = model.state_dict()[name].float().numpy()
    for start, stop in ((0, 1), (3, 17), (95, 96), (90, None), (5, 5)):
        rows = canonical.weights[name].read(start, stop)
        assert np.array_equal(rows, whole[start:stop])
        assert rows.dtype == np.float32
        assert rows.flags.c_contiguous


def test_a_model_in_several_files_is_read_as_one(make_tiny: Any, tmp_path: Path) -> None:
    """Shards are found by the index, and without one by their names."""
    model = make_tiny("qwen2")
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1

    assert_same_weights(model, open_model(tmp_path))
    (tmp_path / "model.safetensors.index.json").unlink()
    assert_same_weights(model, open_model(tmp_path))


def test_a_missing_shard_is_named(make_tiny: Any, tmp_path: Path) -> None:
    """A folder that lacks one of its files is refused with the file's name."""
    make_tiny("llama").save_pretrained(tmp_path, max_shard_size="100KB")
    lost = sorted(tmp_path.glob("*.safetensors"))[1]
    lost.unlink()

    with pytest.raises(ModelFormatError, match=f"names {lost.name}, which is missing"):
        open_model(tmp_path)


def test_an_export_is_the_same_model_to_transformers(tiny: Any, tmp_path: Path) -> None:
    """A folder written from a canonical model gives transformers the same logits."""
    import torch
    import transformers

    tiny.save_pretrained(tmp_path / "first")
    write_tokenizer(tmp_path / "first")

    export_folder(open_model(tmp_path / "first"), tmp_path / "second", "F32")

    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "second").eval()
    assert type(again) is type(tiny)
    ids = torch.arange(40).reshape(1, -1) * 7 % 300
    with torch.no_grad():
        difference = (again(ids).logits - tiny(ids).logits).abs().max()
    assert difference < 1e-5
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "second")
    assert tokenizer("ab").input_ids == [1, 65, 66]
    assert tokenizer.eos_token == "<end>"


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_an_export_rounds_as_torch_does(dtype: str, make_tiny: Any, tmp_path: Path) -> None:
    """Exported weights are those that torch makes of the same float32, to the bit."""
    import torch

    model = make_tiny("llama")
    model.save_pretrained(tmp_path / "first")
    write_tokenizer(tmp_path / "first")

    export_folder(open_model(tmp_path / "first"), tmp_path / "second", dtype)

    rounded = model.to({"F16": torch.float16, "BF16": torch.bfloat16}[dtype])
    assert_same_weights(rounded, open_model(tmp_path / "second"))


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize(
    ("flag", "processed"), [(None, True), (None, False), (True, True), (False, False)]
)
def test_a_start_token_is_due_where_transformers_adds_one(
    flag: Any, processed: bool, family: str, make_tiny: Any, tmp_path: Path
) -> None:
    """Where the two places that may ask for a start token agree, or one is silent, all do."""
    import transformers

    make_tiny(family).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    if not processed:
        content["post_processor"] = None
    path.write_text(json.dumps(content))
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("add_bos_token", None)
    if flag is not None:
        config["add_bos_token"] = flag
    path.write_text(json.dumps(config))

    ours = open_model(tmp_path).tokenizer

    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("ab", "a<end>b"):
        assert ours.encode(text) == theirs(text).input_ids


def write_tokenizer(folder: Path) -> None:
    """A tokenizer that knows letters, and puts a start token first."""
    from tokenizers import Tokenizer, models, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<unk>": 0, "<start>": 1, "<end>": 2} | {
        chr(ord("a") + number): 65 + number for number in range(26)
    }
    engine = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    engine.post_processor = processors.TemplateProcessing(
        single="<start> $A", special_tokens=[("<start>", 1)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=engine, bos_token="<start>", eos_token="<end>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
