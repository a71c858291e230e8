"""MNN's artifact, a folder, made from a canonical model: no torch, no ONNX, and no other process.

edgebench writes the graph and the weights; MNN's converter, in this process, turns the graph into
the binary form that the engine loads.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.mnn_decoder import OUTPUT, Decoder
from edgebench.runners.mnn_embedding import embedding_parts, write_embedding
from edgebench.runners.mnn_folder import (
    GRAPH,
    TOKENIZER,
    WEIGHTS,
    ModelFacts,
    mnn_version,
    write_facts,
    write_settings,
)
from edgebench.runners.mnn_quantize import PRECISIONS, Precision
from edgebench.runners.mnn_shapes import check_shapes
from edgebench.runners.mnn_tokenizer import write_tokenizer
from edgebench.runners.mnn_weights import Format, WeightFile

if TYPE_CHECKING:
    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.base import ConvertRequest, Scalar
    from edgebench.runners.mnn_embedding import Embedding

BLOCK_SIZE = 64
"""As MNN's own exporter has it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to make.

    Attributes:
        weights: how the layers' matrices are kept.
        output: how the matrix is kept that makes logits.
        mnn_repo: a checkout of MNN whose exporter is to be run instead, or None.
    """

    weights: Format
    output: Format
    mnn_repo: Path | None = None

    @classmethod
    def of(cls, request: ConvertRequest) -> Recipe:
        """What a request asks for.

        Raises:
            RunnerFailure: it asks for a quantisation that edgebench doesn't make.
        """
        options = request.options
        weights = _precision("quantization", request.quantization)
        output = _precision("output_quantization", options.get("output_quantization") or weights)
        size = options.get("block_size")
        block_size = BLOCK_SIZE if size is None else int(size)
        symmetric = bool(options.get("symmetric"))
        repo = options.get("mnn_repo")
        return cls(
            Format(weights, block_size, symmetric=symmetric),
            Format(output, block_size, symmetric=symmetric),
            Path(str(repo)).expanduser() if repo else None,
        )


def _precision(option: str, value: Scalar) -> Precision:
    for precision in PRECISIONS:
        if value == precision:
            return precision
    msg = f"{option} is {value}; edgebench makes {', '.join(PRECISIONS)} for MNN"
    raise RunnerFailure(msg, reason="unsupported")


def convert(request: ConvertRequest) -> dict[str, str]:
    """Make the artifact of a request; half of one is left if that fails.

    Returns:
        What a reader should know: ``tool`` with its version, and ``note``.

    Raises:
        RunnerFailure: the model can't be read, is of a kind or a shape that MNN's graph isn't
            written for, or can't be kept as asked; MNN's converter failed; the disk is full.
    """
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.errors import (  # noqa: PLC0415
        ModelFormatError,
        UnsupportedModelError,
    )

    recipe = Recipe.of(request)
    source, target = Path(request.source), Path(request.target)
    try:
        if recipe.mnn_repo is not None:
            from edgebench.runners.mnn_exporter import export  # noqa: PLC0415

            return export(recipe.mnn_repo, source, recipe.weights, recipe.output, target)
        return make_folder(open_model(source), recipe.weights, recipe.output, target)
    except UnsupportedModelError as error:
        msg = f"{error}; or name your checkout of MNN as mnn_repo, whose own exporter knows more"
        raise RunnerFailure(msg, reason="unsupported") from error
    except ModelFormatError as error:
        raise RunnerFailure(str(error), reason="invalid") from error
    except OSError as error:
        msg = f"the conversion for MNN failed in {target}: {error.strerror or error}"
        raise RunnerFailure(msg) from error


def make_folder(
    model: CanonicalModel, weights: Format, output: Format, target: Path
) -> dict[str, str]:
    """Make the artifact of an open model; gives what `convert` gives.

    Args:
        model: where weights are read from, some rows at a time.
        weights: how the layers' matrices are kept.
        output: how the matrix is kept that makes logits.
        target: a folder that isn't there yet.

    Raises:
        RunnerFailure: the model has a shape that MNN computes wrongly, or a weight that can't be
            kept as asked; MNN's converter failed, or isn't installed.
        ModelFormatError: the model can't be read.
        OSError: the disk is full, or the target can't be written.
    """
    check_shapes(model.architecture, weights, output)
    tools = _tools()
    target.mkdir()
    # First what is quick to fail.
    lacks = write_tokenizer(model.tokenizer, target / TOKENIZER)
    with WeightFile(target / WEIGHTS, model.weights) as file:
        decoder = Decoder(model, file, weights, output)
        matrix = decoder.build(embedding_parts(model, weights, output))
        embedding = write_embedding(model, file, matrix, weights, target)
        expected = file.bytes_written
    _check_size(target / WEIGHTS, expected)
    _make_graph(tools, decoder, target)
    write_settings(model.architecture, model.tokenizer, embedding, weights, target)
    write_facts(
        ModelFacts.of(model.architecture, model.tokenizer),
        weights,
        output,
        target,
        embedding=embedding.kept_as,
        tokenizer_lacks=lacks,
    )
    made = {"tool": f"edgebench's graph, MNN {mnn_version()} mnnconvert"}
    if note := _note(model, weights, embedding):
        made["note"] = note
    return made


class Tools(Protocol):
    """The part of MNN's converter that is used."""

    def mnnconvert(self, arguments: list[str]) -> bool:
        """Run it as from a command line; the first argument is its name. True whatever happens."""


def _tools() -> Tools:
    """MNN's converter, without ``MNN.tools``, whose import installs packages."""
    try:
        return cast("Tools", importlib.import_module("_tools"))
    except ImportError as error:
        msg = f"MNN can't be imported ({error}); install it with: pip install 'edgebench[mnn]'"
        raise RunnerFailure(msg, reason="unavailable") from error


def _make_graph(tools: Tools, decoder: Decoder, target: Path) -> None:
    draft, made = target / "llm.json", target / GRAPH
    decoder.graph.write(draft, OUTPUT)
    arguments = ["", "-f", "JSON", "--modelFile", str(draft), "--MNNModel", str(made)]
    tools.mnnconvert([*arguments, "--bizCode", "edgebench"])
    # It only prints what goes wrong; a graph with something in it is the sign of success.
    if not made.is_file() or not made.stat().st_size:
        msg = (
            f"MNN {mnn_version()}'s converter made no {GRAPH} of edgebench's graph; what it said "
            "stands in the log"
        )
        raise RunnerFailure(msg)
    draft.unlink()


def _check_size(path: Path, expected: int) -> None:
    size = path.stat().st_size
    if size != expected:
        msg = f"{path} has {size} bytes where {expected} were written: is the disk full?"
        raise RunnerFailure(msg)


def _note(model: CanonicalModel, weights: Format, embedding: Embedding) -> str:
    notes = [lossy_note(model)]
    if not model.architecture.tied_embeddings and weights.precision != "fp32":
        notes.append(f"embeddings are kept as {embedding.kept_as}")
    return "; ".join(filter(None, notes))
