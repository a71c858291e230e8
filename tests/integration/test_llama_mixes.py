"""The types of llama.cpp's mixes as predictions count them, against its own quantiser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgebench.harness.predict.decoder import Decoder
from edgebench.harness.predict.gguf_types import EXACT, MIXES, type_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.llama_cpp

NAMES = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}

SHAPES = {
    "rows of 256": (256, 512, 4, 4, 16, False),
    "shared keys, tied": (256, 256, 4, 1, 17, True),
    "rows of 96": (96, 160, 4, 4, 8, True),
    "rows of 96, untied": (96, 160, 4, 2, 8, False),
}


def decoder(hidden: int, inner: int, heads: int, keys: int, layers: int, *, tied: bool) -> Decoder:
    """A model of 64 tokens."""
    return Decoder(
        name="tiny",
        layers=layers,
        hidden=hidden,
        intermediate=inner,
        heads=heads,
        kv_heads=keys,
        head_size=hidden // heads,
        vocabulary=64,
        layer_vector_weights=2 * hidden,
        tied=tied,
    )


def write(path: Path, model: Decoder) -> None:
    """Random weights as llama.cpp's file in float32."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(model.layers)
    writer.add_context_length(64)
    writer.add_embedding_length(model.hidden)
    writer.add_feed_forward_length(model.intermediate)
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(model.head_size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"t{each}" for each in range(model.vocabulary)])
    writer.add_token_scores([0.0] * model.vocabulary)
    writer.add_token_types([1] * model.vocabulary)
    numbers = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, numbers.standard_normal(shape).astype(np.float32))

    add("token_embd.weight", model.vocabulary, model.hidden)
    add("output_norm.weight", model.hidden)
    if not model.tied:
        add("output.weight", model.vocabulary, model.hidden)
    for layer in range(model.layers):
        add(f"blk.{layer}.attn_norm.weight", model.hidden)
        add(f"blk.{layer}.ffn_norm.weight", model.hidden)
    for each in model.layer_matrices():
        add(f"blk.{each.layer}.{NAMES[each.role]}.weight", each.rows, each.columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_matrix_has_the_type_that_llama_cpp_gives_it(shape: str, tmp_path: Path) -> None:
    """In every mix, with blocks that divide its rows and blocks that don't."""
    import gguf
    import llama_cpp

    *sizes, tied = SHAPES[shape]
    model = decoder(*sizes, tied=tied)
    source, target = tmp_path / "source.gguf", tmp_path / "target.gguf"
    write(source, model)
    matrices = [*model.layer_matrices(), model.embedding]
    matrices += [] if model.tied else [model.output]
    outer = {"embedding": "token_embd", "output": "output"}
    for mix in MIXES:
        if mix in EXACT:
            continue
        parameters = llama_cpp.llama_model_quantize_default_params()
        parameters.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{mix}")
        paths = (str(source).encode(), str(target).encode())
        assert llama_cpp.llama_model_quantize(*paths, parameters) == 0
        made = {each.name: each.tensor_type.name for each in gguf.GGUFReader(target).tensors}
        for each in matrices:
            name = outer.get(each.role) or f"blk.{each.layer}.{NAMES[each.role]}"
            assert type_of(mix, each, model) == made[f"{name}.weight"], (mix, name)
