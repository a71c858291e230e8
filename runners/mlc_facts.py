"""What a model's files tell of it, whichever engine runs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import LoadedModel
from edgebench.runners.mlc_folder import read_json
from edgebench.runners.mlc_settings import EDGEBENCH, MLC_LLM
from edgebench.runners.mlc_weight_bytes import weight_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.mlc_folder import Folder
    from edgebench.runners.mlc_library import Metadata
    from edgebench.runners.mlc_settings import Chosen

TOKENIZER_CONFIG = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"

COMPUTED = re.compile(r"^[a-z]*\d*(f16|f32|bf16)")
"""How MLC's names of quantisations begin: kind and bits, then what is computed and cached."""

FULL_NAMES = {"f16": "float16", "f32": "float32", "bf16": "bfloat16"}


def known_facts(folder: Folder, metadata: Metadata, chosen: Chosen) -> LoadedModel:
    """What is known before anything is loaded; an engine puts over it what it can read back.

    Args:
        folder: the model's.
        metadata: of its library.
        chosen: how it is to be loaded.
    """
    template, start, end = _chat_template(folder)
    computed = COMPUTED.match(metadata.quantization)
    trained = folder.config.model.get("max_position_embeddings")
    return LoadedModel(
        effective_options={
            "engine": chosen.engine,
            "compiler": MLC_LLM if metadata.built_by is None else EDGEBENCH,
            "threads": chosen.threads,
            "thread_binding": chosen.thread_binding,
            "device": chosen.device,
            "prefill_chunk": chosen.prefill_chunk or metadata.prefill_chunk,
            "kv_cache_type": FULL_NAMES[computed[1]] if computed else None,
            "quantization": metadata.quantization,
        },
        vocabulary_size=folder.config.vocabulary_size,
        architecture=metadata.model_type,
        parameters=folder.parameters,
        trained_context_tokens=trained if isinstance(trained, int) else None,
        chat_template=template,
        bos_text=start,
        eos_text=end,
        weight_bytes_per_token=weight_bytes_per_token(folder, metadata),
    )


def _chat_template(folder: Folder) -> tuple[str | None, str, str]:
    """The model's Jinja template, and the texts of its start and end tokens, where told."""
    facts: Mapping[str, Any] = {}
    if (folder.path / TOKENIZER_CONFIG).is_file():
        facts = read_json(folder.path / TOKENIZER_CONFIG)
    template = facts.get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in template}
        template = named.get("default")
    if template is None and (folder.path / TEMPLATE).is_file():
        template = (folder.path / TEMPLATE).read_text("utf-8")
    start, end = (_text(facts.get(key)) for key in ("bos_token", "eos_token"))
    return template if isinstance(template, str) else None, start, end


def _text(token: object) -> str:
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""
