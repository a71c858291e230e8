"""A bundle for LiteRT-LM, one file, made from a canonical model: no torch and no other process."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.litert_decoder import Forms, decoder_graphs
from edgebench.runners.litert_file import ModelFile
from edgebench.runners.litert_pack import Facts, write_bundle
from edgebench.runners.litert_settings import (
    CACHE_LENGTH,
    PREFILL_LENGTHS,
    QUANTIZATIONS,
    WEIGHT_ONLY,
)
from edgebench.runners.litert_shapes import check_lengths, check_shapes
from edgebench.runners.litert_stops import STOPS, stops_of
from edgebench.runners.litert_weights import BLOCK_SIZE, PRECISIONS, Form, Precision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.base import ConvertRequest, Scalar


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to make.

    Attributes:
        quantization: of the layers' matrices.
        output: how the output layer and the embedding are kept.
        block_size: of int4.
        cache_length: the most tokens, prompt and generated together.
        prefill_lengths: how many tokens the graphs take at once, ascending.
        stops: whether the bundle stops at the model's own ends of a text.
        litert_torch_python: an interpreter with litert-torch that is to make the graphs, or None.
    """

    quantization: str
    output: Precision
    block_size: int
    cache_length: int
    prefill_lengths: Sequence[int]
    stops: str
    litert_torch_python: Path | None = None

    @classmethod
    def of(cls, request: ConvertRequest) -> Recipe:
        """What a request asks for.

        Raises:
            RunnerFailure: it asks for something that edgebench doesn't make.
        """
        options = request.options
        quantization = request.quantization
        _check_choice("quantization", quantization, QUANTIZATIONS)
        output = options.get("output_quantization")
        if output is None:
            output = quantization if quantization in ("fp32", "fp16") else "int8"
        precision = _precision(output)
        if quantization == WEIGHT_ONLY and precision == "int4":
            msg = (
                f"output_quantization is int4, of which blocks can't be widened as {WEIGHT_ONLY} "
                "does it; leave it out"
            )
            raise RunnerFailure(msg, reason="unsupported")
        block_size = options.get("block_size")
        if block_size is not None and "int4" not in (quantization, precision):
            msg = (
                f"block_size is of int4, and {quantization} with {precision} for the output layer "
                "has no blocks; leave it out"
            )
            raise RunnerFailure(msg, reason="unsupported")
        stops = options.get("stop_tokens") or STOPS[0]
        _check_choice("stop_tokens", stops, STOPS)
        cache_length = _whole(options.get("cache_length"), CACHE_LENGTH)
        asked = options.get("prefill_lengths") or _default_lengths(cache_length)
        lengths = check_lengths(asked, cache_length)
        python = options.get("litert_torch_python")
        if python and options.get("output_quantization") is not None:
            msg = "litert-torch keeps all matrices alike: leave output_quantization out"
            raise RunnerFailure(msg, reason="unsupported")
        return cls(
            quantization=quantization,
            output=precision,
            block_size=_whole(block_size, BLOCK_SIZE),
            cache_length=cache_length,
            prefill_lengths=lengths,
            stops=str(stops),
            litert_torch_python=Path(str(python)).expanduser() if python else None,
        )

    @property
    def forms(self) -> Forms:
        """How the graphs that edgebench writes keep their matrices."""
        widened = self.quantization == WEIGHT_ONLY
        weights = _precision("int8" if widened else self.quantization)
        return Forms(
            Form(weights, self.block_size, widened=widened),
            Form(self.output, self.block_size, widened=widened and self.output == "int8"),
        )


def _check_choice(option: str, value: Scalar, choices: Sequence[str]) -> None:
    if value not in choices:
        msg = f"{option} is {value}; edgebench makes {', '.join(choices)} for LiteRT-LM"
        raise RunnerFailure(msg, reason="unsupported")


def _precision(value: Scalar) -> Precision:
    for precision in PRECISIONS:
        if value == precision:
            return precision
    msg = f"output_quantization is {value}; edgebench makes {', '.join(PRECISIONS)} for LiteRT-LM"
    raise RunnerFailure(msg, reason="unsupported")


