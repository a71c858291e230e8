"""What a scenario may set for MLC's runner, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from edgebench.runners.base import Option

if TYPE_CHECKING:
    from edgebench.runners.base import (
        GenerateRequest,
        Generation,
        LoadedModel,
        LoadRequest,
    )

PIP = "edgebench[mlc]"

INSTALL_MLC_LLM = (
    "pip install --pre -U -f https://mlc.ai/wheels mlc-llm-nightly-cpu mlc-ai-nightly-cpu"
)
"""MLC's own packages; PyPI has an empty placeholder of that name."""

QUANTIZATIONS = ("q0f32", "q0f16", "q4f32_1", "q4f16_1", "q3f16_1")
"""By MLC's names."""

OWN_QUANTIZATIONS = ("q0f32", "q0f16", "q4f32_1")
"""Those that edgebench builds with TVM; the others take MLC's compiler."""

MLC_LLM, TVM, EDGEBENCH, AUTO = "mlc_llm", "tvm", "edgebench", "auto"
ENGINES = (AUTO, MLC_LLM, TVM)
COMPILERS = (AUTO, MLC_LLM, EDGEBENCH)
DEVICES = ("cpu", "cuda", "rocm", "vulkan", "metal", "opencl")

CHUNK = 512
"""Tokens of a prompt that a library built by edgebench takes in at once."""

OPTIONS = MappingProxyType(
    {
        "engine": Option(
            "str",
            "MLC's own engine (mlc_llm) or TVM's virtual machine (tvm); auto takes mlc_llm where "
            "it is installed and MLC compiled the library.",
            AUTO,
            choices=ENGINES,
        ),
        "threads": Option("int", "Threads of the CPU.", default=1, minimum=1),
        "thread_binding": Option(
            "bool",
            "Let TVM bind its threads to the first CPUs, whichever are allowed; slow where another "
            "process needs one of them.",
            default=False,
        ),
        "device": Option("str", "Where it computes.", "cpu", choices=DEVICES),
        "library": Option(
            "str",
            "Path of the compiled model library, within the model's folder or absolute; lib.so "
            "where unset.",
        ),
        "prefill_chunk": Option(
            "int",
            "Tokens of a prompt that are taken in at once, at most what the library was compiled "
            "for (prefill_chunk_size), which is taken where unset.",
            minimum=1,
        ),
        "compiler": Option(
            "str",
            "What makes the library: MLC's compiler (mlc_llm), or TVM with edgebench's model and "
            "schedules (edgebench); auto takes mlc_llm where it is installed.",
            AUTO,
            choices=COMPILERS,
            stage="convert",
        ),
        "compile_for": Option(
            "str",
            "The device that the library is compiled for; others than the CPU take MLC's compiler.",
            "cpu",
            choices=DEVICES,
            stage="convert",
        ),
        "context_window": Option(
            "int",
            "The most tokens, prompt and generated together; the model's own where unset.",
            minimum=1,
            stage="convert",
        ),
        "prefill_chunk_size": Option(
            "int",
            "The most tokens of a prompt that the library is compiled to take in at once.",
            default=CHUNK,
            minimum=1,
            stage="convert",
        ),
    }
)


class LoadedEngine(Protocol):
    """A model that one of the two engines has loaded, as the runner uses it."""

    def facts(self) -> LoadedModel:
        """What was loaded, ``engine`` and ``engine_version`` among it."""

    def generate(self, request: GenerateRequest) -> Generation:
        """Run one prompt from an empty cache; the runner has checked the request."""

    def close(self) -> None:
        """Free it; may be called twice."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a model is to be loaded.

    Attributes:
        engine: `MLC_LLM` or `TVM`.
        threads: of the CPU.
        thread_binding: whether TVM binds each to a CPU.
        device: one of `DEVICES`.
        context_tokens: prompt and generated together, of the longest workload.
        prefill_chunk: tokens taken in at once, or None for as many as the library can.
    """

    engine: str
    threads: int
    thread_binding: bool
    device: str
    context_tokens: int
    prefill_chunk: int | None


def choose(request: LoadRequest, *, built_by_edgebench: bool, has_mlc_llm: bool) -> Chosen:
    """What a request asks for.

    Args:
        request: with its options.
        built_by_edgebench: whether the library is not by MLC's compiler.
        has_mlc_llm: whether MLC's own engine is installed.
    """
    options = request.options
    engine = str(options.get("engine") or AUTO)
    if engine == AUTO:
        engine = MLC_LLM if has_mlc_llm and not built_by_edgebench else TVM
    chunk = options.get("prefill_chunk")
    return Chosen(
        engine=engine,
        threads=int(options.get("threads") or 1),
        thread_binding=options.get("thread_binding") is True,
        device=str(options.get("device") or "cpu"),
        context_tokens=request.context_tokens,
        prefill_chunk=None if chunk is None else int(chunk),
    )
