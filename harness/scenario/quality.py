"""The part of a workload that rates a text, as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import BaseModel, Field, model_validator

from edgebench.harness.quality.windows import least_before, scored_in_chunk
from edgebench.harness.results.quality import (  # noqa: TC001 - pydantic reads them
    Protocol,
    QualityMetric,
    StartRule,
)
from edgebench.harness.scenario.problems import Finding
from edgebench.harness.scenario.values import Location, Some  # noqa: TC001 - as above
from edgebench.harness.scenario.written import MOST_TOKENS, STRICT, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW: Final = 512
MAX_TOKENS: Final = 4096
_LEAST_WINDOW: Final = 4

_Length = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class Quality(BaseModel):
    """How well a variant predicts a text; see docs/quality.md."""

    model_config = STRICT

    text: Location = Field(
        description="The text: builtin:NAME (prose, chinese, code), or path:FILE, relative to the "
        "scenario, with ${VARIABLE} from the environment; UTF-8."
    )
    protocol: Protocol = Field(
        default="sliding",
        description="sliding: overlapping windows, every token scored once; llama-perplexity: as "
        "llama.cpp's tool of that name does it, to be compared with published numbers.",
    )
    window: int = Field(
        default=WINDOW,
        ge=_LEAST_WINDOW,
        le=MOST_TOKENS,
        description="Most tokens in a window.",
    )
    stride: _Length | None = Field(
        default=None,
        description="How many tokens each window goes beyond the one before; half a window where "
        "it is not given.",
    )
    score_from: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="How many tokens stand before any scored token, at least; half a window where "
        "it is not given.",
    )
    bos: StartRule = Field(
        default="model",
        description="Whether a start token stands before each window: where the model's tokenizer "
        "puts one before a text, always, or never.",
    )
    max_tokens: int = Field(
        default=MAX_TOKENS, ge=1, le=2**31 - 1, description="Most tokens to score."
    )
    metrics: Some[QualityMetric] = Field(
        default=("perplexity", "bits_per_byte", "kl_divergence", "top1_agreement"),
        description="What is computed. kl_divergence and top1_agreement need the reference, the "
        "source's weights run in float32, which takes a while once.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(quality_conflicts({key: getattr(self, key) for key in self.model_fields_set}))
        return self

    @property
    def stride_tokens(self) -> int:
        """The stride, given or not; of llama-perplexity, whose windows stand side by side."""
        if self.protocol == "llama-perplexity":
            return self.window
        return self.window // 2 if self.stride is None else self.stride

    @property
    def first_scored(self) -> int:
        """Where a window's scored tokens begin, given or not."""
        if self.protocol == "llama-perplexity":
            return self.window - scored_in_chunk(self.window)
        return self.window // 2 if self.score_from is None else self.score_from


def quality_conflicts(quality: Mapping[str, object]) -> list[Finding]:
    """What does not go together in one group `quality`; what is not given is absent."""
    findings = _doubled(quality)
    window = quality.get("window", WINDOW)
    if type(window) is not int or window < _LEAST_WINDOW:
        return findings
    if quality.get("protocol") == "llama-perplexity":
        return findings + _of_llama(quality, window)
    half = window // 2
    stride, score_from = quality.get("stride"), quality.get("score_from")
    stride = half if stride is None else stride
    score_from = half if score_from is None else score_from
    if type(stride) is not int or type(score_from) is not int or score_from < 0:
        return findings
    least = least_before(score_from)
    if least >= window:
        message = f"must be below window ({window}), or no token is scored, got {score_from}"
        findings.append(Finding(("score_from",), message))
    elif stride > window - least:
        blamed = "stride" if "stride" in quality else "score_from"
        message = (
            f"a stride of {stride} leaves tokens unscored: with windows of {window} scored from "
            f"position {least} on, stride is at most {window - least}"
        )
        findings.append(Finding((blamed,) if blamed in quality else (), message))
    return findings


def _of_llama(quality: Mapping[str, object], window: int) -> list[Finding]:
    findings = [
        Finding((key,), "llama-perplexity has a rule of its own; leave this out", at="key")
        for key in ("stride", "score_from", "bos")
        if quality.get(key) is not None
    ]
    most, each = quality.get("max_tokens", MAX_TOKENS), scored_in_chunk(window)
    if type(most) is int and 1 <= most < each:
        message = (
            f"must be at least {each}: llama-perplexity scores that many tokens of each window of "
            f"{window} and no part of a window, got {most}"
        )
        findings.append(Finding(("max_tokens",), message))
    return findings


def _doubled(quality: Mapping[str, object]) -> list[Finding]:
    metrics = quality.get("metrics")
    if not isinstance(metrics, list | tuple):
        return []
    seen: set[str] = set()
    findings = []
    for index, name in enumerate(metrics):
        if isinstance(name, str) and name in seen:
            findings.append(Finding(("metrics", index), f"{name} stands here twice"))
        seen.add(str(name))
    return findings
