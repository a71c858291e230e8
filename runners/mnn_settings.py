"""A variant's options as MNN's own settings, and back."""

from __future__ import annotations

import ctypes
import json
import os
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from edgebench.runners.base import Option, RunnerFailure, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

BACKENDS = MappingProxyType(
    {
        "cpu": 0,
        "metal": 1,
        "cuda": 2,
        "opencl": 3,
        "npu": 5,
        "opengl": 6,
        "vulkan": 7,
        "hexagon": 10,
    }
)
"""MNN's numbers for its back ends (MNNForwardType). Its ``auto`` is left out: what it would choose
is told nowhere."""

KV_CACHE = ("fp", "key_int8", "int8", "key_tq3", "tq3", "key_tq4", "tq4")
"""How keys and values are cached, in the order of MNN's numbers (attention_mode % 8)."""

X86_64 = frozenset({"x86_64", "amd64"})

FLASH = 8
"""Added to those numbers for fused attention."""

DEFAULT_ATTENTION = FLASH
MOST_THREADS = 32
"""MNN takes no more, without a word."""

LEVELS = ("low", "normal", "high")
PRECISIONS = ("fp32", "fp16", "int8", "int4")

# With these two lines MNN tells that it takes another back end than the one asked for.
FALLBACK = ("Can't Find type=", "Create Runtime")

OPTIONS = MappingProxyType(
    {
        "threads": Option("int", "Threads; the CPUs allowed where unset.", minimum=1),
        "memory": Option(
            "str",
            "low computes with activations rounded to int8; the folder's own setting where unset.",
            choices=LEVELS,
        ),
        "dynamic_option": Option(
            "int",
            "How those are rounded: per channel 0, tensor 1, block 2; 8 more for faster decoding.",
            choices=(0, 1, 2, 8, 9, 10),
        ),
        "precision": Option(
            "str",
            "low computes in half floats where the CPU can; the folder's own where unset.",
            choices=LEVELS,
        ),
        "kv_cache": Option("str", "How keys and values are cached.", "fp", choices=KV_CACHE),
        "flash_attention": Option("bool", "Fused attention.", default=True),
        "backend": Option("str", "Where it computes.", "cpu", choices=tuple(BACKENDS)),
        "mmap": Option("bool", "Keep the weights in a mapped temporary file.", default=False),
        "engine_timers": Option(
            "str",
            "Run MNN's own loop after ours, for its figures: for the first of each prompt, always.",
            "first",
            choices=("off", "first", "always"),
        ),
        "block_size": Option(
            "int", "Weights that share a scale.", default=64, minimum=1, stage="convert"
        ),
        "symmetric": Option("bool", "No zero point.", default=False, stage="convert"),
        "output_quantization": Option(
            "str",
            "Of the matrix that makes logits; as the others where unset.",
            choices=PRECISIONS,
            stage="convert",
        ),
        "mnn_repo": Option(
            "str", "Your checkout of MNN, whose own exporter is used then.", stage="convert"
        ),
    }
)

Settings = dict[str, Scalar]


def cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def to_mnn(options: Mapping[str, Scalar], mapped: str | None) -> Settings:
    """MNN's settings; what a variant leaves open is left to the folder's config.json.

    Args:
        options: the variant's.
        mapped: a folder for mapped weights, or None.
    """
    settings: Settings = {
        "backend_type": options.get("backend") or "cpu",
        "thread_num": int(options.get("threads") or cpus()),
        "attention_mode": attention_mode(options),
        "use_mmap": mapped is not None,
        # What a folder may also set and a benchmark can't have.
        "sampler_type": "greedy",
        "reuse_kv": False,
        "all_logits": False,
        "speculative_type": "",
        "timeout_ms": -1,
    }
    if mapped is not None:
        settings["tmp_path"] = mapped
    for name in ("memory", "dynamic_option", "precision"):
        if (value := options.get(name)) is not None:
            settings[name] = value
    return settings


