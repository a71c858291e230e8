"""The records of quality: on which tokens a model was rated, and what each window gave."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from edgebench.harness.results.record import Record, Sha256

Protocol: TypeAlias = Literal["sliding", "llama-perplexity"]
StartRule: TypeAlias = Literal["model", "always", "never"]
QualityMetric: TypeAlias = Literal["perplexity", "bits_per_byte", "kl_divergence", "top1_agreement"]

WITH_REFERENCE = frozenset({"kl_divergence", "kl_divergence_p99", "top1_agreement"})
"""Metrics that compare with the reference at every position."""


class WindowRecord(Record):
    """One window of one variant: sums over its scored tokens."""

    tokens: int = Field(description="Scored tokens.")
    bytes: int | None = Field(
        default=None, description="UTF-8 bytes of the text that they stand for; null if unknown."
    )
    log_likelihood: float = Field(description="Sum of natural logarithms, at most 0.")
    kl_divergence: float | None = Field(
        default=None, description="Sum of KL(reference || variant), in nat; null where not known."
    )
    top1: int | None = Field(
        default=None, description="Tokens where the likeliest one is the reference's likeliest."
    )
    duration_s: float = Field(
        default=0.0, description="From asking for the scores to having them; 0 for the reference."
    )


class QualityReference(Record):
    """What the variants were compared with: the source's weights, run in float32 by numpy."""

    name: str = Field(description="The source's file or folder.")
    sha256: Sha256
    lossy_types: list[str] = Field(
        default=[], description="Quantised types that the source keeps weights in."
    )
    perplexity: float | None = Field(description="Null where no number holds it.")
    bits_per_byte: float | None = None
    windows: list[WindowRecord] = Field(
        description="As of a variant, in the same order; kl_divergence and top1 are null."
    )
    candidates: float = Field(
        description="Tokens that variants rate at a position: the likeliest, and samples of all "
        "others."
    )
    covered: float = Field(description="The mean share of the probability that the likeliest hold.")
    stored_bytes: int = Field(description="Of all positions' likelihoods together.")
    cached_windows: int = Field(default=0, description="Windows that were rated before this run.")
    duration_s: float = Field(description="What the others took to rate, in seconds.")


class QualityRecord(Record):
    """The protocol of one quality workload. Values of different protocols are never compared."""

    text: str = Field(description="As the scenario names it: builtin:NAME or path:FILE.")
    text_sha256: Sha256 = Field(description="Of the text's UTF-8 bytes.")
    text_bytes: int
    text_origin: str = Field(
        default="",
        description="Where a built-in text is from and its licence; of a user's file its name.",
    )
    protocol: Protocol
    window: int = Field(description="Most tokens in a window, a start token counted.")
    stride: int = Field(description="How many tokens each window goes beyond the one before.")
    score_from: int = Field(
        description="The first position of the first window that is scored; position 0 is its "
        "first token. Every scored token has at least so many tokens before it."
    )
    bos: StartRule = Field(
        description="Which windows begin with a start token: as the model's tokenizer does it, "
        "always, never."
    )
    bos_id: int | None = Field(
        default=None, description="The token before each window's text; null where there is none."
    )
    tokenizer: str = Field(description="Who made the ids of the text.")
    ids_sha256: Sha256 = Field(
        description="Of the token ids of the text as far as windows hold them, as decimal numbers "
        "joined by commas."
    )
    vocabulary_size: int
    metrics: list[QualityMetric]
    windows_planned: int = Field(description="As many as the text and max_tokens give.")
    windows: int = Field(
        default=0,
        description="Scored by every variant, in a run that is over; fewer than planned where time "
        "was short, 0 where no variant could score.",
    )
    scored_tokens: int = Field(default=0, description="In those windows.")
    scored_bytes: int | None = Field(default=None, description="UTF-8 bytes of those tokens.")
    reference: QualityReference | None = None
    no_reference: str = Field(
        default="", description="Why there is none, where one was needed; else empty."
    )

    @property
    def key(self) -> tuple[object, ...]:
        """What must be equal for perplexities to be compared."""
        return (
            self.protocol,
            self.text_sha256,
            self.ids_sha256,
            self.window,
            self.stride,
            self.score_from,
            self.bos_id,
            self.windows,
            self.scored_tokens,
        )
