"""LiteRT-LM's ``litert_lm_main --benchmark``, by the BenchmarkInfo that it prints at its end.

Newer versions have these options in ``litert_lm_advanced_main``, which can be given as the tool.
Its time to first token is its own sum of the prefill and a mean step of the decoding. (LiteRT-LM,
runtime/engine/io_types.cc and shared_flags.cc.)
"""

from __future__ import annotations

import re
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
)
from edgebench.harness.errors import InvalidResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "litert_lm_main"
FLAGS: Final = {
    "threads": "num_cpu_threads",
    "backend": "backend",
    "max_num_tokens": "max_num_tokens",
}
UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

DIGIT: Final = 0.01
"""Of a speed or a time to first token, which it prints with two digits behind the point."""

_TURN: Final = re.compile(
    r"(Prefill|Decode) Turn \d+: Processed ([0-9]{1,9}) tokens in (\S+) duration"
)
_SPEED: Final = re.compile(r"(Prefill|Decode) Speed: (\S+) tokens/sec")
_TTFT: Final = re.compile(r"Time to first token: (\S+) s")
_LOADED: Final = re.compile(r"(?:Total init time|Init Total): (\S+) ms")
_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(h|ms|us|ns|m|s)")


class LitertLm:
    """Both phases of a generation in each start."""

    program = PROGRAM
    engine = "LiteRT-LM"
    options = frozenset(FLAGS)
    changing = frozenset[str]()
    caveats = (
        "LiteRT-LM's time to first token is its own sum of the prefill and a mean step of decoding",
    )

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
        first = _number("a time to first token", _TTFT.search(info), "s")
        loaded = _number("a time to load", _LOADED.search(info), "ms")
        prefill = _turn(info, "Prefill", wanted.prompt_tokens)
        if first is not None and first + DIGIT < (prefill.seconds or 0.0):
            msg = (
                f"{PROGRAM} contradicts itself: a time to first token of {first:.6g} s, after a "
                f"prefill of {prefill.seconds:.6g} s"
            )
            raise InvalidResultError(msg)
        return Told(
            prefill=(prefill,),
            decode=(_turn(info, "Decode", wanted.generate_tokens),),
            ttft_s=first,
            load_s=None if loaded is None else loaded / 1e3,
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
    if seconds == 0:  # less than it can tell
        return checked_rate(PROGRAM, asked, _float(speeds[-1] if speeds else "nothing", "a rate"))
    sample = checked_rate(PROGRAM, asked, asked / seconds, seconds)
    if speeds:
        check_agreement(PROGRAM, _float(speeds[-1], "a rate"), sample.rate, DIGIT)
    return sample


def _seconds(text: str) -> float:
    """Abseil's way to write a duration: ``1m2.5s``, ``399.04ms``, ``0``.

    Raises:
        InvalidResultError: it is something else, or can't be.
    """
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise _untrue(text, "a duration")
    return sum(float(number) * UNITS_S[unit] for number, unit in parts)


def _number(what: str, found: re.Match[str] | None, unit: str) -> float | None:
    """What it measured; it prints zero where it measured none."""
    value = _float(found[1], what) if found else 0.0
    return checked(PROGRAM, what, value, unit) if value else None


def _float(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _untrue(text, what) from None


def _untrue(text: str, what: str) -> InvalidResultError:
    return InvalidResultError(f"{PROGRAM} tells {what} of {one_line(text)[:60]}, which can't be")
