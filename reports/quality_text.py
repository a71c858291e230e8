"""What a rated text was and how it was rated, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.results.quality import WITH_REFERENCE
from edgebench.reports.format import BITS_PER_BYTE, PERPLEXITY, counted, percent
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.sameness import reference_name
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, QualityReference
    from edgebench.reports.format import Scale

HASH_DIGITS = 12
_START = {
    "model": N_("as the model's own tokenizer does it"),
    "always": N_("as the scenario asks"),
    "never": N_("as the scenario asks"),
}
_NO_START = {**_START, "model": N_("as the model's tokenizer adds none")}
_OWN = "own files"
"""In the record, where the tokenizer of the model's own files made the ids."""


def protocol_text(quality: QualityRecord, *, finished: bool) -> tuple[str, ...]:
    """Text, protocol, extent and reference, a sentence each.

    Args:
        quality: the record of the workload.
        finished: whether the run is; if not, what was scored is so far.
    """
    return tuple(
        one_line(each)
        for each in (
            _text(quality),
            _protocol(quality),
            _extent(quality, finished=finished),
            *_reference(quality),
        )
    )


def short_protocol_text(quality: QualityRecord) -> str:
    """Text, extent and reference in one line, for where there is no room for more."""
    extent = _(
        "{text}, sha256 {hash}, {protocol}, {count} of {windows} of {tokens}",
        text=_named(quality),
        hash=quality.text_sha256[:HASH_DIGITS],
        protocol=quality.protocol,
        count=quality.windows,
        windows=counted("{count} window", "{count} windows", quality.windows_planned),
        tokens=counted("{count} token", "{count} tokens", quality.window),
    )
    rated = quality.reference.perplexity if quality.reference else None
    if rated is not None and "perplexity" in quality.metrics:
        extent = _(
            "{extent}; perplexity of the reference {perplexity}",
            extent=extent,
            perplexity=_written(rated, PERPLEXITY),
        )
    return one_line(extent)


def wants_reference(quality: QualityRecord) -> bool:
    """Whether anybody asked for a metric that compares with the reference."""
    return any(each in WITH_REFERENCE for each in quality.metrics)


def same_text_note(quality: QualityRecord, other: WorkloadRecord) -> str:
    """That another workload rates the same text otherwise; empty where none does."""
    theirs = other.quality
    if theirs is None or theirs.text_sha256 != quality.text_sha256 or theirs.key == quality.key:
        return ""
    extent = {"windows": theirs.windows, "scored_tokens": theirs.scored_tokens}
    alike = quality.model_copy(update=extent).key == theirs.key
    if alike:
        return _(
            "{workload} scores another part of the same text: its perplexities do not compare "
            "with these.",
            workload=one_line(other.name),
        )
    return _(
        "{workload} rates the same text by another protocol: its perplexities do not compare "
        "with these.",
        workload=one_line(other.name),
    )


def _named(quality: QualityRecord) -> str:
    """A text as the scenario names it; of a file, which may be a variable there, its name too."""
    file = quality.text_origin if quality.text.startswith("path:") else ""
    return _("{text} ({file})", text=quality.text, file=file) if file else quality.text


def _text(quality: QualityRecord) -> str:
    origin = unstopped(recorded(quality.text_origin or ""))
    return _(
        "The text is {text}: {size}, sha256 {hash} (its first {digits} digits).",
        text=_("{text} ({file})", text=quality.text, file=origin) if origin else quality.text,
        size=counted("{count} byte", "{count} bytes", quality.text_bytes),
        hash=quality.text_sha256[:HASH_DIGITS],
        digits=HASH_DIGITS,
    )


