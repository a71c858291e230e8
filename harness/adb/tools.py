"""Which tool runs a runner's models on a device."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.harness.adb.litert_lm import LitertLm
from edgebench.harness.adb.llama_bench import LlamaBench
from edgebench.harness.adb.llm_bench import LlmBench

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.adb.tool import Tool

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {"llama.cpp": LlamaBench(), "mnn": LlmBench(), "mediapipe": LitertLm()}
)
