"""Whether every variant computes the same model: what verifying found, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.engines import engine_text
from edgebench.reports.format import NOT_MEASURED, percent, quantity
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, paragraph, semicolons
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.measured import Measured
    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.results.sameness import (
        Parting,
        PromptSameness,
        ReferenceRecord,
        Sameness,
    )

VERDICTS = {
    "agrees": N_("agrees"),
    "differs": N_("DIFFERS"),
    "not_judged": N_("not judged"),
    "failed": N_("not verified"),
}
"""What was found of a variant, in words; to be looked up."""

_TOKENIZERS = {"equal": N_("equal"), "differs": N_("differs")}


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
        differs: whether it differs.
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
    differs: bool = False


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
                semicolons(
                    _("{variant} on {workloads}", variant=variant, workloads=commas(names))
                    for variant, names in places.items()
                ),
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
        differs=same.verdict == "differs",
    )


def _short(same: Sameness) -> str:
    if same.verdict != "not_judged":
        return _(VERDICTS[same.verdict])
    parts = []
    divergence = same.metrics.get("kl_divergence")
    agreement = same.metrics.get("top1_agreement")
    if divergence is not None and divergence.value is not None:
        parts.append(_("KL {value}", value=small(divergence.value)))
    if agreement is not None and agreement.value is not None:
        parts.append(_("top-1 {value}", value=percent(agreement.value)))
    difference = same.metrics.get("log_likelihood_difference")
    if not parts and difference is not None and difference.value is not None:
        parts.append(_("mean Δ log-likelihood {value}", value=small(difference.value)))
    return commas(parts) or NOT_MEASURED


def _verdict(same: Sameness) -> str:
    verdict = _(VERDICTS[same.verdict])
    if not same.not_judged_because:
        return verdict
    because = one_line(recorded(same.not_judged_because))
    return _("{what}: {reason}", what=verdict, reason=because)


def _why(same: Sameness) -> Iterator[str]:
    for finding in same.findings:
        text = recorded(finding)
        yield _("{what}.", what=f"{text[:1].upper()}{text[1:]}")
    if same.failure is not None:
        yield recorded(same.failure.message)


def _prompt(prompt: PromptSameness) -> SamePrompt:
    values = prompt.metrics
    return SamePrompt(
        workload=prompt.workload,
        tokenizer=_(_TOKENIZERS.get(prompt.tokenizer, NOT_MEASURED)),
        greedy=_("{common} of {made}", common=prompt.common_tokens, made=prompt.generated_tokens),
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
        yield _(
            "Of its {made} tokens the first {compared} are compared: the framework gives text, "
            "which does not tell the next one's id.",
            made=prompt.generated_tokens + prompt.untold_tokens,
            compared=prompt.generated_tokens,
        )
    if prompt.tokenizer_note:
        yield _("Tokenizer: {note}.", note=recorded(prompt.tokenizer_note))
    for reason in dict.fromkeys(each.reason for each in prompt.metrics.values() if each.reason):
        yield _("Not compared: {reason}.", reason=recorded(reason))


def parting_text(parting: Parting) -> str:
    """Where a greedy text parts from the reference's, and by how much it was missed."""
    return _(
        "Parts at token {number}: {text} for {reference}, whose logit is higher by {margin}.",
        number=parting.token + 1,
        text=repr(parting.variant_text),
        reference=repr(parting.reference_text),
        margin=small(parting.margin),
    )


def _limit(limits: Mapping[str, float], name: str) -> str:
    """A limit, and what it is for bf16."""
    known = [f"{limits[key]:g}" for key in (name, f"bf16_{name}") if key in limits]
    if len(known) <= 1:
        return "".join(known)
    return _("{limit} (bf16: {bf16})", limit=known[0], bf16=known[1])


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
        judged = _(
            "No variant is in high precision, so none was judged; "
            "`verify: high_precision`, or `edgebench verify --high-precision`, adds one for each "
            "framework."
        )
    elif differ:
        judged = _(
            "{count} of {all} in high precision DIFFER from the reference.",
            count=differ,
            all=agree + differ,
        )
    else:
        judged = _("{count} of {count} in high precision agree with the reference.", count=agree)
    if not failed:
        return judged
    return paragraph((judged, _("{count} could not be verified.", count=failed)))


def _reference(reference: ReferenceRecord) -> str:
    return _(
        "The reference is {reference}, run in float32 by numpy: {count} weights, {positions} "
        "positions.",
        reference=reference_name(reference.name, reference.lossy_types),
        count=quantity(reference.parameters, "1"),
        positions=reference.prompt_positions,
    )


def reference_name(name: str, lossy_types: Sequence[str]) -> str:
    """What a reference is: its weights' name, and which lossy types stand behind them.

    Args:
        name: as recorded.
        lossy_types: the quantised types of the source that it was read from; may be empty.
    """
    if not lossy_types:
        return name
    return _(
        "{reference} (what its {types} weights stand for)",
        reference=name,
        types="/".join(lossy_types),
    )


def _notes(reference: ReferenceRecord) -> Iterator[str]:
    limits = reference.limits
    if limits:
        yield _(
            "In high precision a variant agrees where its greedy text parts only at near-ties "
            "(logits at most {near_tie} apart), its mean KL divergence is at most {divergence}, "
            "and no log-likelihood differs by more than {difference}.",
            near_tie=_limit(limits, "near_tie"),
            divergence=_limit(limits, "kl_divergence"),
            difference=_limit(limits, "difference"),
        )
    if reference.covered is not None:
        yield _(
            "KL divergence is over the reference's likeliest tokens, which hold {share} of the "
            "probability, and all others as one: the real one is at least as large.",
            share=percent(reference.covered),
        )
