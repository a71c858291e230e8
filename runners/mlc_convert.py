"""A folder of MLC's, made from a canonical model: by MLC's own tools, or with TVM alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.mlc_layout import OWN, Quantization
from edgebench.runners.mlc_names import CONFIG, LIBRARY
from edgebench.runners.mlc_package import installed
from edgebench.runners.mlc_settings import (
    AUTO,
    CHUNK,
    COMPILERS,
    INSTALL_MLC_LLM,
    MLC_LLM,
    QUANTIZATIONS,
)
from edgebench.runners.tvm_library import not_imported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.models.architecture import Architecture
    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.base import ConvertRequest


@dataclass(frozen=True, slots=True)
class Recipe:
    """What edgebench is to make itself.

    Attributes:
        quantization: of the weights.
        context: the most tokens, prompt and generated together; None for the model's own.
        chunk: the most tokens of a prompt that are taken in at once.
    """

    quantization: Quantization
    context: int | None = None
    chunk: int = CHUNK

    @classmethod
    def of(cls, request: ConvertRequest) -> Recipe:
        """What a request asks for.

        Raises:
            RunnerFailure: it asks for something that only MLC's compiler makes.
        """
        quantization = OWN.get(request.quantization)
        if quantization is None:
            msg = (
                f"{request.quantization} takes MLC's own compiler, and TVM alone makes "
                f"{', '.join(OWN)}; install MLC's package: {INSTALL_MLC_LLM}"
            )
            raise RunnerFailure(msg, reason="unsupported")
        context = request.options.get("context_window")
        return cls(
            quantization,
            None if context is None else int(context),
            int(request.options.get("prefill_chunk_size") or CHUNK),
        )


def convert(request: ConvertRequest) -> dict[str, str]:
    """Make the folder of a request; half of one is left if that fails.

    Returns:
        What a reader should know: ``tool`` with its version, and ``note``.

    Raises:
        RunnerFailure: the model can't be read, is of a kind that the library isn't written for,
            or can't be kept as asked; a package or a linker is missing; the disk is full.
    """
    from edgebench.models.errors import (  # noqa: PLC0415 - only for a conversion
        ModelFormatError,
        UnsupportedModelError,
    )

    _check_choice("quantization", request.quantization, QUANTIZATIONS)
    compiler = request.options.get("compiler") or AUTO
    _check_choice("compiler", compiler, COMPILERS)
    if (Path(request.source) / CONFIG).is_file():
        msg = f"{request.source} is a folder of MLC's own: set quantization: source"
        raise RunnerFailure(msg, reason="unsupported")
    try:
        if compiler == MLC_LLM or (compiler == AUTO and installed() is not None):
            from edgebench.runners.mlc_compiler import make  # noqa: PLC0415

            return make(request)
        return _make_own(request)
    except UnsupportedModelError as error:
        raise RunnerFailure(str(error), reason="unsupported") from error
    except ModelFormatError as error:
        raise RunnerFailure(str(error), reason="invalid") from error
    except OSError as error:
        msg = f"the conversion for MLC failed in {request.target}: {error.strerror or error}"
        raise RunnerFailure(msg) from error


def _check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        msg = f"{option} is {value}; for MLC there are {', '.join(choices)}"
        raise RunnerFailure(msg, reason="unsupported")


def _make_own(request: ConvertRequest) -> dict[str, str]:
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - needs numpy

    recipe = Recipe.of(request)
    if request.options.get("compile_for") not in (None, "cpu"):
        msg = (
            f"compile_for is {request.options['compile_for']}: edgebench builds libraries for the "
            f"CPU only; for others install MLC's compiler: {INSTALL_MLC_LLM}"
        )
        raise RunnerFailure(msg, reason="unsupported")
    return make_folder(open_model(Path(request.source)), recipe, Path(request.target))


def make_folder(model: CanonicalModel, recipe: Recipe, target: Path) -> dict[str, str]:
    """Make the folder of an open model with TVM alone; gives what `convert` gives.

    Args:
        model: where weights are read from, some rows at a time.
        recipe: what to make.
        target: a folder that isn't there yet.

    Raises:
        RunnerFailure: the model has a shape that isn't computed, or a weight that can't be kept as
            asked; TVM or a linker is missing.
        ModelFormatError: the model can't be read.
        OSError: the disk is full, or the target can't be written.
    """
    from edgebench.runners.mlc_config import sizes, write_config, write_tokenizer  # noqa: PLC0415
    from edgebench.runners.mlc_weights import write_weights  # noqa: PLC0415

    try:
        from edgebench.runners.tvm_build import Tools, build_library, tvm_version  # noqa: PLC0415
    except ImportError as error:
        raise not_imported(error) from error
    architecture = model.architecture
    check_shapes(architecture)
    context = recipe.context or architecture.context_tokens
    chunk = min(recipe.chunk, context)
    shared = sizes(architecture, recipe.quantization, context, chunk)
    tools = Tools.find(recipe.quantization)
    target.mkdir()
    # First what is quick to fail; last what makes the folder a model.
    write_tokenizer(model, target)
    write_weights(model, recipe.quantization, target)
    library = target / LIBRARY
    unscheduled = build_library(architecture, recipe.quantization, shared, tools, library)
    write_config(model, shared, target)
    made = {"tool": f"edgebench's model for TVM {tvm_version()}"}
    if note := _note(model, recipe.quantization, context, unscheduled):
        made["note"] = note
    return made


def check_shapes(architecture: Architecture) -> None:
    """Refuse by name what can't be computed.

    Raises:
        RunnerFailure: the head's size is odd.
    """
    if architecture.head_size % 2:
        msg = f"heads of {architecture.head_size} numbers can't be rotated: the size is odd"
        raise RunnerFailure(msg, reason="unsupported")


def _note(
    model: CanonicalModel, quantization: Quantization, context: int, unscheduled: Sequence[str]
) -> str:
    notes = ["TVM compiled edgebench's model with edgebench's schedules: no figure of MLC's"]
    notes.append(lossy_note(model))
    if model.lossy_types and quantization.grouped:
        notes.append("and 4 bits of another kind lose more: verifying shows how much")
    trained = model.architecture.context_tokens
    if context > trained:
        notes.append(f"compiled for {context} tokens, where the model was trained for {trained}")
    if unscheduled:
        notes.append(f"slow, since TVM could not schedule them: {', '.join(unscheduled)}")
    return "; ".join(filter(None, notes))
