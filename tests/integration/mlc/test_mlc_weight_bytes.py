"""What decoding a token reads of MLC's folders, counted from the shapes of the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mlc_damage import INDEX
from weight_shapes import read_whole

from edgebench.runners.mlc_folder import Folder, read_folder
from edgebench.runners.mlc_library import Metadata
from edgebench.runners.mlc_weight_bytes import weight_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

HIDDEN = 64
GROUP = 32


def whole(model: Any, quantization: str) -> int:
    """Of what is read whole: of 32 neighbours 16 bytes and a scale of 4, or 4 bytes for each."""
    total = 0
    for each in read_whole(model):
        if each.vector or quantization == "q0f32":
            total += 4 * each.rows * each.columns
        else:
            total += each.rows * (each.columns // GROUP) * (GROUP // 2 + 4)
    return total


def row(quantization: str, *, tied: bool) -> int:
    """Of an embedding that is not the output layer."""
    if tied:
        return 0
    return 4 * HIDDEN if quantization == "q0f32" else HIDDEN // GROUP * (GROUP // 2 + 4)


@pytest.mark.parametrize(("quantization", "tied"), [("q0f32", True), ("q4f32_1", False)])
def test_what_a_token_reads_is_counted(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any], quantization: str, *, tied: bool
) -> None:
    """Each weight once, with its scales; of an embedding of its own, one row."""
    made = make_tiny(quantization=quantization, tie_word_embeddings=tied)
    with open_model(made.artifact) as each:
        told = each.model.weight_bytes_per_token
    assert told == whole(made.model, quantization) + row(quantization, tied=tied)


def test_an_untied_embedding_counts_with_a_row(tiny: Any, open_model: Callable[..., Any]) -> None:
    """In float32 as well."""
    with open_model(tiny.artifact) as each:
        told = each.model.weight_bytes_per_token
    assert told == whole(tiny.model, "q0f32") + row("q0f32", tied=False)


def metadata_of(folder: Folder, **renamed: str) -> Metadata:
    """A library that takes all parameters of a folder, some by other names."""
    names = [renamed.get(name, name) for name in folder.tensors]
    return Metadata(
        model_type="llama", quantization="q0f32", context_tokens=None, prefill_chunk=64,
        sliding_window=None, parameters=tuple((name, (), "float32") for name in names),
        built_by=None,
    )  # fmt: skip


def test_weights_that_the_file_halves_count_as_they_are_loaded(artifact: Path, tiny: Any) -> None:
    """MLC keeps float32 as bfloat16 in the file, and computes with float32."""
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    begin = 0
    for shard in index["records"]:
        for record in shard["records"]:
            record |= {"format": "f32-to-bf16", "nbytes": record["nbytes"] // 2}
            record["byteOffset"] = begin
            begin += record["nbytes"]
    (artifact / INDEX).write_text(json.dumps(index), encoding="utf-8")
    folder = read_folder(str(artifact), None)
    found = weight_bytes_per_token(folder, metadata_of(folder))
    assert found == whole(tiny.model, "q0f32") + row("q0f32", tied=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model.embed_tokens.weight", "model.rows.weight"),
        ("model.layers.0.mlp.down_proj.weight", "model.layers.0.moe.down_proj.weight"),
    ],
)
def test_what_cannot_be_told_is_none(artifact: Path, old: str, new: str) -> None:
    """Without an embedding of a known name, and where a token takes some experts only."""
    index = (artifact / INDEX).read_text("utf-8")
    assert old in index
    (artifact / INDEX).write_text(index.replace(old, new), encoding="utf-8")
    folder = read_folder(str(artifact), None)
    assert weight_bytes_per_token(folder, metadata_of(folder)) is None
