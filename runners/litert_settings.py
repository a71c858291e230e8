"""What a scenario may set for MediaPipe's engine, and what becomes of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from edgebench.runners.base import Option, RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.base import LoadRequest, Scalar
    from edgebench.runners.litert_bundle import Bundle

WEIGHT_ONLY = "int8_weight_only"
QUANTIZATIONS = ("fp32", "fp16", "int8", WEIGHT_ONLY, "int4")

CACHE_LENGTH = 1280
PREFILL_LENGTHS = (32, 128, 512)
"""Where none are asked for: those of them that the cache has room for."""
BACKENDS = ("cpu", "gpu", "npu")
CACHES = ("warm", "cold", "none")

OPTIONS = MappingProxyType(
    {
        "threads": Option("int", "Threads; the CPUs allowed where unset.", minimum=1),
        "backend": Option("str", "Where it computes.", "cpu", choices=BACKENDS),
        "max_num_tokens": Option(
            "int",
            "The most tokens, prompt and generated together, that the engine makes room for; one "
            "more than the longest workload where unset, or what the bundle has.",
            minimum=2,
        ),
        "cache": Option(
            "str",
            "Weights as the engine prepares them: in a file that loading finds (warm, the default "
            "on the CPU) or writes (cold), or in memory (none).",
            choices=CACHES,
        ),
        "cache_length": Option(
            "int",
            "Places of the KV cache: the most tokens, prompt and generated together.",
            default=CACHE_LENGTH,
            minimum=2,
            stage="convert",
        ),
        "prefill_lengths": Option(
            "str",
            "How many tokens are taken in at once; a prompt is padded to the next of them. "
            f"{', '.join(map(str, PREFILL_LENGTHS))} where unset, as far as the cache has room.",
            stage="convert",
        ),
        "block_size": Option(
            "int", "Weights that share a scale, of int4.", default=32, minimum=1, stage="convert"
        ),
        "output_quantization": Option(
            "str",
            "Of the embedding and the matrix that makes logits; int8 with integers where unset.",
            choices=("fp32", "fp16", "int8", "int4"),
            stage="convert",
        ),
        "stop_tokens": Option(
            "str",
            "reserved: nothing that a model makes, so that generations have any length; "
            "model: the model's own ends of a text.",
            default="reserved",
            choices=("reserved", "model"),
            stage="convert",
        ),
        "litert_torch_python": Option(
            "str",
            "Your interpreter with litert-torch, which makes the graph then.",
            stage="convert",
        ),
    }
)


def cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def room(options: Mapping[str, Scalar], context_tokens: int, bundle: Bundle) -> int:
    """The most tokens, prompt and generated together, to ask the engine for.

    Args:
        options: the variant's.
        context_tokens: of the longest workload. One more token is made in each generation, since
            the engine hands each one over when the next is made.
        bundle: what is loaded.

    Raises:
        RunnerFailure: more are asked for than the bundle has; the engine would take its own
            number without a word (invalid).
    """
    most = bundle.cache_length or bundle.settings.max_tokens
    asked = options.get("max_num_tokens")
    if asked is None:
        return min(context_tokens + 1, most or context_tokens + 1)
    if most is not None and int(asked) > most:
        msg = (
            f"max_num_tokens is {asked} and {bundle.path.name} has room for {most} tokens; the "
            "engine would take that number without a word"
        )
        raise RunnerFailure(msg, reason="invalid")
    return int(asked)


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a bundle is to be loaded.

    Attributes:
        threads: of the CPU; None with another back end.
        max_tokens: prompt and generated together; None for what the bundle has.
        cache: one of `CACHES`.
    """

    backend: str
    threads: int | None
    max_tokens: int | None
    cache: str


def choose(request: LoadRequest, bundle: Bundle) -> Chosen:
    """What a request asks for.

    Raises:
        RunnerFailure: more tokens are asked for than the bundle has room for (invalid), or a warm
            cache for another back end than the CPU (unsupported).
    """
    options = request.options
    backend = str(options.get("backend") or "cpu")
    cache = str(options.get("cache") or ("warm" if backend == "cpu" else "none"))
    if request.vocab_only:
        # Nothing is computed then, and no weights are prepared.
        cache = "none"
    if cache == "warm" and backend != "cpu":
        msg = f"cache: warm is for the CPU's weights; leave it out with backend: {backend}"
        raise RunnerFailure(msg, reason="unsupported")
    return Chosen(
        backend=backend,
        threads=int(options.get("threads") or cpus()) if backend == "cpu" else None,
        max_tokens=None if request.vocab_only else room(options, request.context_tokens, bundle),
        cache=cache,
    )
