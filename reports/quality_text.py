"""What a rated text was and how it was rated, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.results.quality import WITH_REFERENCE
from edgebench.reports.format import BITS_PER_BYTE, PERPLEXITY, counted, percent
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, QualityReference
    from edgebench.reports.format import Scale

HASH_DIGITS = 12
_START = {
    "model": "as the model's own tokenizer does it",
    "always": "as the scenario asks",
    "never": "as the scenario asks",
}
_NO_START = {**_START, "model": "as the model's tokenizer adds none"}
_OWN = "own files"
"""In the record, where the tokenizer of the model's own files made the ids."""

_ANOTHER_PROTOCOL = "rates the same text by another protocol"


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
    windows = (
        f"{quality.windows} of {counted(quality.windows_planned, 'window')} of "
        f"{counted(quality.window, 'token')}"
    )
    rated = quality.reference.perplexity if quality.reference else None
    reference = (
        f"; perplexity of the reference {_written(rated, PERPLEXITY)}"
        if rated is not None and "perplexity" in quality.metrics
        else ""
    )
    return one_line(
        f"{_named(quality)}, sha256 {quality.text_sha256[:HASH_DIGITS]}, {quality.protocol}, "
        f"{windows}{reference}"
    )


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
    what = "scores another part of the same text" if alike else _ANOTHER_PROTOCOL
    return f"{one_line(other.name)} {what}: its perplexities do not compare with these."


def _named(quality: QualityRecord) -> str:
    """A text as the scenario names it; of a file, which may be a variable there, its name too."""
    file = quality.text_origin if quality.text.startswith("path:") else ""
    return f"{quality.text} ({file})" if file else quality.text


def _text(quality: QualityRecord) -> str:
    origin = f" ({quality.text_origin.rstrip('.')})" if quality.text_origin else ""
    return (
        f"The text is {quality.text}{origin}: {counted(quality.text_bytes, 'byte')}, sha256 "
        f"{quality.text_sha256[:HASH_DIGITS]} (its first {HASH_DIGITS} digits)."
    )


def _protocol(quality: QualityRecord) -> str:
    if quality.bos_id is None:
        start = f"No start token, {_NO_START[quality.bos]}"
    elif quality.protocol == "llama-perplexity":
        start = f"The start token {quality.bos_id} takes each window's first place"
    else:
        start = (
            f"The start token {quality.bos_id} stands before each window ({_START[quality.bos]})"
        )
    if quality.protocol == "llama-perplexity":
        how = (
            f"Protocol llama-perplexity: chunks of {quality.window} tokens that do not overlap; "
            f"of each, the tokens from position {quality.score_from} on are scored."
        )
    else:
        how = (
            f"Protocol sliding: windows of {quality.window} tokens, each {quality.stride} beyond "
            f"the one before; every token with at least {quality.score_from} before it in its "
            "window is scored once."
        )
    own = quality.tokenizer.endswith(_OWN)
    by = "the model's own tokenizer" if own else quality.tokenizer
    return f"{how} {start}; tokenized by {by}."


def _extent(quality: QualityRecord, *, finished: bool) -> str:
    planned = counted(quality.windows_planned, "window")
    if not quality.windows:
        if finished:
            return f"Of {planned}, none was scored by any variant."
        return f"Planned: {planned}; none is complete so far."
    one = quality.windows == 1
    windows = f"{quality.windows} of {planned} {'was' if one else 'were'} "
    if not finished:
        windows += "to be scored by every variant; the run did not end"
    elif quality.windows < quality.windows_planned:
        windows += "scored: the time budget cut the rest, for every variant alike"
    else:
        windows += "scored"
    size = "" if quality.scored_bytes is None else f", {counted(quality.scored_bytes, 'byte')}"
    tokens = counted(quality.scored_tokens, "scored token")
    return f"{windows}. {'It holds' if one else 'They hold'} {tokens}{size}."


def _reference(quality: QualityRecord) -> Iterator[str]:
    reference = quality.reference
    if reference is None:
        if quality.no_reference and wants_reference(quality):
            yield f"There is no reference: {quality.no_reference.rstrip('.')}."
        return
    weights = (
        f" (what its {'/'.join(reference.lossy_types)} weights stand for)"
        if reference.lossy_types
        else ""
    )
    figures = " and ".join(_figures(quality, reference))
    yield (
        f"The reference is {reference.name}{weights}, run in float32 by numpy"
        f"{f': {figures}' if figures else ''}."
    )
    if "kl_divergence" in quality.metrics:
        yield _covered(reference)


def _figures(quality: QualityRecord, reference: QualityReference) -> Iterator[str]:
    """What the reference makes of the text, as far as anybody asked."""
    if "perplexity" in quality.metrics:
        yield (
            "a perplexity that no number holds"
            if reference.perplexity is None
            else f"perplexity {_written(reference.perplexity, PERPLEXITY)}"
        )
    if "bits_per_byte" in quality.metrics and reference.bits_per_byte is not None:
        yield f"{_written(reference.bits_per_byte, BITS_PER_BYTE)} bits per byte"


def _covered(reference: QualityReference) -> str:
    return (
        "KL divergence is exact over its likeliest tokens at each position, which hold "
        f"{percent(reference.covered)} of the probability, and estimated without bias over all "
        f"others, from samples of them: {counted(reference.candidates, 'token')} rated a position."
    )


def _written(value: float, scale: Scale) -> str:
    return scale.write(value, scale.decimals(value))
