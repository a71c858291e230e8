"""Requests for completions, and their answers."""

from dataclasses import dataclass
from typing import Any, Literal

from .debug_protocol import DebugConfig


@dataclass
class StreamOptions:
    include_usage: bool | None


@dataclass
class CompletionUsage:
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    extra: dict[str, Any] | None = None


@dataclass
class CompletionRequest:
    prompt: str | list[int]
    model: str | None = None
    best_of: int = 1
    echo: bool = False
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: int | None = None
    logit_bias: dict[int, float] | None = None
    max_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    suffix: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    response_format: dict[str, Any] | None = None
    debug_config: DebugConfig | None = None


@dataclass
class CompletionResponseChoice:
    text: str
    finish_reason: Literal["stop", "length", "preempt"] | None = None
    index: int = 0
    logprobs: dict[str, Any] | None = None


@dataclass
class CompletionResponse:
    id: str
    choices: list[CompletionResponseChoice]
    model: str | None = None
    object: str = "text_completion"
    usage: CompletionUsage | None = None
