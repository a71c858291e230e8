"""How variants were compared with the reference, and what came of it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.measured import Failure, Measured  # noqa: TC001
from edgebench.harness.results.record import Record, Sha256

Verdict = Literal["agrees", "differs", "not_judged", "failed"]


class Parting(Record):
    """Where a variant's greedy text leaves the reference's."""

    token: int = Field(description="Of the generated tokens, the first of which is 0.")
    reference_id: int
    reference_text: str
    variant_id: int
    variant_text: str
    margin: float = Field(
        description="By how much the reference's logit of its own token is above that of the "
        "variant's; near 0 both were as likely."
    )


class PromptSameness(Record):
    """One variant on one workload's prompt."""

    workload: str
    prompt_tokens: int = Field(description="How many of the prompt's tokens were compared.")
    tokenizer: Literal["equal", "differs", "not_compared"] = Field(
        description="Whether the framework's own tokenizer makes the reference's ids of the text."
    )
    tokenizer_note: str = Field(default="", description="Where they differ, or why not compared.")
    generated_tokens: int = Field(
        description="How many tokens were generated, greedily, up to one whose id was not told."
    )
    untold_tokens: int = Field(
        default=0, description="How many were generated from that one on, and not compared."
    )
    common_tokens: int = Field(
        description="How many of them, from the first on, the reference makes too."
    )
    parting: Parting | None = Field(default=None, description="Null where all are in common.")
    metrics: dict[str, Measured] = Field(
        default={},
        description="Over the prompt's positions: top1_agreement, kl_divergence, "
        "kl_divergence_p99, log_likelihood_difference, log_likelihood_difference_max.",
    )


class Sameness(Record):
    """One variant against the reference."""

    verdict: Verdict = Field(
        description="agrees or differs, of a variant in high precision; not_judged: its figures "
        "are shown; failed: it could not be compared."
    )
    not_judged_because: str | None = Field(
        default=None, description="What is not exact about the variant, such as int4 weights."
    )
    findings: list[str] = Field(default=[], description="Why it differs, a sentence each.")
    metrics: dict[str, Measured] = Field(
        default={}, description="As those of the prompts, over all positions of all prompts."
    )
    prompts: list[PromptSameness] = Field(default=[])
    failure: Failure | None = None


class ReferenceRecord(Record):
    """What the variants were compared with: the source's weights, run in float32 by numpy."""

    name: str = Field(description="The source's file or folder.")
    sha256: Sha256
    lossy_types: list[str] = Field(
        default=[],
        description="Quantised types that the source keeps weights in; the reference runs what "
        "they stand for.",
    )
    parameters: int
    prompt_positions: int = Field(description="Over all prompts; each was rated once.")
    candidates: int = Field(description="Tokens whose likelihood was compared, at all of them.")
    covered: float | None = Field(
        default=None, description="The mean share of the probability that they hold."
    )
    duration_s: float
    limits: dict[str, float] = Field(
        default={}, description="Within which a variant in high precision agrees."
    )
