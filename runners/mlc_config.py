"""What stands beside the weights and the library of an MLC model: ``mlc-chat-config.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from edgebench.runners.mlc_folder import library_digest
from edgebench.runners.mlc_names import CONFIG, LIBRARY

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.architecture import Architecture
    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.runners.mlc_layout import Quantization

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")

VERSION = "0.1.0"
"""Of the file's form (``MLC_CHAT_CONFIG_VERSION``)."""


def sizes(
    architecture: Architecture, quantization: Quantization, context: int, chunk: int
) -> dict[str, Any]:
    """What the configuration and a library's metadata both say.

    Args:
        architecture: of the model.
        quantization: of its weights.
        context: the most tokens, prompt and generated together.
        chunk: the most tokens of a prompt that are taken in at once.
    """
    return {
        "model_type": architecture.family,
        "quantization": quantization.name,
        "context_window_size": context,
        "sliding_window_size": -1,
        "attention_sink_size": -1,
        "prefill_chunk_size": chunk,
        "tensor_parallel_shards": 1,
        "pipeline_parallel_stages": 1,
        "disaggregation": False,
        "active_vocab_size": architecture.vocabulary_size,
        "model_task": "chat",
    }


def write_tokenizer(model: CanonicalModel, folder: Path) -> None:
    """Write the tokenizer's files.

    Args:
        model: its architecture and its tokenizer.
        folder: it is there.

    Raises:
        ModelFormatError: the model's tokenizer isn't understood.
        OSError: the disk is full, or the folder can't be written.
    """
    tokenizer = model.tokenizer
    settings = _tokenizer_settings(model.architecture, tokenizer)
    for name, text in zip(TOKENIZER_FILES, (tokenizer.json, _text(settings)), strict=True):
        (folder / name).write_text(text, encoding="utf-8")


def write_config(model: CanonicalModel, shared: dict[str, Any], folder: Path) -> None:
    """Write the configuration, with the checksum of the library: a damaged one crashes processes.

    Args:
        model: its architecture and its tokenizer.
        shared: as `sizes` gives it.
        folder: it is there, and the library in it.

    Raises:
        OSError: as for `write_tokenizer`.
    """
    architecture, tokenizer = model.architecture, model.tokenizer
    ends = [*tokenizer.end_ids]
    config = {
        "version": VERSION,
        **shared,
        "model_config": _model_config(architecture, shared),
        "vocab_size": architecture.vocabulary_size,
        "temperature": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "top_p": 1.0,
        "tokenizer_files": [*TOKENIZER_FILES],
        "tokenizer_info": {},
        "conv_template": PLAIN_TEMPLATE,
        "pad_token_id": 0,
        "bos_token_id": tokenizer.start_id,
        "eos_token_id": ends[0] if len(ends) == 1 else ends or None,
        "edgebench": {"library_sha256": library_digest(folder / LIBRARY)},
    }
    (folder / CONFIG).write_text(_text(config), encoding="utf-8")


PLAIN_TEMPLATE = {
    "name": "LM",
    "system_template": "{system_message}",
    "system_message": "",
    "roles": {"user": "", "assistant": ""},
    "role_templates": {"user": "{user_message}", "assistant": "{assistant_message}"},
    "messages": [],
    "seps": [""],
    "role_content_sep": "",
    "role_empty_sep": "",
    "stop_str": [],
    "stop_token_ids": [],
}
"""Texts as they are, without a chat's marks."""


def _model_config(architecture: Architecture, shared: dict[str, Any]) -> dict[str, Any]:
    """The model's own sizes, by the names that MLC's configurations of its family have."""
    rope = architecture.rope
    config: dict[str, Any] = {
        "hidden_size": architecture.hidden_size,
        "intermediate_size": architecture.intermediate_size,
        "num_attention_heads": architecture.heads,
        "num_hidden_layers": architecture.layers,
        "num_key_value_heads": architecture.kv_heads,
        "head_dim": architecture.head_size,
        "rms_norm_eps": architecture.norm_epsilon,
        "vocab_size": architecture.vocabulary_size,
        "tie_word_embeddings": architecture.tied_embeddings,
        "context_window_size": shared["context_window_size"],
        "prefill_chunk_size": shared["prefill_chunk_size"],
        "tensor_parallel_shards": 1,
        "max_batch_size": 1,
        "max_position_embeddings": architecture.context_tokens,
    }
    if architecture.family in ("llama", "mistral"):
        config["position_embedding_base"] = rope.theta
    else:
        config["rope_theta"] = rope.theta
        config["hidden_act"] = "silu"
    if architecture.family == "mistral":
        config |= {"sliding_window_size": -1, "attention_sink_size": -1}
    if architecture.family == "qwen3":
        config["attention_bias"] = architecture.attention_bias
    if rope.kind != "default":
        config["rope_scaling"] = {"rope_type": rope.kind, **dict(rope.scaling)}
    return config


def _tokenizer_settings(architecture: Architecture, tokenizer: Tokenizer) -> dict[str, Any]:
    texts = {
        "bos_token": tokenizer.start_text,
        "eos_token": tokenizer.end_text,
        "chat_template": tokenizer.chat_template,
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": architecture.context_tokens,
        "add_bos_token": tokenizer.start_id is not None,
        **{name: text for name, text in texts.items() if text},
    }


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