def _protocol(quality: QualityRecord) -> str:
    if quality.bos_id is None:
        start = _("No start token, {why}", why=_(_NO_START[quality.bos]))
    elif quality.protocol == "llama-perplexity":
        start = _("The start token {id} takes each window's first place", id=quality.bos_id)
    else:
        start = _(
            "The start token {id} stands before each window ({why})",
            id=quality.bos_id,
            why=_(_START[quality.bos]),
        )
    if quality.protocol == "llama-perplexity":
        how = _(
            "Protocol llama-perplexity: chunks of {size} tokens that do not overlap; of each, the "
            "tokens from position {place} on are scored.",
            size=quality.window,
            place=quality.score_from,
        )
    else:
        how = _(
            "Protocol sliding: windows of {size} tokens, each {stride} beyond the one before; "
            "every token with at least {place} before it in its window is scored once.",
            size=quality.window,
            stride=quality.stride,
            place=quality.score_from,
        )
    own = quality.tokenizer.endswith(_OWN)
    by = _("the model's own tokenizer") if own else quality.tokenizer
    return _("{how} {start}; tokenized by {tokenizer}.", how=how, start=start, tokenizer=by)


def _extent(quality: QualityRecord, *, finished: bool) -> str:
    planned = counted("{count} window", "{count} windows", quality.windows_planned)
    if not quality.windows:
        if finished:
            return _("Of {windows}, none was scored by any variant.", windows=planned)
        return _("Planned: {windows}; none is complete so far.", windows=planned)
    tokens = counted("{count} scored token", "{count} scored tokens", quality.scored_tokens)
    size = quality.scored_bytes
    held = (
        tokens if size is None else commas((tokens, counted("{count} byte", "{count} bytes", size)))
    )
    if not finished:
        return plural(
            "{count} of {windows} was to be scored by every variant; the run did not end. It holds "
            "{held}.",
            "{count} of {windows} were to be scored by every variant; the run did not end. They "
            "hold {held}.",
            quality.windows,
            windows=planned,
            held=held,
        )
    if quality.windows < quality.windows_planned:
        return plural(
            "{count} of {windows} was scored: the time budget cut the rest, for every variant "
            "alike. It holds {held}.",
            "{count} of {windows} were scored: the time budget cut the rest, for every variant "
            "alike. They hold {held}.",
            quality.windows,
            windows=planned,
            held=held,
        )
    return plural(
        "{count} of {windows} was scored. It holds {held}.",
        "{count} of {windows} were scored. They hold {held}.",
        quality.windows,
        windows=planned,
        held=held,
    )


def _reference(quality: QualityRecord) -> Iterator[str]:
    reference = quality.reference
    if reference is None:
        if quality.no_reference and wants_reference(quality):
            why = unstopped(recorded(quality.no_reference))
            yield _("There is no reference: {reason}.", reason=why)
        return
    name = reference_name(reference.name, reference.lossy_types)
    figures = list(_figures(quality, reference))
    if not figures:
        yield _("The reference is {reference}, run in float32 by numpy.", reference=name)
    else:
        yield _(
            "The reference is {reference}, run in float32 by numpy: {figures}.",
            reference=name,
            figures=_(" and ").join(figures),
        )
    if "kl_divergence" in quality.metrics:
        yield _covered(reference)


def _figures(quality: QualityRecord, reference: QualityReference) -> Iterator[str]:
    """What the reference makes of the text, as far as anybody asked."""
    if "perplexity" in quality.metrics:
        yield (
            _("a perplexity that no number holds")
            if reference.perplexity is None
            else _("perplexity {value}", value=_written(reference.perplexity, PERPLEXITY))
        )
    if "bits_per_byte" in quality.metrics and reference.bits_per_byte is not None:
        yield _("{value} bits per byte", value=_written(reference.bits_per_byte, BITS_PER_BYTE))


def _covered(reference: QualityReference) -> str:
    return _(
        "KL divergence is exact over its likeliest tokens at each position, which hold {share} of "
        "the probability, and estimated without bias over all others, from samples of them: "
        "{tokens} rated a position.",
        share=percent(reference.covered),
        tokens=counted("{count} token", "{count} tokens", reference.candidates),
    )


def _written(value: float, scale: Scale) -> str:
    return scale.write(value, scale.decimals(value))
