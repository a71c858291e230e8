"""Loading a bundle with the back end that was asked for, and no other one in its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_engine import Engine
from edgebench.runners.litert_library import tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.runners.litert_library import Library
    from edgebench.runners.litert_settings import Chosen

NO_GPU = ("No adapters found", "No supported adapters", "WebGPU environment")
"""Of the engine's reasons where there is no GPU that it can use."""

PLUGIN = re.compile(r"[1-9]\d* compiler plugins were applied successfully")
"""Of the line with which the engine tells that a neural processor's plug-in has a graph."""

NO_PLUGIN = "Failed to apply compiler plugins: "
"""Before the reason for which it computes on the CPU though a neural processor was asked for."""

ON_CPU = "XNNPACK delegate for CPU"
"""Of the line with which it tells that it does so; only once in a process."""


def load_engine(library: Library, path: str, chosen: Chosen, cache: str | None) -> Engine:
    """Load a bundle.

    Args:
        library: the engine.
        path: of the bundle.
        chosen: how.
        cache: a folder for prepared weights, or None.

    Raises:
        RunnerFailure: the back end is not there, or nothing shows that it is used (unavailable),
            or the engine can't load the bundle.
    """
    library.talk(everything=chosen.backend == "npu")
    try:
        engine = Engine(
            library,
            path,
            backend=chosen.backend,
            threads=chosen.threads,
            max_tokens=chosen.max_tokens,
            cache=cache,
        )
    except RunnerFailure as failure:
        reason = library.reason()
        if chosen.backend == "gpu" and any(sign in reason for sign in NO_GPU):
            _refuse("gpu", reason, failure)
        raise
    finally:
        library.talk(everything=False)
    if chosen.backend == "npu":
        console = library.console
        fault = npu_fault(console.lines() if console.readable() else None)
        if fault is not None:
            engine.close()
            _refuse("npu", fault, None)
    return engine


def npu_fault(log: Sequence[str] | None) -> str | None:
    """Why a neural processor is not used, or None where the engine's log tells that one is.

    Args:
        log: the lines of loading, or None where they can't be read. The engine loads a bundle
            without one too, and nothing else tells.
    """
    if log is None:
        return (
            "whether the engine uses it can't be seen, since only its log tells and standard error "
            "is no file"
        )
    if any(PLUGIN.search(line) for line in log):
        return None
    told = [line.partition(NO_PLUGIN)[2] for line in log if NO_PLUGIN in line]
    if told or any(ON_CPU in line for line in log):
        why = f" ({tidy(told[0])})" if told else ""
        return f"the engine would compute on the CPU instead{why}"
    return (
        "whether the engine uses it can't be seen: its log names no compiler plug-in that was "
        "applied"
    )


def _refuse(backend: str, why: str, cause: Exception | None) -> NoReturn:
    msg = f"LiteRT-LM can't use the back end {backend} on this machine: {why}; set backend: cpu"
    raise RunnerFailure(msg, reason="unavailable") from cause
