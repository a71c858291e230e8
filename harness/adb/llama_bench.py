"""llama.cpp's ``llama-bench``, by its ``-o jsonl`` output: one line a test, all its samples in it.

The fields are those of llama.cpp's tools/llama-bench; they come and go with its versions, so each
is read by its name, and one that is not known is kept among the options that were used.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb.diagnosis import one_line
from edgebench.harness.adb.tool import (
    Ask,
    Line,
    Sample,
    Told,
    Wanted,
    check_agreement,
    checked,
    checked_rate,
    not_understood,
    option_value,
)
from edgebench.harness.errors import InvalidResultError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.measured import Scalar

NS: Final = 1e9
DIGIT: Final = 1e-5
"""Of a rate: it prints six digits, of which the last may be the fifth behind the point."""
LONGEST: Final = 300
LEAST_BITS: Final = 1
"""No format has fewer for a weight; the smallest of GGUF, IQ1_S, has 1.56."""

FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "threads": "-t",
        "batch_size": "-b",
        "ubatch_size": "-ub",
        "kv_cache_type_k": "-ctk",
        "kv_cache_type_v": "-ctv",
        "flash_attention": "-fa",
        "mmap": "-mmp",
        "gpu_layers": "-ngl",
    }
)
LOAD_MODE: Final = "--load-mode"
"""Versions of 2026 and later have it for ``-mmp``, which they lack or call deprecated."""
IS_MAPPED: Final[Mapping[str, bool]] = MappingProxyType(
    {"mmap": True, "mmap+mlock": True, "none": False, "mlock": False, "dio": False}
)
"""By load mode; ``auto`` depends on the device, and it does not tell which it took."""
SHORT: Final[Mapping[str, str]] = MappingProxyType({"on": "1", "off": "0"})
"""Of flash attention: every version knows these; ``auto`` is what it does without being asked."""

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "n_threads": "threads",
        "n_batch": "batch_size",
        "n_ubatch": "ubatch_size",
        "type_k": "kv_cache_type_k",
        "type_v": "kv_cache_type_v",
        "flash_attn": "flash_attention",
        "use_mmap": "mmap",
        "n_gpu_layers": "gpu_layers",
    }
)
NO_OPTIONS: Final = frozenset(
    {
        *("build_commit", "build_number", "cpu_info", "gpu_info"),
        *("model_filename", "model_type", "model_size", "model_n_params"),
        *("n_prompt", "n_gen", "n_depth", "test", "test_time"),
        *("avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts"),
    }
)


class LlamaBench:
    """Prompt and generation are two tests of it, each in a process of its own."""

    program = "llama-bench"
    engine = "llama.cpp"
    options = frozenset(FLAGS)
    changing = frozenset({"mmap"})
    caveats = ()

    def refusal(self, wanted: Wanted) -> str:  # noqa: ARG002 - a Tool
        """It can measure all that has a length."""
        return ""

    def asks(self, wanted: Wanted, repetitions: int) -> list[Ask]:
        """The prompt after what is in the cache already; then the generation after the prompt."""
        common = ["-m", wanted.model, "-r", str(repetitions), "-o", "jsonl"]
        for name, value in {"gpu_layers": 0, **wanted.options}.items():
            if name == "mmap" and LOAD_MODE in wanted.usage:
                common += [LOAD_MODE, "mmap" if value else "none"]
            elif name in FLAGS and value != "auto":
                common += [FLAGS[name], _argument(value)]
        # Without -d, which old versions lack, where it is not needed.
        depth = ["-d", str(wanted.depth_tokens)] if wanted.depth_tokens else []
        prompt = ["-p", str(wanted.prompt_tokens), "-n", "0", *depth]
        after = ["-d", str(wanted.depth_tokens + wanted.prompt_tokens)]
        generation = ["-p", "0", "-n", str(wanted.generate_tokens), *after]
        return [
            Ask((*common, *prompt), "prefill", repetitions),
            Ask((*common, *generation), "decode", repetitions),
        ]

    def read(self, ask: Ask, wanted: Wanted, lines: Sequence[Line]) -> Told:
        """The samples of its one test."""
        records = [(found, line) for line in lines if (found := _record(line.text))]
        if not records:
            raise not_understood(self.program, lines, "line of JSON with samples_ns")
        if len(records) > 1:
            msg = f"{self.program} printed {len(records)} lines of results for one test"
            raise InvalidResultError(msg)
        record, line = records[0]
        _check_model(record, wanted)
        prefills = ask.phase == "prefill"
        tokens = wanted.prompt_tokens if prefills else wanted.generate_tokens
        depth = wanted.depth_tokens + (0 if prefills else wanted.prompt_tokens)
        expected = {"n_prompt": tokens if prefills else 0, "n_gen": 0 if prefills else tokens}
        expected["n_depth"] = depth
        told = {key: record.get(key) for key in expected}
        if "n_depth" not in record:
            told["n_depth"] = 0  # of before it could
        # True is no 1.
        if told != expected or not all(type(each) is int for each in told.values()):
            msg = f"{self.program} measured another test than the one that was asked for: {told}"
            raise InvalidResultError(msg[:LONGEST])
        samples = _samples(record.get("samples_ns"), ask.repetitions, tokens)
        _check_rates(record.get("samples_ts"), samples)
        # The line is printed when the last of them is over.
        samples[-1] = replace(samples[-1], ended_ns=line.t_ns)
        commit, number = (option_value(record.get(f"build_{x}")) for x in ("commit", "number"))
        return Told(
            prefill=tuple(samples) if prefills else (),
            decode=() if prefills else tuple(samples),
            engine_version=f"b{number} ({commit})" if number and commit else None,
            options=_options(record),
            parameters=_parameters(record.get("model_n_params"), wanted.model_bytes),
        )


def _record(text: str) -> dict[str, object] | None:
    """A line of its results, of all that it and its libraries print."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "samples_ns" in value else None


