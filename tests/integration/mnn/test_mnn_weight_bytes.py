"""What decoding a token reads of MNN's artifacts, counted from the shapes of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import tiny_folder
from weight_shapes import read_whole

from edgebench.runners.base import ConvertRequest
from edgebench.runners.mnn_check import check_model
from edgebench.runners.mnn_convert import convert
from edgebench.runners.mnn_weight_bytes import weight_bytes_per_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

BLOCK = 32
HIDDEN, VOCABULARY = 64, 320
BITS = {"fp32": 32, "fp16": 16, "int8": 8, "int4": 4}


def whole(model: Any, quantization: str, *, symmetric: bool = False) -> int:
    """Of what is read whole: a scale in two bytes for each block, and a zero point unless 0."""
    total = 0
    for each in read_whole(model):
        if each.vector:
            # A norm's weights and the zeros of its shift; a bias, which every layer has, is below.
            total += 4 * each.columns * (2 if "norm" in each.name else 1)
            continue
        total += each.rows * each.columns * BITS[quantization] // 8
        if quantization.startswith("int"):
            total += each.rows * (each.columns // BLOCK) * (2 if symmetric else 4)
        elif not model.config.attention_bias or "proj" not in each.name or "mlp" in each.name:
            total += 4 * each.rows  # zeros for a bias that the model lacks
    return total


def row(quantization: str, *, tied: bool) -> int:
    """Of the embedding, unless it is read with the output layer, in bytes."""
    if quantization == "fp32":
        return 3 * 2 * HIDDEN  # three parts in a file of its own, tied or not
    return 0 if tied else 2 * HIDDEN


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("quantization", list(BITS))
def test_what_a_token_reads_is_counted(tmp_path: Path, quantization: str, *, tied: bool) -> None:
    """Each weight once, with scales and zero points; of an embedding of its own, one row."""
    model = tiny_folder(tmp_path / "source", "llama", tie_word_embeddings=tied, attention_bias=True)
    artifact = tmp_path / "artifact"
    options = {"block_size": BLOCK} if quantization.startswith("int") else {}
    convert(ConvertRequest(str(tmp_path / "source"), quantization, str(artifact), options))
    found = weight_bytes_per_token(check_model(str(artifact), "3.6.1"))
    assert found == whole(model, quantization) + row(quantization, tied=tied)


def test_symmetric_integers_have_no_zero_points(tmp_path: Path) -> None:
    """Two bytes less for each block."""
    model = tiny_folder(tmp_path / "source", "llama")
    artifact = tmp_path / "artifact"
    options = {"block_size": BLOCK, "symmetric": True}
    convert(ConvertRequest(str(tmp_path / "source"), "int8", str(artifact), options))
    found = weight_bytes_per_token(check_model(str(artifact), "3.6.1"))
    assert found == whole(model, "int8", symmetric=True) + row("int8", tied=False)


def test_it_is_told_of_what_is_loaded(tiny: Any, open_model: Callable[..., Any]) -> None:
    """With the facts of the model, whether or not the load was prepared."""
    with open_model(tiny.artifact) as each:
        told = each.model.weight_bytes_per_token
    assert told == whole(tiny.model, "fp32") + row("fp32", tied=False)


def test_a_folder_that_does_not_tell_gives_none(artifact: Path) -> None:
    """No failure: without known rows of the embedding there is nothing to count."""
    (artifact / "llm.mnn").write_bytes(b"\0" * 64)
    model = check_model_without_graph(artifact)
    assert weight_bytes_per_token(model) is None


def check_model_without_graph(artifact: Path) -> Any:
    """As `check_model` gives it, of a folder whose graph is damaged."""
    from edgebench.runners.mnn_check import EmbeddingPlace, MnnModel

    return MnnModel(
        config=str(artifact / "config.json"),
        graph=str(artifact / "llm.mnn"),
        embedding=EmbeddingPlace(0, 2 * HIDDEN),
        vocabulary_size=VOCABULARY,
        architecture=None,
        parameters=None,
        trained_context_tokens=None,
        chat_template=None,
        start_text="",
        end_text="",
    )
