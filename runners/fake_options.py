"""The options of the fake runner."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from edgebench.runners.base import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES = 256 + 3
"""One id for each byte, after padding (0), start (1) and end (2)."""

SIGNALS = ("SIGSEGV", "SIGABRT", "SIGKILL", "SIGILL", "SIGFPE", "SIGTERM")

OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "threads": Option("int", "Recorded, and without effect.", default=1, minimum=1),
        "load_s": Option("float", "How long loading takes.", default=0.0, minimum=0),
        "prefill_s": Option("float", "How long a prompt takes.", default=0.0, minimum=0),
        "token_s": Option("float", "How long each further token takes.", default=0.0, minimum=0),
        "score_s": Option("float", "How long rating a token takes.", default=0.0, minimum=0),
        "task_s": Option("float", "How long a task takes.", default=0.0, minimum=0),
        "jitter": Option("float", "Share by which times vary.", default=0.0, minimum=0),
        "virtual_clock": Option(
            "bool", "Write the times that would have passed, and do not wait.", default=False
        ),
        "slow_after_s": Option(
            "float",
            "From how many seconds after its first prompt on it is slow; 0 for never.",
            default=0.0,
            minimum=0,
        ),
        "slow_factor": Option(
            "float", "How many times as long a token takes then.", default=2.0, minimum=0
        ),
        "allocate_mb": Option("int", "Memory to take and touch at load.", default=0, minimum=0),
        "garbage": Option("bool", "Print noise and half lines on standard output.", default=False),
        "fail": Option(
            "str",
            "What goes wrong.",
            default="nothing",
            choices=(
                "nothing",
                "missing",  # the framework is not installed
                "load",  # loading is refused
                "refuse",  # generating, or rating, is refused
                "crash_at_load",
                "crash",  # at the token named by `fail_at_token`
                "exit",  # leaves with status 7, as some frameworks do
                "hang",
                "out_of_memory",
                "stream",  # writes garbage on the protocol's own stream
                "count",  # one token too few
                "end_of_text",  # stops early, and says so
                "prompt_count",  # processed other prompt tokens than asked
                "clock",  # time stamps going back
                "nan",  # figures and scores that are no numbers
                "empty",  # a task's result without a character
                "ids",  # ids outside the vocabulary
            ),
        ),
        "fail_at_token": Option(
            "int", "Before which token made, or at which token rated.", default=0, minimum=0
        ),
        "fail_from_call": Option(
            "int", "From which generation, or which rating, of a process on.", default=0, minimum=0
        ),
        "fail_in": Option(
            "str",
            "Where it happens, if it can happen there.",
            default="any",
            choices=("any", "generate", "score"),
        ),
        "signal": Option("str", "What a crash is.", default="SIGSEGV", choices=SIGNALS),
        "tells": Option(
            "str",
            "What is told: all; of generated ids the first two, or none and no scores either; "
            "with the scores the likeliest tokens only, the candidates only, or neither.",
            default="all",
            choices=("all", "two", "none", "likeliest", "candidates", "likelihoods"),
        ),
        "probabilities": Option(
            "str",
            "Of rated tokens: all alike, or one half for a blank and the rest for all others.",
            default="uniform",
            choices=("uniform", "skewed"),
        ),
        "vocabulary": Option(
            "int", "How many tokens it says there are.", default=BYTES, minimum=BYTES
        ),
        "prepares": Option(
            "bool", "Write a file before each load, which reads it then.", default=False
        ),
        "weight_bytes": Option(
            "int", "How many bytes of weights it says that a token reads.", minimum=1
        ),
        "says_engine": Option("str", "What a load says was loaded, in place of fake 1."),
        "makes": Option(
            "str",
            "What converting makes.",
            default="file",
            choices=("file", "folder", "nothing", "half", "refusal", "crash"),
            stage="convert",
        ),
    }
)