def _samples(found: object, count: int, tokens: int) -> list[Sample]:
    numbers = found if isinstance(found, list) else []
    if len(numbers) != count or not all(type(each) is int for each in numbers):
        msg = f"{LlamaBench.program} tells samples_ns {_short(found)} of {count} repetitions"
        raise InvalidResultError(msg)
    for each in numbers:
        checked(LlamaBench.program, "samples_ns", each, "ns")
    return [checked_rate("llama-bench", tokens, tokens * NS / ns, ns / NS) for ns in numbers]


def _check_rates(found: object, samples: Sequence[Sample]) -> None:
    """That its own rates are those of its times, where it tells any."""
    if found is None:
        return
    rates = found if isinstance(found, list) else []
    if len(rates) != len(samples) or not all(type(each) in {int, float} for each in rates):
        msg = f"{LlamaBench.program} tells samples_ts {_short(found)}"
        raise InvalidResultError(msg)
    for rate, sample in zip(rates, samples, strict=True):
        check_agreement(LlamaBench.program, rate, sample.rate, DIGIT)


def _check_model(record: Mapping[str, object], wanted: Wanted) -> None:
    """That it is the model that was asked for: it tells the path that it was given."""
    told = record.get("model_filename")
    if told is not None and told != wanted.model:
        msg = f"{LlamaBench.program} measured the model {_short(told)}, not {wanted.model}"
        raise InvalidResultError(msg)


def _parameters(found: object, model_bytes: int | None) -> int | None:
    """The number of weights, if the model's file can hold so many."""
    if found is None:
        return None
    number = found if type(found) is int else 0
    checked(LlamaBench.program, "a number of weights", number, "weights")
    if model_bytes is not None and number > model_bytes * 8 / LEAST_BITS:
        msg = (
            f"{LlamaBench.program} tells {number} weights, which can't be: the model has "
            f"{model_bytes} bytes, less than {LEAST_BITS} bit a weight"
        )
        raise InvalidResultError(msg)
    return number


def _short(found: object) -> str:
    """What it printed, cut; Python makes no text of the longest numbers."""
    try:
        return repr(found)[:LONGEST]
    except (ValueError, RecursionError):
        return "that can't be read"


def _options(record: Mapping[str, object]) -> dict[str, Scalar]:
    used: dict[str, Scalar] = {
        one_line(NAMES.get(key, key))[:LONGEST]: value
        for key, found in record.items()
        if key not in NO_OPTIONS and (value := option_value(found)) is not None
    }
    mapped = IS_MAPPED.get(str(used.get("load_mode")))
    return used if mapped is None else {"mmap": mapped, **used}


def _argument(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return SHORT.get(str(value), str(value))
