"""Whether a variant computes what the reference computes: the figures, and the verdict on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from edgebench.harness.results.measured import Measured
from edgebench.harness.results.sameness import Parting, PromptSameness
from edgebench.models.ratings import kl_divergences

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.models.ratings import Ratings
    from edgebench.models.reference import Position
    from edgebench.runners.base import Scalar, Scores

TokenizerResult: TypeAlias = Literal["equal", "differs", "not_compared"]

EXACT_QUANTIZATIONS: Final = frozenset({"f32", "f16", "bf16", "fp32", "fp16", "q0f32", "q0f16"})
"""In lower case: what loses nothing that a comparison within `LIMITS` would see."""

EXACT_CACHES: Final = EXACT_QUANTIZATIONS | {"fp", "float32", "float16", "bfloat16"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Within which a variant in high precision agrees, on each prompt.

    Attributes:
        near_tie: by how much the reference's logit of its own token may be above that of the
            token that the variant makes in its place.
        kl_divergence: the mean, in nat.
        difference: the largest of a log-likelihood, in nat.
    """

    near_tie: float
    kl_divergence: float
    difference: float


# Measured with SmolLM2 135M on three prompts (chat, 512 tokens of prose, code), the worst of each:
#   llama.cpp F32, fp32 cache, no fused attention   no parting   KL 2e-11   log-likelihood 5e-5
#   llama.cpp F32, fused attention, fp16 cache      tie 0.008    KL 3e-6    log-likelihood 0.025
#   llama.cpp F16                                   no parting   KL 1.2e-5  log-likelihood 0.035
#   llama.cpp BF16 (values between are rounded too) tie 0.008    KL 2.9e-4  log-likelihood 0.19
# A fault is far beyond: see docs/decisions/0009-reference.md.
FULL: Final = Limits(near_tie=0.1, kl_divergence=1e-4, difference=0.3)
BFLOAT: Final = Limits(near_tie=0.3, kl_divergence=3e-3, difference=1.5)


