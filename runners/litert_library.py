"""LiteRT-LM's C library, as its Python package brings it, and what it says when it fails.

The package's own classes are not used for a generation: the function that takes their stream
decodes each chunk, and where one ends inside a character it raises within the engine's thread,
where nobody hears of it.
"""

from __future__ import annotations

import ctypes
import re
from importlib import metadata
from typing import Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.console import Console

PACKAGE = "litert-lm-api"
PIP = "edgebench[mediapipe]"

EVERYTHING, ERRORS_ONLY = 2, 4
"""Of the log's levels."""

PREFIX = re.compile(r"^(?:[IWEF]\d{4} \S+\s+\d+ \S+\] |(?:ERROR|WARNING|INFO): \[[^\]]*\] )")
"""Time, thread and line of the source before a message."""

PLACE = re.compile(r"(?:└ )?(?:ERROR: )?\[?(?:third_party|external)/\S+?:\d+\]?:?\s*")
"""A place in the engine's source, which stands in a message or alone in a line."""

CAUSE = re.compile(r"^(?:[A-Z_]+: )?(?:RET_CHECK failure \([^)]*\) )?")
"""The kind of error before what happened."""

NOISE = (
    "=== Source Location Trace",
    "Stack trace:",
    "@ ",
    "at ",
    "WARNING: Logging before",
    "Warning: Couldn't load Vulkan",
)


class Library:
    """The C library and its version.

    Attributes:
        functions: with their types set.

    Raises:
        RunnerFailure: the package is not installed, or its inside is another one (unavailable).
    """

    def __init__(self) -> None:
        try:
            from litert_lm import _ffi  # noqa: PLC0415 - imported late

            self.functions: Any = _ffi._get_lib()  # noqa: SLF001 - the only way to it
            self.callback_type: Any = _ffi.STREAM_CALLBACK_TYPE
            self.version = metadata.version(PACKAGE)
            last_error = self.functions.litert_lm_get_last_error_message
            self.functions.litert_lm_clear_last_error.argtypes = []
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            msg = f"LiteRT-LM can't be imported ({error}); install it with: pip install '{PIP}'"
            raise RunnerFailure(msg, reason="unavailable") from error
        last_error.restype = ctypes.c_char_p
        last_error.argtypes = []
        self.console = Console(tidy)
        self.talk(everything=False)

    def talk(self, *, everything: bool) -> None:
        """How much the engine writes into the log."""
        self.functions.litert_lm_set_min_log_level(EVERYTHING if everything else ERRORS_ONLY)

    def mark(self) -> None:
        """What fails from here on is what `reason` tells."""
        self.functions.litert_lm_clear_last_error()
        self.console.mark()

    def reason(self) -> str:
        """Why the last call failed, in one line."""
        told = self.functions.litert_lm_get_last_error_message()
        lines = told.decode("utf-8", "replace").splitlines() if told else []
        texts = [text for line in lines if (text := tidy(line))]
        # Of some failures it has nothing but places in its source, and the log has the reason.
        return "; ".join(texts) or self.console.reason()


def tidy(line: str) -> str:
    """What a line of the engine's log tells; empty where it is about the engine's source."""
    if line.strip().startswith(NOISE):
        return ""
    text = PLACE.sub("", PREFIX.sub("", line.strip())).strip().lstrip("└ ")
    text = re.sub(r"^Failed to create engine: ", "", text)
    return "" if re.fullmatch(r"[A-Z_]+:|", text) else CAUSE.sub("", text)
