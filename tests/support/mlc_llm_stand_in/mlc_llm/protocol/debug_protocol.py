"""Options that MLC has for measuring."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass
class DebugConfig:
    """Unlike MLC's, it refuses a name that it does not know."""

    ignore_eos: bool = False
    pinned_system_prompt: bool = False
    special_request: Literal["query_engine_metrics"] | None = None
    grammar_execution_mode: Literal["constraint", "jump_forward"] = "jump_forward"
    disagg_config: dict[str, Any] | None = None
