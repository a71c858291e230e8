"""Whether every variant computes the same model: what verifying found, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.engines import engine_text
from edgebench.reports.format import NOT_MEASURED, percent, quantity
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import (
        Measured,
        Parting,
        PromptSameness,
        ReferenceRecord,
        Sameness,
        VariantRecord,
    )

VERDICTS = {
    "agrees": "agrees",
    "differs": "DIFFERS",
    "not_judged": "not judged",
    "failed": "not verified",
}


@dataclass(frozen=True, slots=True)
class SamePrompt:
    """One variant on one workload's prompt, all of it as text.

    Attributes:
        workload: its name.
        tokenizer: ``equal``, ``differs``, or a dash.
        greedy: how many generated tokens are the reference's, such as ``64 of 64``.
        top1: share of positions with the same likeliest token.
        kl, kl_p99: KL divergence from the reference in nat, mean and 99th percentile.
        difference: largest difference of a log-likelihood, in nat.
        notes: where it parts, and why something is missing: a sentence each; see
            `SameView.remarks`.
    """

    workload: str
    tokenizer: str
    greedy: str
    top1: str
    kl: str
    kl_p99: str
    difference: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameRow:
    """One variant.

    Attributes:
        variant: its id.
        engine: what it drove, with the version; empty where that is not known.
        place: its place in the run, which gives it its colour.
        verdict: one of `VERDICTS`, with what is not exact about it; or a dash where it was not
            verified.
        short: what stands in the comparison's column.
        why: what the verdict rests on, a sentence each.
        bad: whether it differs, or could not be verified.
        prompts: one for each workload that was compared.
    """

    variant: str
    engine: str
    place: int
    verdict: str
    short: str
    why: tuple[str, ...]
    bad: bool
    prompts: tuple[SamePrompt, ...]


@dataclass(frozen=True, slots=True)
class SameView:
    """All variants against the reference.

    Attributes:
        reference: what they were compared with, a sentence; empty where there was nothing.
        judgement: how many agree, a sentence.
        notes: how it was judged, a sentence each.
        rows: in the order of the variants.
    """

    reference: str
    judgement: str
    notes: tuple[str, ...]
    rows: tuple[SameRow, ...]

    @property
    def short(self) -> Mapping[str, str]:
        """What stands in the comparison's column, by variant."""
        return {row.variant: row.short for row in self.rows}

    @property
    def by_workload(self) -> tuple[tuple[str, tuple[tuple[SameRow, SamePrompt | None], ...]], ...]:
        """The rows of each workload's table; None beside a variant that was not compared on it."""
        names = dict.fromkeys(prompt.workload for row in self.rows for prompt in row.prompts)
        return tuple(
            (
                name,
                tuple(
                    (row, next((each for each in row.prompts if each.workload == name), None))
                    for row in self.rows
                ),
            )
            for name in names
        )

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What the prompts' notes say, each once, behind the variants and prompts it is about."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self.rows:
            for prompt in row.prompts:
                for note in prompt.notes:
                    found.setdefault(note, {}).setdefault(row.variant, []).append(prompt.workload)
        return tuple(
            (
                "; ".join(f"{variant} on {', '.join(names)}" for variant, names in places.items()),
                note,
            )
            for note, places in found.items()
        )

    @property
    def bad(self) -> tuple[SameRow, ...]:
        """The variants that differ or could not be verified."""
        return tuple(row for row in self.rows if row.bad)


def sameness_view(
    variants: Sequence[VariantRecord], reference: ReferenceRecord | None
) -> SameView | None:
    """What verifying found; None where nothing was verified."""
    if not any(variant.sameness for variant in variants):
        return None
    rows = tuple(_row(variant, place) for place, variant in enumerate(variants))
    return SameView(
        reference=_reference(reference) if reference else "",
        judgement=_judgement([variant.sameness for variant in variants if variant.sameness]),
        notes=tuple(_notes(reference)) if reference else (),
        rows=rows,
    )


def _row(variant: VariantRecord, place: int) -> SameRow:
    same, engine = variant.sameness, engine_text(variant)
    if same is None:
        return SameRow(
            variant.id, engine, place, NOT_MEASURED, NOT_MEASURED, (), bad=False, prompts=()
        )
    return SameRow(
        variant=variant.id,
        engine=engine,
        place=place,
        verdict=_verdict(same),
        short=_short(same),
        why=tuple(one_line(text) for text in _why(same)),
        bad=same.verdict in ("differs", "failed"),
        prompts=tuple(_prompt(prompt) for prompt in same.prompts),
    )


