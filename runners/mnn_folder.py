"""What stands in an MNN artifact's folder beside its graph and weights: settings and facts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.models.architecture import Architecture
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.runners.mnn_embedding import Embedding
    from edgebench.runners.mnn_weights import Format

SCHEMA_VERSION = 1
"""Of edgebench.json. History: 1, the first."""

GRAPH, WEIGHTS, TOKENIZER = "llm.mnn", "llm.mnn.weight", "tokenizer.mtok"
SETTINGS, MODEL_SETTINGS, FACTS = "config.json", "llm_config.json", "edgebench.json"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model, as far as it is: MNN's own exporter takes ones that we don't read.

    Attributes:
        architecture: its family's name, as Hugging Face has it.
        tokenizer: of which the chat template and the ends of a text are told.
    """

    architecture: str
    vocabulary_size: int | None = None
    parameters: int | None = None
    trained_context_tokens: int | None = None
    tokenizer: Tokenizer | None = None

    @classmethod
    def of(cls, architecture: Architecture, tokenizer: Tokenizer) -> ModelFacts:
        """The facts of a model that was read."""
        return cls(
            architecture=architecture.family,
            vocabulary_size=architecture.vocabulary_size,
            parameters=architecture.parameters,
            trained_context_tokens=architecture.context_tokens,
            tokenizer=tokenizer,
        )


def mnn_version() -> str:
    """The version of the installed MNN, without importing it."""
    return metadata.version("MNN")


def write_facts(
    model: ModelFacts,
    weights: Format,
    output: Format,
    folder: Path,
    *,
    embedding: str,
    tokenizer_lacks: list[str] | None,
) -> None:
    """Write edgebench.json: what the runner tells of an artifact and MNN's own files don't.

    Args:
        model: whose artifact it is.
        weights: how the layers' matrices are kept.
        output: how the matrix is kept that makes logits.
        folder: the artifact.
        embedding: how embeddings are kept, in words.
        tokenizer_lacks: what MNN's own tokenizer can't do, or None where nobody looked.
    """
    tokenizer = model.tokenizer
    facts: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "architecture": model.architecture,
        "vocabulary_size": model.vocabulary_size,
        "parameters": model.parameters,
        "trained_context_tokens": model.trained_context_tokens,
        "chat_template": tokenizer.chat_template if tokenizer else None,
        "start_text": tokenizer.start_text if tokenizer else "",
        "end_text": tokenizer.end_text if tokenizer else "",
        "end_ids": list(tokenizer.end_ids) if tokenizer else [],
        "weights": weights.precision,
        "block_size": weights.block_size if weights.integers else None,
        "symmetric": weights.symmetric if weights.integers else None,
        "output": output.precision,
        "embedding": embedding,
        "tokenizer_lacks": tokenizer_lacks,
        "mnn_version": mnn_version(),
    }
    _write_json(folder / FACTS, facts)


def write_settings(
    architecture: Architecture,
    tokenizer: Tokenizer,
    embedding: Embedding,
    weights: Format,
    folder: Path,
) -> None:
    """Write MNN's two files of settings, so that the folder also works in MNN's own tools."""
    exact = weights.precision == "fp32"
    settings: dict[str, object] = {
        "llm_model": GRAPH,
        "llm_weight": WEIGHTS,
        "tokenizer_file": TOKENIZER,
        "backend_type": "cpu",
        "thread_num": 4,
        # As MNN's own exporter sets them, but where they would undo what fp32 is for.
        "precision": "high" if exact else "low",
        "memory": "normal" if exact else "low",
        "sampler_type": "greedy",
    }
    _write_json(folder / SETTINGS, settings)
    model: dict[str, object] = {
        "model_type": architecture.family,
        # MNN's only use of it is the width of embeddings.
        "hidden_size": embedding.parts * architecture.hidden_size,
        "layer_nums": architecture.layers,
        "attention_mask": "float",
        "attention_type": "full",
        "is_mrope": False,
        "max_position_embeddings": architecture.context_tokens,
        **embedding.settings,
    }
    if tokenizer.chat_template:
        model["jinja"] = {
            "chat_template": tokenizer.chat_template,
            "bos": tokenizer.start_text,
            "eos": tokenizer.end_text,
        }
    _write_json(folder / MODEL_SETTINGS, model)


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    with path.open("x", encoding="utf-8") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
