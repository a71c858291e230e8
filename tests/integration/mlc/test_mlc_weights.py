"""The tensor cache of a converted model: MLC's names, and the files that TVM's own writer makes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from mlc_library import kept_tensors
from tiny_models import tiny_folder

from edgebench.models.canonical import open_model
from edgebench.runners import mlc_weights
from edgebench.runners.mlc_layout import OWN, parameters

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

TIED = {"tie_word_embeddings": True}


@pytest.mark.parametrize("quantization", OWN)
def test_shards_and_index_are_what_tvms_own_writer_makes(
    quantization: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same tensors, byte for byte: small ones share a shard, a large one stands alone."""
    from tvm.contrib import tvmjs

    tiny_folder(tmp_path / "source", "llama", vocab_size=6000, hidden_size=256, num_hidden_layers=4)
    monkeypatch.setattr(mlc_weights, "SHARD_BYTES", 1 << 20)
    made, again = tmp_path / "made", tmp_path / "again"
    made.mkdir()
    model = open_model(tmp_path / "source")
    mlc_weights.write_weights(model, OWN[quantization], made)
    kept, order = kept_tensors(made), parameters(model.architecture)
    tensors = {
        entry.name: kept.pop(entry.name)
        for parameter in order
        for entry in parameter.entries(OWN[quantization])
    }
    assert not kept
    tvmjs.dump_tensor_cache(
        tensors, str(again), encode_format="raw", shard_cap_mb=1, show_progress=False
    )
    index = json.loads((made / "tensor-cache.json").read_text("utf-8"))
    theirs = json.loads((again / "tensor-cache.json").read_text("utf-8"))
    assert index["records"] == theirs["records"]
    nbytes = sum(tensor.nbytes for tensor in tensors.values())
    assert index["metadata"] == {
        "ParamSize": len(tensors),
        "ParamBytes": nbytes,
        "BitsPerParam": 8 * nbytes / model.architecture.parameters,
    }
    assert len(index["records"]) > 1
    for record in index["records"]:
        data = (made / record["dataPath"]).read_bytes()
        assert data == (again / record["dataPath"]).read_bytes()
        assert hashlib.md5(data, usedforsecurity=False).hexdigest() == record["md5sum"]


# Of a layer, as MLC's models have them: python/mlc_llm/model/*/*_model.py.
OF_ALL = ["input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.o_proj.weight",
          "mlp.gate_up_proj.weight", "mlp.down_proj.weight"]  # fmt: skip


OF_FAMILY = {
    "llama": ["self_attn.qkv_proj.weight"],
    "mistral": ["self_attn.qkv_proj.weight"],
    "qwen2": ["self_attn.c_attn.weight", "self_attn.c_attn.bias"],
    "qwen3": ["self_attn.c_attn.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight"],
}


@pytest.mark.parametrize("family", OF_FAMILY)
@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
def test_parameters_have_mlcs_names(family: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """What MLC's models of a family are made of, and nothing else."""
    tiny_folder(tmp_path, family, num_hidden_layers=1, **changes)
    names = {each.name for each in parameters(open_model(tmp_path).architecture)}
    outside = {"model.embed_tokens.weight", "model.norm.weight"}
    if not changes:
        outside.add("lm_head.weight")
    layer = {f"model.layers.0.{name}" for name in (*OF_ALL, *OF_FAMILY[family])}
    assert names == outside | layer
