"""A model folder by MLC's own tools: ``mlc_llm convert_weight``, ``gen_config``, ``compile``.

They are programs, run with this interpreter, each in a process of its own. What they read is a
folder in Hugging Face's layout; a GGUF file is written out as one.
"""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.checked_weights import lossy_note
from edgebench.runners.exporter import Failed, run_exporter
from edgebench.runners.mlc_names import CONFIG, INDEXES, LIBRARY
from edgebench.runners.mlc_package import require
from edgebench.runners.mlc_settings import CHUNK

NO_TEMPLATE = "LM"
"""Of MLC's conversation templates the one that adds no text; edgebench hands ids over."""

FULL = ("No space left on device", "Disk quota exceeded")


def make(request: ConvertRequest) -> dict[str, str]:
    """Make the folder `request.target`: weights, configuration, tokenizer and ``lib.so``.

    Args:
        request: its options may be ``context_window``, ``prefill_chunk_size`` and ``compile_for``.

    Returns:
        ``tool``, and ``note``.

    Raises:
        RunnerFailure: mlc_llm is not installed (unavailable), or one of its tools failed, with the
            last it said.
        ModelFormatError: the source is no folder, and no GGUF that can be read.
        OSError: the disk is full, or the target can't be written.
    """
    version = require()
    target = Path(request.target).absolute()
    work = target.with_name(target.name + ".work")
    work.mkdir()
    try:
        folder, note = _source(Path(request.source), work)
        for command in commands(request, folder, target):
            _run(command, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _check(target)
    made = {"tool": f"mlc_llm {version}"}
    if note:
        made["note"] = note
    return made


def commands(request: ConvertRequest, source: Path, target: Path) -> list[list[str]]:
    """The command lines, in order, each without the interpreter and ``-m mlc_llm``.

    The chunk is always given: MLC's own default is up to 8192 tokens, and takes memory for them.
    """
    options = request.options
    both = [str(source), "--quantization", request.quantization]
    config = ["gen_config", *both, "--conv-template", NO_TEMPLATE]
    if context := options.get("context_window"):
        config += ["--context-window-size", str(context)]
    config += ["--prefill-chunk-size", str(options.get("prefill_chunk_size") or CHUNK)]
    device = str(options.get("compile_for") or "cpu")
    return [
        # On the CPU: which device quantises must not depend on what the machine has.
        ["convert_weight", *both, "--device", "cpu", "-o", str(target)],
        [*config, "-o", str(target)],
        ["compile", str(target), "--device", device, "-o", str(target / LIBRARY)],
    ]


def _source(source: Path, work: Path) -> tuple[Path, str]:
    """A folder that MLC's tools read, and a warning where its weights had been quantised.

    It is one of links: MLC writes an index beside the weights, and the source is not ours.
    """
    folder = work / "source"
    if source.is_dir():
        folder.mkdir()
        for path in source.resolve().iterdir():
            (folder / path.name).symlink_to(path)
        return folder, ""
    from edgebench.models.canonical import open_model  # noqa: PLC0415 - only for a conversion
    from edgebench.models.export import export_folder  # noqa: PLC0415

    model = open_model(source)
    export_folder(model, folder, "F32")
    return folder, lossy_note(model)


def _run(command: list[str], work: Path) -> None:
    """Run one tool in the work folder; what it says goes into the log as it says it."""
    failed = run_exporter([sys.executable, "-m", "mlc_llm", *command], work)
    if failed is None:
        return
    tool = f"mlc_llm {command[0]}"
    if failed.missing:
        msg = f"{tool} needs the package {failed.missing}, which {sys.executable} lacks; install it"
        raise RunnerFailure(msg, reason="unavailable")
    if any(words in failed.said for words in FULL):
        msg = f"{tool} ran out of disk space; free some, and try again"
        raise RunnerFailure(msg)
    if failed.status < 0:
        msg = f"{tool} was killed by {_signal(failed)}; its last words: {failed.said}"
        memory = failed.status == -signal.SIGKILL  # what the kernel does where memory is short
        raise RunnerFailure(msg, reason="out_of_memory" if memory else "framework")
    msg = f"{tool} ended with status {failed.status}; its last words: {failed.said}"
    raise RunnerFailure(msg)


def _signal(failed: Failed) -> str:
    with suppress(ValueError):
        name = signal.Signals(-failed.status).name
        hint = " (as the system does where memory is short)" if name == "SIGKILL" else ""
        return name + hint
    return f"signal {-failed.status}"


def _check(target: Path) -> None:
    """Whether everything is there that the tools are to have made."""
    for names in ((CONFIG,), INDEXES, (LIBRARY,)):
        if not any((target / name).is_file() for name in names):
            msg = f"mlc_llm reported success, but made no {names[0]}"
            raise RunnerFailure(msg)
