"""What a rated text was and how it was rated, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import BITS_PER_BYTE, CHANGE, PERPLEXITY, percent, quantity, shown
from edgebench.reports.sentences import Name, Sentence
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import Summary, WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, QualityReference
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale

HASH_DIGITS = 12
CLOSE = 1.01
"""A perplexity is close to the reference's up to so many times it."""

_START = {
    "model": "as the model's own tokenizer does it",
    "always": "as the scenario asks",
    "never": "as the scenario asks",
}


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
    windows = f"{quality.windows} of {quality.windows_planned} windows of {quality.window} tokens"
    reference = (
        f"; perplexity of the reference {_written(quality.reference.perplexity, PERPLEXITY)}"
        if quality.reference
        else ""
    )
    return one_line(
        f"{quality.text}, sha256 {quality.text_sha256[:HASH_DIGITS]}, {quality.protocol}, "
        f"{windows}{reference}"
    )


def same_text_note(quality: QualityRecord, other: WorkloadRecord) -> str:
    """That another workload rates the same text otherwise; empty where none does."""
    theirs = other.quality
    if theirs is None or theirs.text_sha256 != quality.text_sha256 or theirs.key == quality.key:
        return ""
    return (
        f"{one_line(other.name)} rates the same text by another protocol: its perplexities do not "
        "compare with these."
    )


def quality_answer(data: ReportData, workload: str) -> Sentence:
    """The smallest variant that is about as good as the reference, or what can be said instead.

    Empty where nobody asked for the perplexity.
    """
    record = next(each for each in data.record.workloads if each.name == workload)
    if record.quality is None or "perplexity" not in record.quality.metrics:
        return ()
    ratios = data.summaries(workload, "perplexity_ratio")
    if not ratios:
        return _no_answer(data, record)
    medians = {each: summary.median or 0.0 for each, summary in ratios.items()}
    close = [each for each, ratio in medians.items() if ratio <= CLOSE]
    if not close:
        closest = min(medians, key=medians.__getitem__)
        return (
            f"No variant's perplexity is within {percent(CLOSE - 1)} of the reference's. Closest: ",
            Name(closest),
            f", {_change(ratios[closest])}.",
        )
    sizes = {
        each: size.median
        for each in close
        if (size := data.summary(workload, each, "model_bytes")) and size.median is not None
    }
    if not sizes:
        return (f"{len(close)} of {len(medians)} perplexities are close to the reference's.",)
    smallest = min(sizes, key=lambda each: (sizes[each], medians[each]))
    high = ratios[smallest].ci_high
    unsure = (
        "; too few windows for an interval"
        if high is None
        else f"; its interval goes beyond {percent(CLOSE - 1)}"
        if high > CLOSE
        else ""
    )
    return (
        Name(smallest),
        f" is the smallest ({quantity(sizes[smallest], 'byte')})",
        f" whose perplexity is at most {percent(CLOSE - 1)} above the reference's: ",
        f"{_change(ratios[smallest])}{unsure}.",
    )


def _no_answer(data: ReportData, record: WorkloadRecord) -> Sentence:
    if record.quality is not None and record.quality.no_reference:
        why = record.quality.no_reference.rstrip(".")
        return (f"No perplexity could be compared with a reference: {one_line(why)}.",)
    if data.summaries(record.name, "perplexity"):
        return ("No perplexity was compared with a reference.",)
    return ("No perplexity was measured.",)


def _change(ratio: Summary) -> str:
    """A ratio as a change: ``+0.42 % [+0.31, +0.55]``."""
    text = shown(ratio, CHANGE)
    return f"{text.value} % {text.interval}".rstrip()


def _text(quality: QualityRecord) -> str:
    origin = f" ({quality.text_origin.rstrip('.')})" if quality.text_origin else ""
    return (
        f"The text is {quality.text}{origin}: {_count(quality.text_bytes)} bytes, sha256 "
        f"{quality.text_sha256[:HASH_DIGITS]} (its first {HASH_DIGITS} digits)."
    )


def _protocol(quality: QualityRecord) -> str:
    if quality.bos_id is None:
        start = f"No start token stands before a window ({_START[quality.bos]})"
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
    return f"{how} {start}; the ids are by {quality.tokenizer}."


def _extent(quality: QualityRecord, *, finished: bool) -> str:
    if not quality.windows:
        return f"{quality.windows_planned} windows are planned; none is complete so far."
    windows = f"{quality.windows} of {quality.windows_planned} windows were scored"
    if quality.windows < quality.windows_planned:
        windows += (
            ": the time budget cut the rest, for every variant alike" if finished else " so far"
        )
    size = "" if quality.scored_bytes is None else f", {_count(quality.scored_bytes)} bytes"
    return f"{windows}. They hold {_count(quality.scored_tokens)} scored tokens{size}."


def _reference(quality: QualityRecord) -> Iterator[str]:
    reference = quality.reference
    if reference is None:
        if quality.no_reference:
            yield f"There is no reference: {quality.no_reference.rstrip('.')}."
        return
    weights = (
        f" (what its {'/'.join(reference.lossy_types)} weights stand for)"
        if reference.lossy_types
        else ""
    )
    bits = (
        ""
        if reference.bits_per_byte is None
        else f" and {_written(reference.bits_per_byte, BITS_PER_BYTE)} bits per byte"
    )
    yield (
        f"The reference is {reference.name}{weights}, run in float32 by numpy: perplexity "
        f"{_written(reference.perplexity, PERPLEXITY)}{bits}."
    )
    yield _covered(reference)


def _covered(reference: QualityReference) -> str:
    return (
        "KL divergence is exact over its likeliest tokens at each position, which hold "
        f"{percent(reference.covered)} of the probability, and estimated without bias over all "
        f"others, from samples of them; {quantity(reference.candidates, '1')} tokens are rated a "
        "position."
    )


def _written(value: float, scale: Scale) -> str:
    return scale.write(value, scale.decimals(value))


def _count(value: int) -> str:
    return quantity(value, "1")