def _short(same: Sameness) -> str:
    if same.verdict != "not_judged":
        return VERDICTS[same.verdict]
    parts = []
    divergence = same.metrics.get("kl_divergence")
    agreement = same.metrics.get("top1_agreement")
    if divergence is not None and divergence.value is not None:
        parts.append(f"KL {small(divergence.value)}")
    if agreement is not None and agreement.value is not None:
        parts.append(f"top-1 {percent(agreement.value)}")
    difference = same.metrics.get("log_likelihood_difference")
    if not parts and difference is not None and difference.value is not None:
        parts.append(f"mean Δ log-likelihood {small(difference.value)}")
    return ", ".join(parts) or NOT_MEASURED


def _verdict(same: Sameness) -> str:
    because = f": {one_line(same.not_judged_because)}" if same.not_judged_because else ""
    return f"{VERDICTS[same.verdict]}{because}"


def _why(same: Sameness) -> Iterator[str]:
    for finding in same.findings:
        yield f"{finding[:1].upper()}{finding[1:]}."
    if same.failure is not None:
        yield same.failure.message


def _prompt(prompt: PromptSameness) -> SamePrompt:
    values = prompt.metrics
    return SamePrompt(
        workload=prompt.workload,
        tokenizer=NOT_MEASURED if prompt.tokenizer == "not_compared" else prompt.tokenizer,
        greedy=f"{prompt.common_tokens} of {prompt.generated_tokens}",
        top1=_share(values.get("top1_agreement")),
        kl=_small(values.get("kl_divergence")),
        kl_p99=_small(values.get("kl_divergence_p99")),
        difference=_small(values.get("log_likelihood_difference_max")),
        notes=tuple(one_line(text) for text in _prompt_notes(prompt)),
    )


def _prompt_notes(prompt: PromptSameness) -> Iterator[str]:
    if prompt.parting is not None:
        yield parting_text(prompt.parting)
    if prompt.untold_tokens:
        made = prompt.generated_tokens + prompt.untold_tokens
        yield (
            f"Of its {made} tokens the first {prompt.generated_tokens} are compared: the framework "
            "gives text, which does not tell the next one's id."
        )
    if prompt.tokenizer_note:
        yield f"Tokenizer: {prompt.tokenizer_note}."
    for reason in dict.fromkeys(each.reason for each in prompt.metrics.values() if each.reason):
        yield f"Not compared: {reason}."


def parting_text(parting: Parting) -> str:
    """Where a greedy text parts from the reference's, and by how much it was missed."""
    return (
        f"Parts at token {parting.token + 1}: {parting.variant_text!r} for "
        f"{parting.reference_text!r}, whose logit is higher by {small(parting.margin)}."
    )


def _limit(limits: Mapping[str, float], name: str) -> str:
    """A limit, and what it is for bf16."""
    known = [limits[key] for key in (name, f"bf16_{name}") if key in limits]
    return " (bf16: ".join(f"{value:g}" for value in known) + ")" * (len(known) > 1)


def _share(measured: Measured | None) -> str:
    value = measured.value if measured else None
    return NOT_MEASURED if value is None else percent(value)


def _small(measured: Measured | None) -> str:
    value = measured.value if measured else None
    return NOT_MEASURED if value is None else small(value)


def small(value: float) -> str:
    """Two digits, however small the value."""
    return "0" if value == 0 else f"{value:.2g}"


def _judgement(found: Sequence[Sameness]) -> str:
    agree = sum(same.verdict == "agrees" for same in found)
    differ = sum(same.verdict == "differs" for same in found)
    failed = sum(same.verdict == "failed" for same in found)
    if not agree and not differ:
        judged = (
            "No variant is in high precision, so none was judged; "
            "`verify: high_precision`, or `edgebench verify --high-precision`, adds one for each "
            "framework."
        )
    elif differ:
        judged = f"{differ} of {agree + differ} in high precision DIFFER from the reference."
    else:
        judged = f"{agree} of {agree} in high precision agree with the reference."
    return f"{judged} {failed} could not be verified." if failed else judged


def _reference(reference: ReferenceRecord) -> str:
    weights = ""
    if reference.lossy_types:
        weights = f" (what its {'/'.join(reference.lossy_types)} weights stand for)"
    return (
        f"The reference is {reference.name}{weights}, run in float32 by numpy: "
        f"{quantity(reference.parameters, '1')} weights, {reference.prompt_positions} positions."
    )


def _notes(reference: ReferenceRecord) -> Iterator[str]:
    limits = reference.limits
    if limits:
        yield (
            "In high precision a variant agrees where its greedy text parts only at near-ties "
            f"(logits at most {_limit(limits, 'near_tie')} apart), its mean KL divergence is at "
            f"most {_limit(limits, 'kl_divergence')}, and no log-likelihood differs by more than "
            f"{_limit(limits, 'difference')}."
        )
    if reference.covered is not None:
        yield (
            "KL divergence is over the reference's likeliest tokens, which hold "
            f"{percent(reference.covered)} of the probability, and all others as one: the real "
            "one is at least as large."
        )
