"""The way out for architectures that edgebench has no graph for: MNN's own exporter.

It is run from the user's checkout of MNN, with this Python, which needs torch and whatever else
that exporter imports. This is the only place where making an artifact for MNN starts a process.
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.exporter import run_exporter
from edgebench.runners.mnn_folder import FACTS, GRAPH, WEIGHTS, ModelFacts, write_facts

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.runners.mnn_weights import Format

SCRIPT = "transformers/llm/export/llmexport.py"

CONVERTER = """\
#!{python}
import sys
import _tools
_tools.mnnconvert(["", *sys.argv[1:]])
"""
"""Stands in for MNN's converter program. Without one, the exporter would import ``MNN.tools``,
which installs packages as it is imported."""


def export(
    repo: Path, source: Path, weights: Format, output: Format, target: Path
) -> dict[str, str]:
    """Make the artifact with the exporter of a checkout of MNN.

    Args:
        repo: the top of the checkout.
        source: a folder in Hugging Face's layout; or a GGUF file, which is written out as one.
        weights: how the layers' matrices are to be kept.
        output: how the matrix is to be kept that makes logits.
        target: a folder that isn't there yet; work is done beside it.

    Returns:
        ``tool``, and ``note``.

    Raises:
        RunnerFailure: there is no exporter, it can't make what is asked for, lacks a package, or
            failed, with the last it said.
        ModelFormatError: the source is no folder, and no GGUF that can be read.
    """
    script = repo / SCRIPT
    if not script.is_file():
        msg = (
            f"mnn_repo {repo} has no {SCRIPT}; name the top of a checkout of "
            "https://github.com/alibaba/MNN"
        )
        raise RunnerFailure(msg, reason="invalid")
    for form in (weights, output):
        if form.precision == "fp32":
            msg = "MNN's own exporter makes fp16, int8 and int4, not fp32"
            raise RunnerFailure(msg, reason="unsupported")
    work = target.with_name(target.name + ".exporter")
    work.mkdir()
    try:
        folder, note = _folder(source, work)
        _run(_command(repo, folder, weights, output, work), work)
        _collect(work / "out", target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    write_facts(
        _facts(source),
        weights,
        output,
        target,
        embedding="as MNN's exporter keeps it",
        tokenizer_lacks=None,
    )
    made = {"tool": f"{SCRIPT} of {repo}"}
    if note:
        made["note"] = note
    return made


def _folder(source: Path, work: Path) -> tuple[Path, str]:
    """A folder that the exporter reads, and a warning where its weights had been quantised."""
    if source.is_dir():
        return source.resolve(), ""
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.export import export_folder  # noqa: PLC0415

    model = open_model(source)
    folder = work / "source"
    export_folder(model, folder, "F16")
    return folder, lossy_note(model)


def _command(repo: Path, folder: Path, weights: Format, output: Format, work: Path) -> list[str]:
    """The exporter's command line; its paths are relative, since it quotes none of them."""
    built = repo / "build" / "MNNConvert"
    if not built.is_file():
        built = work / "mnnconvert"
        built.write_text(CONVERTER.format(python=sys.executable), encoding="utf-8")
        built.chmod(0o755)
    (work / "converter").symlink_to(built.resolve())
    command = [sys.executable, str((repo / SCRIPT).resolve()), "--path", str(folder)]
    command += ["--dst_path", "out", "--export", "mnn", "--mnnconvert", "./converter"]
    command += ["--quant_bit", str(weights.bits), "--quant_block", str(weights.block_size)]
    command += ["--lm_quant_bit", str(output.bits), "--lm_quant_block", str(output.block_size)]
    integers = weights if weights.integers else output
    return [*command, "--sym"] if integers.integers and integers.symmetric else command


def _run(command: list[str], work: Path) -> None:
    """Run the exporter in the work folder; what it says goes into the log as it says it."""
    failed = run_exporter(command, work)
    if failed is None:
        return
    if failed.missing:
        msg = (
            f"MNN's exporter needs the package {failed.missing}, which {sys.executable} lacks; "
            f"install what requirements.txt beside {SCRIPT} lists"
        )
        raise RunnerFailure(msg, reason="unavailable")
    msg = f"MNN's exporter ended with status {failed.status}; its last words: {failed.said}"
    raise RunnerFailure(msg)


def _collect(made: Path, target: Path) -> None:
    """Take what the engine needs, and leave what the exporter worked with."""
    for name in (GRAPH, WEIGHTS, "config.json", "llm_config.json"):
        if not (made / name).is_file():
            msg = f"MNN's exporter reported success, but made no {name}"
            raise RunnerFailure(msg)
    target.mkdir()
    for path in made.iterdir():
        if path.is_file() and path.name not in ("export_args.json", GRAPH + ".json", FACTS):
            shutil.move(path, target / path.name)


def _facts(source: Path) -> ModelFacts:
    """What is known of the model, which may be one that edgebench doesn't read."""
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.errors import ModelFormatError  # noqa: PLC0415

    try:
        model = open_model(source)
        return ModelFacts.of(model.architecture, model.tokenizer)
    except ModelFormatError:
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    text = config.get("text_config") or config
    return ModelFacts(
        architecture=str(config.get("model_type", "unknown")),
        vocabulary_size=_whole(text.get("vocab_size")),
        trained_context_tokens=_whole(text.get("max_position_embeddings")),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
