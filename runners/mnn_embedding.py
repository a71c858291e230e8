"""How MNN gets a token's embedding: from the file of weights, or from a file of its own.

MNN reads embeddings outside of its graph, as bfloat16, float16 or integers, never as float32. So
that an fp32 artifact loses nothing, each row is kept as three rows of bfloat16, which the graph
adds up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.runners.mnn_quantize import in_bfloat16, in_three_parts
from edgebench.runners.mnn_weights import Format, checked_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.mnn_weights import Matrix, WeightFile

NAME = "model.embed_tokens.weight"
FILE = "embeddings_bf16.bin"
"""The name that MNN looks for."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """How embeddings are kept.

    Attributes:
        kept_as: in words.
        parts: rows that the graph adds up to a token's embedding.
        settings: what MNN's ``llm_config.json`` says of them, beside their width.
    """

    kept_as: str
    parts: int = 1
    settings: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)


def embedding_parts(model: CanonicalModel, weights: Format, output: Format) -> int:
    """How many rows make an embedding, which the graph has to know before they are written."""
    last = output if model.architecture.tied_embeddings else weights
    return 3 if last.precision == "fp32" else 1


def write_embedding(
    model: CanonicalModel, file: WeightFile, output: Matrix, weights: Format, folder: Path
) -> Embedding:
    """Write what isn't written yet.

    Tied embeddings are the output layer's matrix, in its precision, as MNN's own exporter shares
    it. Others are kept in 16 bits: beside integers in bfloat16, as it keeps them; beside float16 in
    float16, which is more exact than its bfloat16 and no larger; beside float32 in float32.
    """
    tied = model.architecture.tied_embeddings
    if embedding_parts(model, weights, output.format) == 3:  # noqa: PLR2004 - see there
        _write_file(model, folder / FILE, exact=True)
        return Embedding("float32, as three parts of bfloat16", parts=3)
    if tied:
        kept = f"{output.format.precision}, shared with the output layer"
        return Embedding(kept, settings=_inside(output))
    if weights.precision == "fp16":
        settings = {"tie_embeddings": _place(file.halves(NAME), file.bytes_written, 0, weights)}
        return Embedding("float16", settings=settings)
    _write_file(model, folder / FILE, exact=False)
    return Embedding("bfloat16")


def _inside(matrix: Matrix) -> dict[str, Mapping[str, str | int]]:
    """Embeddings that are read where the output layer's weights lie."""
    start, scales = matrix.offset + matrix.header_bytes, matrix.offset + matrix.weight_bytes
    return {"tie_embeddings": _place(start, scales, matrix.scale_bytes, matrix.format)}


def _place(start: int, scales: int, scale_bytes: int, form: Format) -> dict[str, str | int]:
    """Where rows and their scales lie in the weight file, by MNN's names."""
    return {
        "weight_offset": start,
        "alpha_offset": scales,
        "alpha_size": scale_bytes,
        "quant_bit": form.bits,
        "quant_block": form.block_size,
        "alpha_dtype": "fp16",
    }


def _write_file(model: CanonicalModel, path: Path, *, exact: bool) -> None:
    form = Format("fp32")
    with path.open("xb") as file:
        for rows in checked_rows(NAME, model.weights[NAME], form):
            file.write((in_three_parts(rows) if exact else in_bfloat16(rows)).data)
