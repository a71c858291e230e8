"""Whether a folder is a whole MNN model, looked at before MNN gets to see it.

Of most faults in a folder MNN says nothing: it loads, and then crashes or computes with garbage.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeGuard

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mnn_reach import weight_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
"""The newest edgebench.json that is understood."""

WAY_OUT = "choose quantization fp32, fp16, int8 or int4 to have its folder made from the model"
BFLOAT16_BYTES = 2
TIED = ("weight_offset", "alpha_offset", "alpha_size")  # bytes, in the weight file
BITS = "quant_bit"  # what follows in lists of the same

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class EmbeddingPlace:
    """Where a token's embedding is read.

    Attributes:
        begin: of the first row in the weight file; 0 in a file of its own.
        row_bytes: of a row, its scales aside.
        scale_bytes: of the scales and zeros of all rows.
    """

    begin: int
    row_bytes: int
    scale_bytes: int = 0


@dataclass(frozen=True, slots=True)
class MnnModel:
    """What a folder says of itself; what it does not say is None.

    Attributes:
        config: path of MNN's own configuration file.
        graph: path of its graph.
        embedding: where embeddings lie.
        vocabulary_size: None where only the logits tell.
    """

    config: str
    graph: str
    embedding: EmbeddingPlace | None
    vocabulary_size: int | None
    architecture: str | None
    parameters: int | None
    trained_context_tokens: int | None
    chat_template: str | None
    start_text: str
    end_text: str


def check_model(path: str, engine_version: str) -> MnnModel:
    """Read what a folder says of itself, once its files are there and as long as they must be.

    Args:
        path: the folder.
        engine_version: of the MNN that is to read it.

    Raises:
        RunnerFailure: it is no MNN folder (invalid), a part of it is missing or cut off (invalid),
            or it is made for a newer MNN or edgebench (unsupported).
    """
    folder = Path(path)
    _check_kind(folder)
    config = {**_object(folder / "config.json"), **_model_config(folder)}
    graph, weights = (
        _file(folder, config, "llm_model", "llm.mnn"),
        _file(folder, config, "llm_weight", "llm.mnn.weight"),
    )
    _file(folder, config, "tokenizer_file", "tokenizer.txt")
    facts = _facts(folder, engine_version)
    vocabulary = _whole(facts.get("vocabulary_size"))
    _check_weights(graph, weights)
    embedding = _check_embeddings(folder, config, weights, vocabulary)
    return MnnModel(
        config=str(folder / "config.json"),
        graph=str(graph),
        embedding=embedding,
        vocabulary_size=vocabulary,
        architecture=_text(facts.get("architecture")) or _text(config.get("model_type")),
        parameters=_whole(facts.get("parameters")),
        trained_context_tokens=_whole(facts.get("trained_context_tokens"))
        or _whole(config.get("max_position_embeddings")),
        chat_template=_text(facts.get("chat_template")) or _jinja(config),
        start_text=_text(facts.get("start_text")) or "",
        end_text=_text(facts.get("end_text")) or "",
    )


def _check_kind(folder: Path) -> None:
    if folder.is_file():
        _refuse(f"MNN reads folders of its own and {folder.name} is a file; {WAY_OUT}")
    if not folder.is_dir():
        _refuse(f"there is no folder {folder}")
    if (folder / "llm.mnn").exists():
        return
    if any(folder.glob("*.safetensors")):
        _refuse(f"{folder.name} is a folder of Hugging Face's and MNN reads its own; {WAY_OUT}")
    # A folder may name its graph otherwise; then its configuration does.
    if not (folder / "config.json").is_file():
        _refuse(f"{folder.name} is no MNN folder: it has no config.json; {WAY_OUT}")


def _model_config(folder: Path) -> Json:
    named = _text(_object(folder / "config.json").get("llm_config"))
    return _object(folder / (named or "llm_config.json"))


def _object(path: Path) -> Json:
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        _refuse(f"{path.parent.name} is no whole MNN folder: it has no {path.name}")
    except (OSError, ValueError) as error:
        _refuse(f"{path} can't be read: {error}")
    if not is_object(value):
        _refuse(f"{path} is no JSON object")
    return value


def is_object(value: object) -> TypeGuard[Json]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def _file(folder: Path, config: Mapping[str, object], key: str, default: str) -> Path:
    path = folder / (_text(config.get(key)) or default)
    if not path.is_file():
        _refuse(f"{folder.name} is no whole MNN folder: it has no {path.name} ({key})")
    return path


def _facts(folder: Path, engine_version: str) -> Json:
    path = folder / "edgebench.json"
    if not path.exists():
        return {}
    facts = _object(path)
    schema = facts.get("schema_version")
    if schema != SCHEMA_VERSION:
        msg = f"{path} has schema version {schema}, this edgebench reads {SCHEMA_VERSION}"
        raise RunnerFailure(msg, reason="unsupported")
    made_by = _text(facts.get("mnn_version"))
    if made_by and _release(made_by) > _release(engine_version):
        msg = (
            f"{folder.name} was made for MNN {made_by} and MNN {engine_version} is installed; "
            "install the newer one or have the folder made anew"
        )
        raise RunnerFailure(msg, reason="unsupported")
    return facts


def _release(version: str) -> tuple[int, ...]:
    """Major and minor number: a graph's operators change with these."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _check_weights(graph: Path, weights: Path) -> None:
    try:
        needed = weight_bytes(graph.read_bytes())
    except ValueError as error:
        _refuse(f"{graph} is damaged or cut off ({error})")
    _check_size(weights, needed)


def _check_embeddings(
    folder: Path, config: Mapping[str, object], weights: Path, vocabulary: int | None
) -> EmbeddingPlace | None:
    """Embeddings stand in a file of their own, or are the output's weights read a second time.

    Returns:
        Where; None where the folder does not tell how they are kept.
    """
    tied = config.get("tie_embeddings")
    if not tied:
        path = _file(folder, config, "embedding_file", "embeddings_bf16.bin")
        width = _whole(config.get("hidden_size"))
        if width is None:
            _refuse(f"{folder.name} does not tell its hidden_size")
        row = BFLOAT16_BYTES * width
        if vocabulary is not None:
            _check_size(path, vocabulary * row)
        if path.stat().st_size % row:
            _refuse(f"{path} is cut off: it ends within a row of {row} bytes")
        return EmbeddingPlace(0, row)
    place = [tied.get(key) for key in (*TIED, BITS)] if is_object(tied) else tied
    place = place if isinstance(place, list) else []
    numbers = [number for number in map(_whole, place[: len(TIED)]) if number is not None]
    if len(numbers) != len(TIED):
        _refuse(f"the tie_embeddings of {folder.name} can't be read: {tied}")
    start, alpha, size = numbers
    # Without an offset they are quantised in a file of their own.
    path = weights if start else _file(folder, config, "embedding_file", "embeddings_bf16.bin")
    _check_size(path, alpha + size)
    width = _whole(config.get("hidden_size"))
    bits = _whole(place[len(TIED)]) if len(place) > len(TIED) else None
    if width is None or bits is None:
        return None
    return EmbeddingPlace(start, width * bits // 8, size)


def _check_size(path: Path, needed: int) -> None:
    size = path.stat().st_size
    if size < needed:
        _refuse(
            f"{path} is cut off: it has {size} bytes and needs {needed} or more; "
            "have the folder made anew"
        )


def _jinja(config: Mapping[str, object]) -> str | None:
    jinja = config.get("jinja")
    return _text(jinja.get("chat_template")) if is_object(jinja) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _refuse(message: str) -> NoReturn:
    raise RunnerFailure(message, reason="invalid")
