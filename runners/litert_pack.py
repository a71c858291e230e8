"""A LiteRT-LM bundle: the graphs, the tokenizer, and what the engine and edgebench want to know.

Nothing is added to a prompt: there is no start token, and the chat template is only kept. What
edgebench itself wants to know stands as JSON in the header, under the key `FACTS`.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_template import with_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.tokenizer import Tokenizer

FACTS = "edgebench"
"""Key of the entry in the header's system metadata that edgebench reads."""

FACTS_VERSION = 1
"""Of that entry's value. History: 1, the first."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a bundle.

    Attributes:
        architecture: the family's name, as Hugging Face has it.
        parameters: weights, or None where they were not counted.
        cache_length: places of the cache: the most tokens, prompt and generated together.
        prefill_lengths: how many tokens the graphs take at once.
        quantization: of the layers' matrices.
        output_quantization: of the output layer and the embedding.
        block_size: of int4 weights.
        converter: what made the graphs.
    """

    architecture: str
    parameters: int | None
    trained_context_tokens: int | None
    vocabulary_size: int | None
    cache_length: int
    prefill_lengths: Sequence[int]
    quantization: str
    output_quantization: str
    block_size: int | None
    converter: str


@dataclass(frozen=True, slots=True)
class Stops:
    """What ends a generation.

    Attributes:
        kind: ``model`` for its own ends of a text, ``reserved`` for something it doesn't make.
        sequences: of ids; each of them ends it.
    """

    kind: str
    sequences: Sequence[Sequence[int]]


def write_bundle(
    graphs: Path, tokenizer: Tokenizer, stops: Stops, facts: Facts, target: Path
) -> None:
    """Write a bundle.

    Args:
        graphs: the TFLite file, which is copied.
        tokenizer: of the model.
        stops: at least one sequence; without one the engine fails.
        facts: told with those of the tokenizer.
        target: a new file; two small ones stand beside it meanwhile.

    Raises:
        RunnerFailure: the package litert-lm-builder is missing.
        OSError: the disk is full, or the file can't be written.
    """
    library: Any = _library("litert_lm_builder")
    builder = library.LitertLmFileBuilder()
    told = json.dumps(_told(tokenizer, stops, facts), ensure_ascii=False)

    def text(key: str, value: str) -> object:
        return library.Metadata(key=key, value=value, dtype=library.DType.STRING)

    # Where a back end would compute in half floats by itself, it would undo what fp32 is for.
    exact = facts.quantization == "fp32"
    builder.add_system_metadata(text("Authors", "edgebench"))
    builder.add_system_metadata(text(FACTS, told))
    with tempfile.TemporaryDirectory(prefix=target.name, dir=target.parent) as place:
        settings, texts = Path(place, "llm_metadata.pb"), Path(place, "tokenizer.json")
        settings.write_bytes(_settings(tokenizer, stops, facts))
        texts.write_text(tokenizer.json, encoding="utf-8")
        builder.add_llm_metadata(str(settings))
        builder.add_hf_tokenizer(str(texts))
        builder.add_tflite_model(
            str(graphs),
            library.TfLiteModelType.PREFILL_DECODE,
            additional_metadata=[text("prefer_activation_type", "fp32")] if exact else [],
        )
        with target.open("xb") as file:
            builder.build(file)


def builder_version() -> str:
    """The version of the installed litert-lm-builder."""
    return metadata.version("litert-lm-builder")


def _told(tokenizer: Tokenizer, stops: Stops, facts: Facts) -> dict[str, object]:
    return {
        "facts_version": FACTS_VERSION,
        "architecture": facts.architecture,
        "parameters": facts.parameters,
        "trained_context_tokens": facts.trained_context_tokens,
        "vocabulary_size": facts.vocabulary_size,
        "start_id": tokenizer.start_id,
        "end_ids": list(tokenizer.end_ids),
        "start_text": tokenizer.start_text,
        "end_text": tokenizer.end_text,
        "cache_length": facts.cache_length,
        "prefill_lengths": list(facts.prefill_lengths),
        "quantization": facts.quantization,
        "output_quantization": facts.output_quantization,
        "block_size": facts.block_size,
        "stop_tokens": stops.kind,
        "stop_ids": [list(sequence) for sequence in stops.sequences],
        "converter": facts.converter,
    }


def _settings(tokenizer: Tokenizer, stops: Stops, facts: Facts) -> bytes:
    """LiteRT-LM's own metadata, serialised."""
    messages: Any = _library("litert_lm_builder.runtime.proto.llm_metadata_pb2")
    settings = messages.LlmMetadata(max_num_tokens=facts.cache_length)
    # Models whose prompts the engine treats in a way of its own have other kinds.
    settings.llm_model_type.generic_model.SetInParent()
    for sequence in stops.sequences:
        settings.stop_tokens.add().token_ids.ids.extend(sequence)
    if tokenizer.chat_template is not None:
        settings.jinja_prompt_template = with_parts(tokenizer.chat_template)
    made: bytes = settings.SerializeToString(deterministic=True)
    return made


def _library(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = (
            f"{name} can't be imported ({error}); install it with: "
            "pip install 'edgebench[mediapipe]'"
        )
        raise RunnerFailure(msg, reason="unavailable") from error
