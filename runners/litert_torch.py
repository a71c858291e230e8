"""The way out for architectures that edgebench has no graph for: Google's own litert-torch.

It runs in an interpreter that the user names, where it is installed with torch and jax; edgebench
installs none of them. What it makes is packed as our own graphs are, so that nothing is added to a
prompt. This is the only place where making an artifact for LiteRT-LM starts a process.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.exporter import run_exporter
from edgebench.runners.litert_pack import Facts, write_bundle
from edgebench.runners.litert_stops import stops_of

if TYPE_CHECKING:
    from edgebench.models.fields import Fields
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.runners.litert_convert import Recipe

SCRIPT = Path(__file__).with_name("litert_torch_script.py")
INSTALL = "pip install litert-torch"

BLOCK_SIZES = (32, 64)
"""Of int4, for which ai-edge-quantizer has a recipe."""


def export(python: Path, source: Path, recipe: Recipe, work: Path, target: Path) -> dict[str, str]:
    """Make the bundle with the litert-torch of an interpreter.

    Args:
        python: the interpreter.
        source: a folder in Hugging Face's layout; or a GGUF file, which is written out as one.
        recipe: what to make.
        work: an empty folder for what is half made.
        target: a new file.

    Returns:
        ``tool``, and ``note``.

    Raises:
        RunnerFailure: there is no such interpreter, it lacks a package, or the export failed, with
            the last it said; it can't make what is asked for.
        ModelFormatError: the source is no folder, and no GGUF that can be read.
        OSError: the disk is full, or the target can't be written.
    """
    if shutil.which(python) is None:
        msg = (
            f"litert_torch_python {python} is no program; name the Python of an environment made "
            f"with: {INSTALL}"
        )
        raise RunnerFailure(msg, reason="invalid")
    quantization = recipe.quantization
    if quantization == "int4":
        if recipe.block_size not in BLOCK_SIZES:
            sizes = " and ".join(map(str, BLOCK_SIZES))
            msg = f"block_size {recipe.block_size}: litert-torch makes int4 in blocks of {sizes}"
            raise RunnerFailure(msg, reason="unsupported")
        quantization = f"int4_{recipe.block_size}"
    folder, note = _folder(source, work)
    architecture, vocabulary_size, tokenizer = _known(folder)
    stops = stops_of(recipe.stops, tokenizer, vocabulary_size)
    lengths = ",".join(map(str, recipe.prefill_lengths))
    # Not from where it lies: the modules beside it would hide others of the same name.
    script = work / "export.py"
    shutil.copyfile(SCRIPT, script)
    arguments = [str(folder), str(work), quantization, str(recipe.cache_length), lengths]
    _run([str(python), str(script), *arguments], work, python)
    tool = _tool(work, python)
    facts = Facts(
        architecture=architecture,
        parameters=_parameters(folder),
        trained_context_tokens=_trained_context(folder),
        vocabulary_size=vocabulary_size,
        cache_length=recipe.cache_length,
        prefill_lengths=recipe.prefill_lengths,
        quantization=recipe.quantization,
        output_quantization="as litert-torch keeps it",
        block_size=recipe.block_size if recipe.quantization == "int4" else None,
        converter=tool,
    )
    write_bundle(work / "graphs.tflite", tokenizer, stops, facts, target)
    return {"tool": tool, "note": note} if note else {"tool": tool}


def _folder(source: Path, work: Path) -> tuple[Path, str]:
    """A folder that litert-torch reads, and a warning where its weights had been quantised."""
    if source.is_dir():
        return source.resolve(), ""
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.export import export_folder  # noqa: PLC0415

    model = open_model(source)
    folder = work / "source"
    export_folder(model, folder, "F32")
    return folder, lossy_note(model)


def _known(folder: Path) -> tuple[str, int, Tokenizer]:
    """A model's type, vocabulary and tokenizer, though the model may be one that we don't read."""
    from edgebench.models.errors import ModelFormatError  # noqa: PLC0415 - only for a conversion
    from edgebench.models.hf_config import token_ids  # noqa: PLC0415
    from edgebench.models.hf_tokenizer import read_tokenizer  # noqa: PLC0415

    config = _config(folder)
    size = config.integer("vocab_size")
    kind = config.get("model_type")
    if not isinstance(kind, str):
        msg = f"{config.where} names no model_type: this is not Hugging Face's layout"
        raise ModelFormatError(msg)
    return kind, size, read_tokenizer(folder, size, token_ids(config, "eos_token_id"))


def _config(folder: Path) -> Fields:
    from edgebench.models.fields import read_json  # noqa: PLC0415 - only for a conversion

    config = read_json(folder / "config.json")
    # Of models that also see or hear, the part that speaks.
    return config.section("text_config") or config


def _trained_context(folder: Path) -> int | None:
    length = _config(folder).get("max_position_embeddings")
    return length if isinstance(length, int) else None


def _parameters(folder: Path) -> int | None:
    """How many weights the model has, where edgebench reads it."""
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.errors import ModelFormatError  # noqa: PLC0415

    try:
        return open_model(folder).architecture.parameters
    except ModelFormatError:
        return None


def _run(command: list[str], work: Path, python: Path) -> None:
    """Run the script in the work folder; what it says goes into the log as it says it."""
    failed = run_exporter(command, work)
    if failed is None:
        return
    if failed.missing:
        msg = (
            f"{python} lacks the package {failed.missing}; install into its environment: {INSTALL}"
        )
        raise RunnerFailure(msg, reason="unavailable")
    msg = f"litert-torch ended with status {failed.status}; its last words: {failed.said}"
    raise RunnerFailure(msg)


def _tool(work: Path, python: Path) -> str:
    """What made the graphs, with its version."""
    made = work / "made.json"
    if not made.is_file() or not (work / "graphs.tflite").is_file():
        msg = f"{python} reported success, but made no graphs"
        raise RunnerFailure(msg)
    versions = json.loads(made.read_text("utf-8"))
    return f"litert-torch {versions['litert-torch']} of {python}"
