"""LiteRT-LM's ``litert_lm_main --benchmark``, by the BenchmarkInfo that it prints at its end.

Newer versions have these options in ``litert_lm_advanced_main``, which can be given as the tool.
Its time to first token is its own sum of the prefill and a mean step of the decoding. (LiteRT-LM,
runtime/engine/io_types.cc and shared_flags.cc.)
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb.tool import (
    Ask,
    Line,
    Sample,
    Told,
    Wanted,
    checked_rate,
    not_understood,
)
from edgebench.harness.errors import InvalidResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS: Final = {
    "threads": "num_cpu_threads",
    "backend": "backend",
    "max_num_tokens": "max_num_tokens",
}
UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_TURN: Final = re.compile(r"(Prefill|Decode) Turn \d+: Processed (\d+) tokens in (\S+) duration")
_SPEED: Final = re.compile(r"(Prefill|Decode) Speed: (\S+) tokens/sec")
_TTFT: Final = re.compile(r"Time to first token: (\S+) s")
_LOADED: Final = re.compile(r"(?:Total init time|Init Total): (\S+) ms")
_PART: Final = re.compile(r"([\d.]+)(h|ms|us|ns|m|s)")


class LitertLm:
    """Both phases of a generation in each start."""

    program = "litert_lm_main"
    engine = "LiteRT-LM"
    options = frozenset(FLAGS)
    caveat = ""

    def refusal(self, wanted: Wanted) -> str:
        """It always begins with an empty cache."""
        return (
            "litert_lm_main has no option to fill the cache before (depth)"
            if wanted.depth_tokens
            else ""
        )

    def asks(self, wanted: Wanted, repetitions: int) -> list[Ask]:
        """One start for each repetition."""
        used = {
            "backend": "cpu",
            "max_num_tokens": wanted.context_tokens + 1,
            **wanted.options,
        }
        arguments = [
            f"--model_path={wanted.model}",
            "--benchmark",
            f"--benchmark_prefill_tokens={wanted.prompt_tokens}",
            f"--benchmark_decode_tokens={wanted.generate_tokens}",
            "--async=false",
            *(f"--{FLAGS[name]}={value}" for name, value in used.items() if name in FLAGS),
        ]
        return [Ask(tuple(arguments), "both", 1)] * repetitions

    def read(self, ask: Ask, wanted: Wanted, lines: Sequence[Line]) -> Told:  # noqa: ARG002 - a Tool
        """The turns of the last BenchmarkInfo: the model's own text stands before it."""
        texts = [line.text for line in lines]
        starts = [at for at, text in enumerate(texts) if "BenchmarkInfo:" in text]
        if not starts:
            raise not_understood(self.program, lines, "BenchmarkInfo")
        info = "\n".join(texts[starts[-1] :])
        first = _number(_TTFT.search(info))
        loaded = _number(_LOADED.search(info))
        return Told(
            prefill=(_turn(info, "Prefill", wanted.prompt_tokens),),
            decode=(_turn(info, "Decode", wanted.generate_tokens),),
            # It prints zero where it measured none.
            ttft_s=first or None,
            load_s=loaded / 1e3 if loaded else None,
        )


def _turn(info: str, phase: str, asked: int) -> Sample:
    """What a phase took, if it was what was asked for."""
    turns = [found for found in _TURN.findall(info) if found[0] == phase]
    if not turns:
        msg = f"litert_lm_main recorded no turn of {phase.lower()}: it generated nothing"
        raise InvalidResultError(msg)
    _, tokens, took = turns[-1]
    if int(tokens) != asked:
        msg = f"litert_lm_main processed {tokens} tokens of {asked} in its {phase.lower()}"
        raise InvalidResultError(msg)
    speeds = [value for name, value in _SPEED.findall(info) if name == phase]
    seconds = _seconds(took)
    if not seconds:
        return checked_rate("litert_lm_main", asked, _float(speeds[-1]) if speeds else 0.0)
    return checked_rate("litert_lm_main", asked, asked / seconds, seconds)


def _seconds(text: str) -> float | None:
    """Abseil's way to write a duration: ``1m2.5s``, ``399.04ms``."""
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(_float(number) * UNITS_S[unit] for number, unit in parts)


def _number(found: re.Match[str] | None) -> float | None:
    return _float(found[1]) if found else None


def _float(text: str) -> float:
    """A number that it printed; zero, which it prints for what was not measured, if it is none."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
