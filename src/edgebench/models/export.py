"""A canonical model written out as a Hugging Face folder, for tools that start from one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.weights import row_blocks

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from edgebench.models.architecture import Architecture, Rope
    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.pre_tokenizers import Json
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.models.weights import Floats, Tensor

Dtype: TypeAlias = Literal["F32", "F16", "BF16"]

_TORCH_NAMES: dict[Dtype, str] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}


def export_folder(model: CanonicalModel, target: Path, dtype: Dtype) -> None:
    """Write config.json, model.safetensors and the tokenizer's files.

    Weights go tensor by tensor, some rows at a time, so that little is in memory. config.json is
    written last: what was cut short is no model's folder.

    Args:
        model: what to write.
        target: the folder; it is made where it is missing.
        dtype: the type of all weights.

    Raises:
        UnsupportedModelError: Hugging Face's configurations can't say what the model is.
        ModelFormatError: the source can't be read, or a weight is too large for `dtype`.
        OSError: the folder can't be written.
    """
    tokenizer = model.tokenizer
    config = _config(model.architecture, tokenizer, dtype)
    target.mkdir(parents=True, exist_ok=True)
    _write_json(target / "tokenizer_config.json", _tokenizer_config(model.architecture, tokenizer))
    ends: list[Json] = [*tokenizer.end_ids]
    _write_json(target / "generation_config.json", {"eos_token_id": ends})
    (target / "tokenizer.json").write_text(tokenizer.json, encoding="utf-8")
    with (target / "model.safetensors").open("wb") as file:
        _write_weights(file, model, dtype)
    _write_json(target / "config.json", config)


def _config(architecture: Architecture, tokenizer: Tokenizer, dtype: Dtype) -> dict[str, Json]:
    family = architecture.family
    _refuse_biases(architecture)
    ends: list[Json] = [*tokenizer.end_ids]
    config: dict[str, Json] = {
        "architectures": [f"{_CLASSES[family]}ForCausalLM"],
        "model_type": family,
        "vocab_size": architecture.vocabulary_size,
        "hidden_size": architecture.hidden_size,
        "intermediate_size": architecture.intermediate_size,
        "num_hidden_layers": architecture.layers,
        "num_attention_heads": architecture.heads,
        "num_key_value_heads": architecture.kv_heads,
        "head_dim": architecture.head_size,
        "hidden_act": "silu",
        "max_position_embeddings": architecture.context_tokens,
        "rms_norm_eps": architecture.norm_epsilon,
        "rope_theta": architecture.rope.theta,
        "rope_scaling": _scaling(architecture.rope),
        "tie_word_embeddings": architecture.tied_embeddings,
        "bos_token_id": tokenizer.start_id,
        "eos_token_id": ends,
        "torch_dtype": _TORCH_NAMES[dtype],
    }
    if family == "llama":
        config["mlp_bias"] = architecture.mlp_bias
    if family in {"llama", "qwen3"}:
        config["attention_bias"] = architecture.attention_bias
    if family == "mistral":
        config["sliding_window"] = None
    if family in {"qwen2", "qwen3"}:
        config["use_sliding_window"] = False
    return config


def _refuse_biases(architecture: Architecture) -> None:
    """Each family's configuration can name only some combinations of biases."""
    biases = (architecture.attention_bias, architecture.output_bias, architecture.mlp_bias)
    attention = architecture.attention_bias
    possible = {
        "llama": (attention, attention, architecture.mlp_bias),
        "mistral": (False, False, False),
        "qwen2": (True, False, False),
        "qwen3": (attention, attention, False),
    }[architecture.family]
    if biases != possible:
        named = ", ".join(
            f"{name} with{'' if there else 'out'} bias"
            for name, there in zip(("q/k/v", "attention output", "MLP"), biases, strict=True)
        )
        msg = (
            f"a {architecture.family} model has no configuration in Hugging Face's layout for "
            f"{named}; use the model's own release as a folder"
        )
        raise UnsupportedModelError(msg)


def _scaling(rope: Rope) -> dict[str, Json] | None:
    if rope.kind == "default":
        return None
    if not rope.scaling:
        msg = (
            f"the rotary scaling ({rope.kind}) is known by its frequencies only, and not by the "
            "parameters that a configuration needs; use the model's own release as a folder"
        )
        raise UnsupportedModelError(msg)
    scaling: dict[str, Json] = {"rope_type": rope.kind}
    for name, value in rope.scaling:
        whole = name == "original_max_position_embeddings"
        scaling[name] = int(value) if whole else bool(value) if name == "truncate" else value
    return scaling


def _tokenizer_config(architecture: Architecture, tokenizer: Tokenizer) -> dict[str, Json]:
    config: dict[str, Json] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": architecture.context_tokens,
        "clean_up_tokenization_spaces": False,
        "add_bos_token": tokenizer.start_id is not None,
        "add_eos_token": False,
    }
    if tokenizer.start_text:
        config["bos_token"] = tokenizer.start_text
    if tokenizer.end_text:
        config["eos_token"] = tokenizer.end_text
    if tokenizer.chat_template is not None:
        config["chat_template"] = tokenizer.chat_template
    return config


def _write_json(path: Path, content: dict[str, Json]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_weights(file: BinaryIO, model: CanonicalModel, dtype: Dtype) -> None:
    item = 4 if dtype == "F32" else 2
    entries: dict[str, Json] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in model.weights.items():
        first, end = end, end + item * int(np.prod(tensor.shape, dtype=np.int64))
        entries[name] = {"dtype": dtype, "shape": [*tensor.shape], "data_offsets": [first, end]}
    header = json.dumps(entries).encode()
    # The data start at a multiple of 8 bytes; blanks may stand after the header.
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    for name, tensor in model.weights.items():
        _write_tensor(file, name, tensor, dtype)


def _write_tensor(file: BinaryIO, name: str, tensor: Tensor, dtype: Dtype) -> None:
    for rows in row_blocks(tensor):
        data = _cast(rows, dtype)
        if data is None:
            msg = (
                f"{name} has numbers that {dtype} has no room for; choose another type of "
                "weights, best F32"
            )
            raise ModelFormatError(msg)
        file.write(data)


def _cast(rows: Floats, dtype: Dtype) -> bytes | None:
    """Bytes of some rows in another type, rounded to nearest even; None where one overflows."""
    if dtype == "F32":
        return rows.astype("<f4", copy=False).tobytes()
    if dtype == "F16":
        with np.errstate(over="ignore"):
            half = rows.astype("<f2")
        return half.tobytes() if np.isfinite(half).all() else None
    bits = rows.view(np.uint32)
    bits += np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    upper = (bits >> np.uint32(16)).astype("<u2")
    infinite = (upper & np.uint16(0x7F80)) == np.uint16(0x7F80)
    return None if infinite.any() else upper.tobytes()