@dataclass(frozen=True, slots=True)
class Said:
    """What a variant said about one prompt.

    Attributes:
        generated: its greedy tokens, up to one whose id was not told.
        scores: its ratings of the prompt's tokens from the second on, or None.
        no_scores: why there are none.
        tokenizer: whether its own tokenizer makes the reference's ids of the text.
        tokenizer_note: where they differ, or why it was not asked.
        untold: how many tokens it made from the first one on whose id was not told.
    """

    generated: tuple[int, ...]
    scores: Scores | None = None
    no_scores: str = ""
    tokenizer: TokenizerResult = "not_compared"
    tokenizer_note: str = ""
    untold: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of single positions; None where the framework hides what they need.

    Attributes:
        top1: whether the likeliest tokens are the same.
        divergence: KL divergence from the reference, in nat.
        difference: absolute difference of the log-likelihoods of the tokens that stand there.
        reasons: by the names above, why one is None.
    """

    top1: NDArray[np.bool_] | None
    divergence: NDArray[np.float64] | None
    difference: NDArray[np.float64] | None
    reasons: Mapping[str, str]


def figures(rated: Ratings, scores: Scores | None, reason: str) -> Figures:
    """Compare a prompt's positions.

    Args:
        rated: the reference's ratings.
        scores: the variant's ratings of the same positions, with the reference's candidates.
        reason: why there are none.
    """
    if scores is None or not len(rated):
        why = reason or "the prompt has one token, which nothing stands before"
        return Figures(None, None, None, dict.fromkeys(("top1", "divergence", "difference"), why))
    reasons = {}
    top1 = divergence = None
    if scores.top_ids is None:
        reasons["top1"] = "the framework does not tell its likeliest token"
    else:
        top1 = rated.top_ids == np.array(scores.top_ids)
    if scores.candidates is None:
        reasons["divergence"] = "the framework does not rate tokens that don't stand there"
    else:
        divergence = kl_divergences(rated, scores.candidates)
    difference = np.abs(rated.log_likelihoods - np.array(scores.log_likelihoods))
    return Figures(top1, divergence, difference, reasons)


def metrics_of(parts: Sequence[Figures]) -> dict[str, Measured]:
    """The figures of some prompts as one set of values, each null with its reason if need be."""
    return {
        "top1_agreement": _value("1", "top1", [each.top1 for each in parts], np.mean, parts),
        "kl_divergence": _value(
            "nat", "divergence", [each.divergence for each in parts], np.mean, parts
        ),
        "kl_divergence_p99": _value(
            "nat", "divergence", [each.divergence for each in parts], _p99, parts
        ),
        "log_likelihood_difference": _value(
            "nat", "difference", [each.difference for each in parts], np.mean, parts
        ),
        "log_likelihood_difference_max": _value(
            "nat", "difference", [each.difference for each in parts], np.max, parts
        ),
    }


def _value(
    unit: str,
    name: str,
    found: Sequence[NDArray[np.bool_] | NDArray[np.float64] | None],
    summary: Callable[[NDArray[np.float64]], np.floating],
    parts: Sequence[Figures],
) -> Measured:
    known = [each.astype(np.float64) for each in found if each is not None]
    if not known:
        reasons = dict.fromkeys(part.reasons[name] for part in parts if name in part.reasons)
        return Measured.missing(unit, "; ".join(reasons) or "nothing was compared", "derived")
    return Measured(value=float(summary(np.concatenate(known))), unit=unit, source="derived")


def _p99(values: NDArray[np.float64]) -> np.floating:
    quantile: np.floating = np.percentile(values, 99)
    return quantile


def compare_prompt(
    workload: str,
    prompt_tokens: int,
    said: Said,
    branch: Sequence[Position],
    found: Figures,
    text: Callable[[int], str],
) -> PromptSameness:
    """One variant on one prompt.

    Args:
        workload: the prompt's name.
        prompt_tokens: how many of its tokens were compared.
        said: what the variant said.
        branch: the reference's ratings of the variant's greedy tokens.
        found: the figures of the prompt's positions.
        text: the text of a token.
    """
    common = 0
    for number, position in zip(said.generated, branch, strict=True):
        if number != position.top_id:
            break
        common += 1
    parting = None
    if common < len(said.generated):
        theirs, position = said.generated[common], branch[common]
        parting = Parting(
            token=common,
            reference_id=position.top_id,
            reference_text=text(position.top_id),
            variant_id=theirs,
            variant_text=text(theirs),
            margin=position.behind,
        )
    return PromptSameness(
        workload=workload,
        prompt_tokens=prompt_tokens,
        tokenizer=said.tokenizer,
        tokenizer_note=said.tokenizer_note,
        generated_tokens=len(said.generated),
        untold_tokens=said.untold,
        common_tokens=common,
        parting=parting,
        metrics=metrics_of([found]),
    )


def findings(prompts: Sequence[PromptSameness], limits: Limits = FULL) -> list[str]:
    """What of a variant in high precision can't be rounding: a sentence each; none if it agrees."""
    found: list[str] = []
    for prompt in prompts:
        where = f"on {prompt.workload}"
        if prompt.tokenizer == "differs":
            found.append(f"{where}, its tokenizer makes other ids: {prompt.tokenizer_note}")
        parting = prompt.parting
        if parting is not None and parting.margin > limits.near_tie:
            found.append(
                f"{where}, its text parts from the reference's at token {parting.token + 1}: "
                f"{parting.variant_text!r} for {parting.reference_text!r}, whose logit is higher "
                f"by {parting.margin:.3g} (at most {limits.near_tie:g} is a near-tie)"
            )
        for key, limit, name in (
            ("kl_divergence", limits.kl_divergence, "the mean KL divergence"),
            (
                "log_likelihood_difference_max",
                limits.difference,
                "the largest difference of a log-likelihood",
            ),
        ):
            value = prompt.metrics[key].value
            if value is not None and value > limit:
                found.append(f"{where}, {name} is {value:.3g}, over {limit:g}")
    return found


def limits_for(quantization: str, source_types: Collection[str]) -> Limits:
    """What a variant in high precision is held to.

    Args:
        quantization: the variant's.
        source_types: what the source keeps its weights in.
    """
    kept = source_types if quantization == "source" else (quantization,)
    return BFLOAT if any(each.lower() == "bf16" for each in kept) else FULL


def what_is_not_exact(
    quantization: str,
    lossy_types: Sequence[str],
    asked: Mapping[str, Scalar],
    effective: Mapping[str, Scalar],
) -> str | None:
    """Why a variant is not in high precision, in a few words; None where it is.

    Args:
        quantization: the variant's.
        lossy_types: the quantised types of the source's weights.
        asked: the variant's options.
        effective: the options that the framework says it uses.
    """
    if quantization == "source":
        if lossy_types:
            return f"{lossy_types[0]} weights"
    elif quantization.lower() not in EXACT_QUANTIZATIONS:
        return f"{quantization} weights"
    for name, value in {**asked, **effective}.items():
        allowed = None
        if name.startswith("kv_cache"):
            allowed = EXACT_CACHES
        elif name.endswith("quantization"):
            allowed = EXACT_QUANTIZATIONS
        if allowed and isinstance(value, str) and value.lower() not in allowed:
            return f"{name}={value}"
    # Where a framework's own default is low, nobody asked for less: it is judged.
    return "precision=low" if asked.get("precision") == "low" else None