def attention_mode(options: Mapping[str, Scalar]) -> int:
    """MNN's number for the cache's type and fused attention.

    Raises:
        RunnerFailure: MNN would cache values otherwise than asked (unsupported).
    """
    kind = str(options.get("kv_cache") or "fp")
    flash = options.get("flash_attention") is not False
    if kind == "int8" and not flash:
        msg = "MNN caches values as int8 with flash_attention only; set it, or kv_cache: key_int8"
        raise RunnerFailure(msg, reason="unsupported")
    return KV_CACHE.index(kind) + (FLASH if flash else 0)


def usable_caches(machine: str) -> tuple[str, ...]:
    """The kinds of cache that MNN computes rightly on a kind of processor, as far as known."""
    return tuple(kind for kind in KV_CACHE if machine.lower() not in X86_64 or "tq" not in kind)


def check_cache(options: Mapping[str, Scalar], machine: str) -> None:
    """Refuse what MNN computes wrongly: the speed of wrong text is no finding.

    Args:
        options: the variant's.
        machine: the kind of processor, as ``platform.machine`` has it.

    Raises:
        RunnerFailure: a cache in 3 or 4 bits on x86-64 (unsupported).
    """
    kind = str(options.get("kv_cache") or "fp")
    usable = usable_caches(machine)
    if kind in usable:
        return
    msg = (
        f"MNN 3.6.1 computes wrongly on x86-64 with kv_cache: {kind} (SmolLM2's perplexity is in "
        f"the thousands); choose {', '.join(usable)}, or run it on ARM"
    )
    raise RunnerFailure(msg, reason="unsupported")


def check_first_pass(options: Mapping[str, Scalar], tokens: int) -> None:
    """Refuse an int8 cache that begins with one token: MNN takes its scales from the first pass.

    Args:
        options: the variant's.
        tokens: in the first pass over an empty cache.

    Raises:
        RunnerFailure: all that follows would be wrong (unsupported).
    """
    kind = str(options.get("kv_cache") or "fp")
    if kind == "fp" or tokens > 1:
        return
    msg = (
        f"MNN takes the scales of a cache with kv_cache: {kind} from the first pass, and after a "
        "first pass of one token its text is wrong; make the prompt or the depth longer"
    )
    raise RunnerFailure(msg, reason="unsupported")


def from_mnn(dumped: str, *, threads: int, context: int) -> Settings:
    """The options that MNN uses, by our names, from its own dump of its settings.

    Args:
        dumped: JSON; what is not in it has MNN's own default.
        threads: counted, since MNN takes 32 at the most.
        context: tokens; a limit of ours, MNN's cache grows.
    """
    config = cast("Settings", json.loads(dumped))
    mode = int(config.get("attention_mode", DEFAULT_ATTENTION) or 0)
    effective: Settings = {
        "context": context,
        "threads": threads,
        "memory": config.get("memory", "low"),
        "dynamic_option": config.get("dynamic_option", 0),
        "precision": config.get("precision", "low"),
        "kv_cache": KV_CACHE[mode % FLASH],
        "flash_attention": mode >= FLASH,
        "attention_mode": mode,
        "backend": config.get("backend_type", "cpu"),
        "mmap": config.get("use_mmap", False),
    }
    return effective | {key: config[key] for key in ("chunk", "power") if key in config}


def built_backends(library: str) -> tuple[str, ...] | None:
    """The back ends other than the CPU that this build of MNN has and this machine can start.

    Args:
        library: path of MNN's shared library.

    Returns:
        Their names, or None where the library does not tell.
    """
    try:
        creator = ctypes.CDLL(library)["_ZN3MNN25MNNGetExtraRuntimeCreatorE14MNNForwardType"]
    except (OSError, AttributeError):
        return None
    creator.restype = ctypes.c_void_p
    creator.argtypes = [ctypes.c_int]
    return tuple(name for name, number in BACKENDS.items() if number and creator(number))
