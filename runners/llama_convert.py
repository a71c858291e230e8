"""llama.cpp's artifacts: a GGUF file quantised from another, or made from a Hugging Face folder."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.llama_api import cpus, meta

if TYPE_CHECKING:
    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.gguf_write import Exact
    from edgebench.runners.llama_log import LlamaLog

# Without an importance matrix: the smaller IQ formats need one.
QUANTIZATIONS = (
    "F32",
    "F16",
    "BF16",
    "Q8_0",
    "Q6_K",
    "Q5_K_M",
    "Q5_K_S",
    "Q5_1",
    "Q5_0",
    "Q4_K_M",
    "Q4_K_S",
    "Q4_1",
    "Q4_0",
    "IQ4_NL",
    "IQ4_XS",
    "Q3_K_L",
    "Q3_K_M",
    "Q3_K_S",
    "Q2_K",
)
EXACT = frozenset({"F32", "F16", "BF16"})


def convert(lib: Any, log: LlamaLog, version: str, request: ConvertRequest) -> dict[str, str]:  # noqa: ANN401
    """Make `request.target`; see `Converter.convert`.

    Args:
        lib: the bindings.
        log: what llama.cpp says is kept there.
        version: llama.cpp's, for the record.
        request: what to make of what.
    """
    if request.quantization not in QUANTIZATIONS:
        msg = f"llama.cpp makes {', '.join(QUANTIZATIONS)}, not {request.quantization}"
        raise RunnerFailure(msg, reason="unsupported")
    if not Path(request.source).is_dir():
        return _quantize(lib, log, version, request)
    model = _open(request.source)
    # Late: a conversion from a folder is all that needs it.
    from edgebench.runners.gguf_write import exact_type, file_bytes, write_gguf  # noqa: PLC0415

    writer = "edgebench's GGUF writer"
    if request.quantization in EXACT:
        write_gguf(model, request.target, cast("Exact", request.quantization))
        return {"tool": writer}
    between, kind = Path(f"{request.target}.exact"), exact_type(model)
    needed, free = file_bytes(model, kind), shutil.disk_usage(between.parent).free
    if free < needed:
        msg = (
            f"not enough disk space: between the folder and {request.quantization} stands a file "
            f"in {kind} of {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free"
        )
        raise RunnerFailure(msg, reason="framework")
    try:
        write_gguf(model, str(between), kind)
        step = ConvertRequest(str(between), request.quantization, request.target)
        made = _quantize(lib, log, version, step)
    finally:
        between.unlink(missing_ok=True)
    return {**made, "tool": f"{writer}, then {made['tool']}"}


def _open(source: str) -> CanonicalModel:
    try:
        from edgebench.models.canonical import open_model  # noqa: PLC0415 - as needed
        from edgebench.models.errors import (  # noqa: PLC0415
            ModelFormatError,
            UnsupportedModelError,
        )
    except ImportError as error:
        msg = f"{error}; install what reads models with: pip install 'edgebench[convert]'"
        raise RunnerFailure(msg, reason="unavailable") from error
    try:
        return open_model(Path(source))
    except UnsupportedModelError as error:
        msg = f"{error}. Or make a GGUF file with llama.cpp's convert_hf_to_gguf.py: path:FILE"
        raise RunnerFailure(msg, reason="unsupported") from error
    except ModelFormatError as error:
        raise RunnerFailure(str(error), reason="invalid") from error


def _quantize(lib: Any, log: LlamaLog, version: str, request: ConvertRequest) -> dict[str, str]:  # noqa: ANN401
    """Quantise a GGUF file with ``llama_model_quantize``."""
    source, quantization = request.source, request.quantization
    prefix = "LLAMA_FTYPE_ALL_" if quantization == "F32" else "LLAMA_FTYPE_MOSTLY_"
    parameters = lib.llama_model_quantize_default_params()
    parameters.ftype = getattr(lib, prefix + quantization)
    parameters.nthread = cpus()
    # A source that is quantised already is dequantised first; the record says so.
    parameters.allow_requantize = True
    log.keep(lib)
    try:
        failed = lib.llama_model_quantize(
            os.fsencode(source), os.fsencode(request.target), ctypes.byref(parameters)
        )
    finally:
        log.release(lib)
    if failed:
        msg = f"llama_model_quantize to {quantization} failed: {log.last_error()}"
        raise RunnerFailure(msg)
    notes = [_lossy_source(lib, source)]
    if fallback := log.find("fallback quantization"):
        notes.append(fallback.rpartition("WARNING: ")[2])
    made = {"tool": f"llama_model_quantize, {version}"}
    if note := "; ".join(filter(None, notes)):
        made["note"] = note
    return made


def _lossy_source(lib: Any, source: str) -> str:  # noqa: ANN401
    """A warning where the source had been quantised before."""
    parameters = lib.llama_model_default_params()
    parameters.vocab_only = True
    model = lib.llama_model_load_from_file(os.fsencode(source), parameters)
    if not model:
        return ""
    # llama_model_ftype() counts tensors, and there are none without the weights.
    number = meta(lib, model, "general.file_type")
    lib.llama_model_free(model)
    if not number:
        return ""
    kind = lib.llama_ftype_name(int(number)).decode()
    if kind.removeprefix("all ") in EXACT:
        return ""
    return f"made from {kind} weights: what those had lost is not regained"