def _default_lengths(cache_length: int) -> str:
    fit = [length for length in PREFILL_LENGTHS if length <= cache_length] or [cache_length]
    return ",".join(map(str, fit))


def _whole(value: Scalar, default: int) -> int:
    return default if value is None else int(value)


def convert(request: ConvertRequest) -> dict[str, str]:
    """Make the bundle of a request; half of one is left if that fails.

    Returns:
        What a reader should know: ``tool`` with its version, and ``note``.

    Raises:
        RunnerFailure: the model can't be read, is of a kind or a shape that the graph isn't
            written for, or can't be kept as asked; a package is missing; the disk is full.
    """
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.errors import (  # noqa: PLC0415
        ModelFormatError,
        UnsupportedModelError,
    )

    recipe = Recipe.of(request)
    source, target = Path(request.source), Path(request.target)
    try:
        if recipe.litert_torch_python is not None:
            from edgebench.runners.litert_torch import export  # noqa: PLC0415

            with beside(target) as work:
                return export(recipe.litert_torch_python, source, recipe, work, target)
        return make_bundle(open_model(source), recipe, target)
    except UnsupportedModelError as error:
        msg = (
            f"{error}; or name a Python that has litert-torch as litert_torch_python, which knows "
            "more models"
        )
        raise RunnerFailure(msg, reason="unsupported") from error
    except ModelFormatError as error:
        raise RunnerFailure(str(error), reason="invalid") from error
    except OSError as error:
        msg = f"the conversion for LiteRT-LM failed in {target}: {error.strerror or error}"
        raise RunnerFailure(msg) from error


def make_bundle(model: CanonicalModel, recipe: Recipe, target: Path) -> dict[str, str]:
    """Make the bundle of an open model; gives what `convert` gives.

    Args:
        model: where weights are read from, some rows at a time.
        recipe: what to make.
        target: a new file; about as much again stands beside it meanwhile.

    Raises:
        RunnerFailure: the model has a shape that the engine can't do, or a weight that can't be
            kept as asked; a package is missing.
        ModelFormatError: the model can't be read.
        OSError: the disk is full, or the target can't be written.
    """
    architecture, forms = model.architecture, recipe.forms
    check_shapes(architecture, forms)
    # First what is quick to fail.
    stops = stops_of(recipe.stops, model.tokenizer, architecture.vocabulary_size)
    tool = f"edgebench's graph for LiteRT {litert_version()}"
    facts = Facts(
        architecture=architecture.family,
        parameters=architecture.parameters,
        trained_context_tokens=architecture.context_tokens,
        vocabulary_size=architecture.vocabulary_size,
        cache_length=recipe.cache_length,
        prefill_lengths=recipe.prefill_lengths,
        quantization=recipe.quantization,
        output_quantization=recipe.output,
        block_size=recipe.block_size if "int4" in (recipe.quantization, recipe.output) else None,
        converter=tool,
    )
    with beside(target) as place:
        graphs = place / "graphs.tflite"
        made = decoder_graphs(model, forms, recipe.prefill_lengths, recipe.cache_length)
        ModelFile(made, tool).write(graphs)
        write_bundle(graphs, model.tokenizer, stops, facts, target)
    result = {"tool": tool}
    if note := _note(model, recipe):
        result["note"] = note
    return result


def _note(model: CanonicalModel, recipe: Recipe) -> str:
    notes = [lossy_note(model)]
    if recipe.quantization.removesuffix("_weight_only") != recipe.output:
        notes.append(f"embedding and output layer are kept as {recipe.output}")
    return "; ".join(filter(None, notes))


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A folder for half-made things beside a target, on the same disk, which is then removed."""
    with tempfile.TemporaryDirectory(prefix=target.name + ".", dir=target.parent) as place:
        yield Path(place)


def litert_version() -> str:
    """The version of the installed ai-edge-litert, whose schema the graphs are written with."""
    try:
        return metadata.version("ai-edge-litert")
    except metadata.PackageNotFoundError as error:
        msg = (
            "the package ai-edge-litert is not installed; install it with: "
            "pip install 'edgebench[mediapipe]'"
        )
        raise RunnerFailure(msg, reason="unavailable") from error
