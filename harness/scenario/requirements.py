"""What a user needs of a framework, as written in a scenario: answers and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from edgebench.harness.scenario.problems import Finding, shown
from edgebench.harness.scenario.quantities import SIZE_PATTERN, size_in_bytes
from edgebench.harness.scenario.values import Label, Slug, refusal, refuse_label
from edgebench.harness.scenario.written import STRICT, refuse

_YES_NO: Final[Mapping[str, bool]] = {"yes": True, "no": False, "true": True, "false": False}
_TOO_MANY_BYTES: Final = 2**63

TARGETS: Final = frozenset({"pc", "browser", "phone", "board"})


def _yes_no(value: object) -> object:
    # YAML 1.2 reads `yes` as text; whoever answers a question writes it all the same.
    if value is None or isinstance(value, bool):
        return value
    answer = _YES_NO.get(value.lower()) if isinstance(value, str) else None
    if answer is None:
        message = f"must be yes or no, got {shown(value)}"
        raise refusal(message)
    return answer


def _answer(value: object) -> object:
    return _YES_NO.get(value.lower(), value) if isinstance(value, str) else value


def _own_answer(value: object) -> object:
    # Checked here and not by the type, whose two kinds would be two complaints.
    if not isinstance(value, bool | str):
        message = f"must be yes, no or a name, got {shown(value)}"
        raise refusal(message)
    if isinstance(value, str):
        refuse_label(value)
    return _answer(value)


def _target(value: object) -> object:
    return value.lower() if isinstance(value, str) and value.lower() in TARGETS else value


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    size = size_in_bytes(value)
    if size is None:
        message = f"must be a number of bytes, or a size such as 4GiB, got {shown(value)}"
        raise refusal(message)
    # A number of hundreds of digits is infinite, and can't be rounded.
    if size >= _TOO_MANY_BYTES:
        message = f"more than any memory, got {shown(value)}"
        raise refusal(message)
    return round(size)


_YES_NO_SCHEMA: Final = {"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no"]}, {"type": "null"}]}
_BYTES_SCHEMA: Final = {
    "anyOf": [
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": "string", "pattern": SIZE_PATTERN},
        {"type": "null"},
    ]
}

YesNo = Annotated[bool | None, BeforeValidator(_yes_no), WithJsonSchema(_YES_NO_SCHEMA)]
"""``yes`` and ``no``, or what YAML has for them."""

Bytes = Annotated[
    Annotated[int, Field(gt=0, lt=_TOO_MANY_BYTES)] | None,
    BeforeValidator(_bytes),
    WithJsonSchema(_BYTES_SCHEMA),
]
"""A number of bytes, or a size with its unit: ``4GiB`` is 4 x 2**30, ``4GB`` 4 x 10**9."""

Target = Annotated[Literal["pc", "browser", "phone", "board"], BeforeValidator(_target)]
"""What a framework is to run on, in upper or lower case."""

Objective = Literal["decode_rate", "ttft_s", "peak_rss_bytes", "quality", "energy_per_token_j"]
"""What can be weighed: keys of metrics, and quality, which is the loss of perplexity."""

OBJECTIVES: Final[tuple[Objective, ...]] = (
    "decode_rate",
    "ttft_s",
    "peak_rss_bytes",
    "quality",
    "energy_per_token_j",
)


class Requirements(BaseModel):
    """What `edgebench select` and the report choose by; what is not given is not asked for."""

    model_config = STRICT

    fixed_model: YesNo = Field(
        default=None, description="Whether one model, fixed, must run as fast as can be."
    )
    multimodal: YesNo = Field(
        default=None, description="Whether more than text goes in: images, sound, video."
    )
    vision: YesNo = Field(default=None, description="Whether images or video go in.")
    enterprise_support: YesNo = Field(
        default=None, description="Whether a company must stand behind the framework."
    )
    target: Target | None = Field(default=None, description="What it is to run on.")
    answers: dict[Slug, Annotated[bool | Label, BeforeValidator(_own_answer)]] = Field(
        default={},
        description="Answers to questions of a decision tree of your own, by the question's key.",
    )
    max_memory_bytes: Bytes = Field(
        default=None,
        description="Most memory that may be used, in bytes or such as 4GiB; the memory of the "
        "machine that was measured where it is not given.",
    )
    min_decode_rate: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Fewest tokens per second that are fast enough."
    )
    max_ttft_s: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Longest time to the first token, in seconds."
    )
    max_quality_loss: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Most that perplexity may be above the reference's, as a share: 0.02 is 2 %.",
    )
    weights: dict[Objective, Annotated[float, Field(ge=0)]] = Field(
        default={},
        description="How much each goal counts among what meets the limits; all that were "
        "measured alike where it is not given.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(requirements_conflicts({key: getattr(self, key) for key in type(self).model_fields}))
        return self


QUESTIONS: Final = ("fixed_model", "multimodal", "vision", "enterprise_support", "target")
"""The answers among the requirements; the others are limits and weights."""

_CONTRADICTION: Final = {"vision": True, "multimodal": False}


def overruled(above: Mapping[str, object], below: Mapping[str, object]) -> frozenset[str]:
    """Which of the answers below don't go with those above, though they are not given there.

    Images are more than text: who says ``vision: yes`` above has changed ``multimodal: no`` below.

    Args:
        above: answers by key, which need not be valid by themselves.
        below: those that they are put over.
    """
    keys = {"vision", "multimodal"}
    found = {key: _answer({**below, **above}.get(key)) for key in keys}
    if found != _CONTRADICTION or not keys & above.keys():
        return frozenset()
    return frozenset(keys - above.keys())


def requirements_conflicts(written: Mapping[str, object]) -> list[Finding]:
    """What does not go together in requirements, whose values need not be valid by themselves."""
    findings = []
    answers = {key: _answer(written.get(key)) for key in ("vision", "multimodal")}
    if answers == _CONTRADICTION:
        message = "images are more than text: with vision: yes this is yes, or leave it out"
        findings.append(Finding(("multimodal",), message))
    own = written.get("answers")
    if isinstance(own, Mapping):
        findings += [
            Finding(("answers", key), f"write it one level higher, as {key} itself", at="key")
            for key in own
            if key in Requirements.model_fields
        ]
    weights = written.get("weights")
    if isinstance(weights, Mapping) and weights and all(each == 0 for each in weights.values()):
        message = "all are 0, so that nothing counts; give one a weight, or leave them out"
        findings.append(Finding(("weights",), message))
    return findings
