"""A folder in Hugging Face's layout: config.json, safetensors, tokenizer.json."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.canonical import CanonicalModel
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import read_json, shown
from edgebench.models.hf_config import parse_config
from edgebench.models.hf_tokenizer import read_tokenizer
from edgebench.models.safetensors_file import read_safetensors
from edgebench.models.weights import row_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.architecture import Architecture
    from edgebench.models.safetensors_file import TensorsByName
    from edgebench.models.weights import Weights

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def open_folder(path: Path) -> CanonicalModel:
    """Open a model's folder; nothing but headers is read.

    Raises:
        ModelFormatError: a file is missing, cut off or damaged, or tensors don't fit the
            configuration.
        UnsupportedModelError: the model holds something that is not understood, which is named.
    """
    if not (path / "config.json").is_file():
        msg = (
            f"{path} has no config.json: it is no model's folder in Hugging Face's layout, or is "
            "incomplete"
        )
        raise ModelFormatError(msg)
    if (path / "adapter_config.json").exists():
        msg = (
            f"{path} holds an adapter (adapter_config.json), which is not understood: merge it "
            "into the model first"
        )
        raise UnsupportedModelError(msg)
    config = parse_config(read_json(path / "config.json"))
    architecture = config.architecture
    weights = fitting(path, architecture, read_tensors(path))
    return CanonicalModel(
        path,
        architecture,
        weights,
        partial(read_tokenizer, path, architecture.vocabulary_size, config.end_ids),
    )


def read_tensors(path: Path) -> TensorsByName:
    """Every tensor of a folder, whether it is in one file or in several.

    As in transformers, ``model.safetensors`` counts before an index, and an index before any
    other file.

    Raises:
        ModelFormatError: files are missing or damaged, or two hold the same tensor.
    """
    if (path / SINGLE).is_file():
        return read_safetensors(path / SINGLE)
    if (path / INDEX).is_file():
        return _indexed(path)
    files = sorted(path.glob("*.safetensors"))
    if not files:
        msg = (
            f"{path} has no *.safetensors. Older formats are not read, as they can run programs: "
            "load the model with transformers and save it again with save_pretrained"
        )
        raise ModelFormatError(msg)
    tensors: TensorsByName = {}
    for file in files:
        for name, tensor in read_safetensors(file).items():
            if name in tensors:
                msg = f"{tensors[name].path} and {file} both hold {name}; remove one of them"
                raise ModelFormatError(msg)
            tensors[name] = tensor
    return tensors


def _indexed(path: Path) -> TensorsByName:
    where = path / INDEX
    places = read_json(where).section("weight_map")
    if places is None:
        msg = f"{where} has no weight_map; it is damaged"
        raise ModelFormatError(msg)
    files: dict[str, TensorsByName] = {}
    tensors: TensorsByName = {}
    for name, file in places.values.items():
        # An index is foreign data: it must not lead out of its folder.
        if not isinstance(file, str) or PurePosixPath(file).name != file:
            msg = f"{where}: {name} is in {shown(file)}, which is no file's name"
            raise ModelFormatError(msg)
        if file not in files:
            if not (path / file).is_file():
                msg = f"{where} names {file}, which is missing; fetch the whole model again"
                raise ModelFormatError(msg)
            files[file] = read_safetensors(path / file)
        if name not in files[file]:
            msg = f"{where} says that {name} is in {file}, which does not hold it"
            raise ModelFormatError(msg)
        tensors[name] = files[file][name]
    return tensors


def fitting(path: Path, architecture: Architecture, tensors: TensorsByName) -> Weights:
    """The tensors that an architecture wants, each of the right shape; no other may be there.

    Raises:
        ModelFormatError: some are missing or of another shape.
        UnsupportedModelError: there are others, which may be part of the forward pass.
    """
    if architecture.layers > len(tensors):  # before they are listed: the number may be anything
        msg = (
            f"{path}: config.json says {architecture.layers} layers, but there are only "
            f"{len(tensors)} tensors; the weights are incomplete or not those of config.json"
        )
        raise ModelFormatError(msg)
    wanted = architecture.tensor_shapes()
    missing = [name for name in wanted if name not in tensors]
    if missing:
        msg = (
            f"{path}: {_some(missing)} missing; the weights are incomplete or not those of "
            "config.json"
        )
        raise ModelFormatError(msg)
    for name, shape in wanted.items():
        if tensors[name].shape != shape:
            msg = (
                f"{path}: {name} is of shape {list(tensors[name].shape)}, but config.json wants "
                f"{list(shape)}; weights and configuration are of different models"
            )
            raise ModelFormatError(msg)
    extra = [name for name in tensors if name not in wanted and not _harmless(name)]
    if OUTPUT in extra and architecture.tied_embeddings:
        _check_tied(path, tensors)
        extra.remove(OUTPUT)
    if extra:
        msg = (
            f"{path}: {_some(extra)} not understood: the model has parts that a "
            f"{architecture.family} model with this config.json has not"
        )
        raise UnsupportedModelError(msg)
    return {name: tensors[name] for name in wanted}


def _harmless(name: str) -> bool:
    """Buffers that old checkpoints kept; the configuration says the same."""
    return name.endswith((".rotary_emb.inv_freq", ".masked_bias", ".attn.bias"))


def _check_tied(path: Path, tensors: TensorsByName) -> None:
    """An output layer beside tied embeddings must be a copy of them."""
    first, second = tensors[EMBEDDING], tensors[OUTPUT]
    same = first.shape == second.shape and all(
        np.array_equal(one, other)
        for one, other in zip(row_blocks(first), row_blocks(second), strict=True)
    )
    if not same:
        msg = (
            f"{path}: config.json says that the output layer is the embedding "
            f"(tie_word_embeddings), but {OUTPUT} and {EMBEDDING} differ; set "
            "tie_word_embeddings to false in a copy of the folder if the model is so"
        )
        raise ModelFormatError(msg)


def _some(names: list[str], most: int = 4) -> str:
    shown_names = ", ".join(names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{shown_names}{more} {'is' if len(names) == 1 else 'are'}"
