"""What does not go together in a scenario.

The rules look at values that need not be valid by themselves, so that the loader can report
them beside wrong types and unknown keys, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from edgebench.harness.scenario.expand import as_tuple, expand_variant
from edgebench.harness.scenario.problems import Finding, KeyPath, quote, suggestion
from edgebench.harness.scenario.values import HIGH_PRECISION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.scenario.model import Variant

MAX_VARIANTS: Final = 500

_NOT_OF_A_TASK: Final[Mapping[str, str]] = {
    "prompt_tokens": "a task works on the text of prompt",
    "generate_tokens": "a task ends by itself",
    "chat_template": "a task puts the text in the model's chat template itself",
    "text": "a task works on the text of prompt",
    "depth": "a task begins with an empty KV cache",
    "sustained": "a task is run whole, once a repetition",
}
_NOT_OF_QUALITY: Final[Mapping[str, str]] = {
    "task": "a workload is either a task or rates a text",
    "prompt": "the text is named in quality",
    "prompt_tokens": "the text is named in quality",
    "generate_tokens": "nothing is generated where a text is rated",
    "chat_template": "a text is rated as it is",
    "text": "the text is named in quality",
    "depth": "each window begins with an empty KV cache",
    "sustained": "a text is rated once, and no time is measured",
}
_NOTHING_ASKED: Final[Mapping[str, tuple[object, ...]]] = {
    "chat_template": (None, False),
    "text": (None, "natural"),
    "depth": (None, 0),
}
"""What the model has for a key that was not written."""


def workload_conflicts(workload: Mapping[str, object]) -> list[Finding]:
    """What does not go together in one workload."""
    if workload.get("quality") is not None:
        return _left_out(workload, _NOT_OF_QUALITY, "quality")
    if workload.get("task") is not None:
        return _task_conflicts(workload)
    has_prompt = workload.get("prompt") is not None
    has_length = workload.get("prompt_tokens") is not None
    findings = []
    if has_prompt and has_length:
        message = "give either prompt or prompt_tokens, not both"
        findings.append(Finding(("prompt_tokens",), message, at="key"))
    if not has_prompt and not has_length:
        message = "give a prompt, or its length as prompt_tokens, or a text to rate as quality"
        findings.append(Finding((), message))
    if workload.get("chat_template") is True and not has_prompt:
        message = "only a prompt can be put in the chat template; give prompt, or leave this out"
        findings.append(Finding(("chat_template",), message, at="key"))
    if workload.get("text") == "synthetic" and not has_length:
        message = "only a prompt of a given length can be synthetic; give prompt_tokens"
        findings.append(Finding(("text",), message, at="key"))
    if workload.get("generate_tokens") is None and not _misspelled("generate_tokens", workload):
        message = "this key is missing: how many tokens to generate, exactly"
        findings.append(Finding(("generate_tokens",), message))
    return findings


def _misspelled(key: str, workload: Mapping[str, object]) -> bool:
    """Whether something like `key` is there, which is reported as an unknown key."""
    return any(other != key and suggestion(other, (key,)) for other in map(str, workload))


def _task_conflicts(workload: Mapping[str, object]) -> list[Finding]:
    """What a task can't have: it takes a text as it is, and ends by itself."""
    findings = []
    if workload.get("prompt") is None:
        message = "a task works on a text; give it as prompt"
        findings.append(Finding((), message))
    return findings + _left_out(workload, _NOT_OF_A_TASK, "task")


def _left_out(
    workload: Mapping[str, object], reasons: Mapping[str, str], beside: str
) -> list[Finding]:
    """Which keys must not stand beside another, and why."""
    return [
        Finding((key,), f"{why}; leave this out beside {beside}", at="key")
        for key, why in reasons.items()
        if workload.get(key) not in _NOTHING_ASKED.get(key, (None,))
    ]


def verify_conflicts(verify: object, workloads: Sequence[object]) -> list[Finding]:
    """Verifying compares on prompts."""
    kinds = [each for each in workloads if isinstance(each, Mapping)]
    if verify not in (True, HIGH_PRECISION) or not kinds or len(kinds) < len(workloads):
        return []
    if any(each.get("task") is None and each.get("quality") is None for each in kinds):
        return []
    message = "compares on prompts, and no workload has one; add one, or leave this out"
    return [Finding(("verify",), message)]


def bounds_conflicts(bounds: Mapping[str, object], defaults: Mapping[str, int]) -> list[Finding]:
    """Whether ``min`` is above ``max``, where either may be left to its default."""
    ends = {key: bounds.get(key, defaults.get(key)) for key in ("min", "max")}
    low, high = ends["min"], ends["max"]
    if type(low) is not int or type(high) is not int or low <= high:
        return []
    blamed, other = ("min", "max") if "min" in bounds else ("max", "min")
    relation = "must not be above" if blamed == "min" else "must not be below"
    by_default = "" if other in bounds else ", the default"
    message = f"{relation} {other} ({ends[other]}{by_default}), got {ends[blamed]}"
    return [Finding((blamed,), message)]


def name_conflicts(names: Sequence[object]) -> list[Finding]:
    """Which workloads have a name that an earlier one has."""
    findings = []
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if not isinstance(name, str):
            continue
        if name in first:
            message = f"workloads[{first[name]}] has the name {quote(name)} already"
            findings.append(Finding(("workloads", index, "name"), message))
        first.setdefault(name, index)
    return findings


def variant_conflicts(variants: Mapping[int, Variant]) -> list[Finding]:
    """Which variants, by index, are too many or the same as an earlier one."""
    findings: list[Finding] = []
    total = 0
    owner: dict[str, int] = {}
    for index, variant in variants.items():
        path: KeyPath = ("variants", index)
        total += math.prod(
            len(as_tuple(value)) for value in (variant.quantization, *variant.options.values())
        )
        # Checked before the product is written out: ten sweeps of ten are ten billion.
        if total > MAX_VARIANTS:
            message = f"the sweeps make more than {MAX_VARIANTS} variants up to here; sweep less"
            return [*findings, Finding(path, message)]
        for expanded in expand_variant(variant):
            if expanded.id in owner:
                message = (
                    f"variants[{owner[expanded.id]}] is {quote(expanded.id)} already; change "
                    "an option, or give one of them a name of its own"
                )
                findings.append(Finding(path, message))
                break
            owner[expanded.id] = index
    return findings
