"""What decoding a token reads of LiteRT-LM's bundles, counted from the shapes of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import tiny_folder
from weight_shapes import read_whole

from edgebench.runners.base import ConvertRequest
from edgebench.runners.litert_bundle import Part, read_bundle
from edgebench.runners.litert_convert import convert
from edgebench.runners.litert_weight_bytes import weight_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

SMALL = {"cache_length": 64, "prefill_lengths": "16,32"}
BLOCK = 32
HIDDEN = 64


def matrix(form: str, rows: int, columns: int) -> int:
    """Of int8 a scale of 4 bytes for each row, of int4 one of 2 bytes for each block."""
    if form == "int8":
        return rows * (columns + 4)
    if form == "int4":
        return rows * columns // 2 + rows * (columns // BLOCK) * 2
    return rows * columns * {"fp32": 4, "fp16": 2}[form]


def expected(model: Any, form: str) -> int:
    """With int8 for the output layer and the embedding where the layers have integers."""
    output = "int8" if form == "int4" else form
    total = 0 if model.config.tie_word_embeddings else matrix(output, 1, HIDDEN)
    for each in read_whole(model):
        kept = "fp32" if each.vector else output if each.last else form
        total += matrix(kept, each.rows, each.columns)
    return total


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("form", ["fp32", "fp16", "int8", "int4"])
def test_what_a_token_reads_is_counted(tmp_path: Path, form: str, *, tied: bool) -> None:
    """Each weight once, though every graph of the bundle has it; of a table of its own one row."""
    source, bundle = tmp_path / "source", tmp_path / "tiny.litertlm"
    model = tiny_folder(source, "llama", tie_word_embeddings=tied, attention_bias=True)
    convert(ConvertRequest(str(source), form, str(bundle), SMALL))
    assert weight_bytes_per_token(read_bundle(str(bundle))) == expected(model, form)


def test_it_is_told_of_what_is_loaded(tiny: Any, open_model: Callable[..., Any]) -> None:
    """With the facts of the model."""
    with open_model(tiny.artifact) as each:
        told = each.model.weight_bytes_per_token
    assert told == expected(tiny.model, "fp32")


def test_graphs_that_are_no_whole_ones_give_none(tiny: Any) -> None:
    """No failure: there is nothing to count."""
    bundle = read_bundle(str(tiny.artifact))
    (graph,) = bundle.graphs
    cut = Part(graph.begin, graph.begin + 1000)
    assert weight_bytes_per_token(replace(bundle, graphs=(cut,))) is None
