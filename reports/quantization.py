"""What each quantisation costs in quality, and what it gains in size, speed and bandwidth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgebench.harness.metrics import statistics
from edgebench.harness.results.model import Summary
from edgebench.reports.data import ratios_within_blocks
from edgebench.reports.differences import compared, windows_by_variant
from edgebench.reports.format import CHANGE, SHARE, Scale
from edgebench.reports.quality import quality_summaries
from edgebench.reports.table import Dress, TableTexts, table_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord, WorkloadRecord
    from edgebench.harness.results.quality import WindowRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.table import ComparisonTable

SIXTEEN_BITS = frozenset({"f16", "fp16", "q0f16", "bf16"})
THIRTY_TWO_BITS = frozenset({"f32", "fp32", "q0f32"})
SPEED = "decode_rate"

NO_BASELINE = "no variant of this run is in 16 or 32 bits, to compare with"
NOT_TOLD = "the runner does not tell how many bytes of weights a token reads"


@dataclass(frozen=True, slots=True)
class QuantizationTable:
    """All variants of a run by their formats.

    Attributes:
        quality: the workload that the perplexities are of.
        speed: the workload that the decode rates are of; empty where there is none.
        table: its figures; a row's `variant` is the format.
        notes: what it was compared with and how, a sentence each.
    """

    quality: str
    speed: str
    table: ComparisonTable
    notes: tuple[str, ...]


def quantization_table(data: ReportData) -> QuantizationTable | None:
    """The table; None where no text wants a perplexity or all variants have one format."""
    workload = main_quality(data)
    if workload is None or len({each.quantization for each in data.record.variants}) == 1:
        return None
    windows = _windows(data, workload)
    baseline = _baseline(data.record.variants, windows)
    names = format_names(data.record.variants)
    against = names[baseline.id] if baseline else ""
    by_windows = bool(baseline and baseline.id in windows)
    speed = speed_workload(data)
    summaries = _summaries(data, workload, windows, baseline, speed)
    table = table_of(
        data,
        workload.name,
        summaries,
        best={},
        dresses=_dresses(against=against, perplexity_against=against if by_windows else ""),
        texts=TableTexts(how=_how(workload.name, speed), counted="", rows="format"),
        # Said of all variants alike, below the table.
        unremarked=("cut_by_budget",),
    )
    rows = tuple(replace(row, variant=names[row.variant]) for row in table.rows)
    return QuantizationTable(
        quality=workload.name,
        speed=speed,
        table=replace(table, workload="Formats", rows=rows),
        notes=tuple(_notes(workload, speed, against, by_windows=by_windows)),
    )


def main_quality(data: ReportData) -> WorkloadRecord | None:
    """The first workload that has a perplexity; the first one that wants it if none has."""
    rated = [
        each
        for each in data.record.workloads
        if each.quality and "perplexity" in each.quality.metrics
    ]
    with_values = (each for each in rated if data.summaries(each.name, "perplexity"))
    return next(with_values, rated[0] if rated else None)


def speed_workload(data: ReportData) -> str:
    """The first workload with a decode rate; empty where there is none."""
    return next((each for each in data.workload_names if data.summaries(each, SPEED)), "")


def format_names(variants: Sequence[VariantRecord]) -> dict[str, str]:
    """Framework and quantisation of each variant; its id where several have the same."""
    short = {each.id: f"{each.framework or each.runner}: {each.quantization}" for each in variants}
    taken = Counter(short.values())
    return {each.id: short[each.id] if taken[short[each.id]] == 1 else each.id for each in variants}


def _baseline(
    variants: Sequence[VariantRecord], windows: Mapping[str, object]
) -> VariantRecord | None:
    """The first in 16 bits, else in 32; one that was rated before one that could not be."""
    candidates = [
        each
        for names in (SIXTEEN_BITS, THIRTY_TWO_BITS)
        for each in variants
        if each.quantization.lower() in names
    ]
    rated = (each for each in candidates if each.id in windows)
    return next(rated, candidates[0] if candidates else None)


def _windows(data: ReportData, workload: WorkloadRecord) -> dict[str, tuple[WindowRecord, ...]]:
    assert workload.quality is not None
    return windows_by_variant(data.run.trials, workload.name, workload.quality)


def _summaries(
    data: ReportData,
    workload: WorkloadRecord,
    windows: Mapping[str, tuple[WindowRecord, ...]],
    baseline: VariantRecord | None,
    speed: str,
) -> dict[str, dict[str, Summary | None]]:
    assert workload.quality is not None
    quality = quality_summaries(data, workload.name, workload.quality)
    nobody: dict[str, Summary | None] = dict.fromkeys(data.variant_ids)
    change = quality.get("perplexity_ratio", nobody)
    if baseline and baseline.id in windows:
        change = {
            each: _change(windows.get(each), windows[baseline.id], quality["perplexity"][each])
            for each in data.variant_ids
        }
    return {
        "model_bytes": {
            each: data.summary(workload.name, each, "model_bytes") for each in data.variant_ids
        },
        "bits_per_weight": {
            each: data.summary(workload.name, each, "bits_per_weight") for each in data.variant_ids
        },
        "perplexity": quality.get("perplexity", nobody),
        "perplexity_change": change,
        "relative_speed": {
            each: _relative_speed(data, speed, each, baseline) for each in data.variant_ids
        },
        "relative_read": {each: _relative_read(data, each, baseline) for each in data.variant_ids},
    }


def _change(
    own: tuple[WindowRecord, ...] | None,
    baseline: tuple[WindowRecord, ...],
    perplexity: Summary | None,
) -> Summary | None:
    if own is None or perplexity is None or perplexity.median is None:
        return perplexity
    found = compared(own, baseline)
    return Summary(
        median=found.ratio,
        ci_low=found.low,
        ci_high=found.high,
        n=found.windows,
        unit="1",
        source="derived",
        reason=found.reason,
    )


def _relative_speed(
    data: ReportData, speed: str, variant: str, baseline: VariantRecord | None
) -> Summary:
    if baseline is None:
        return _nothing(NO_BASELINE)
    if not speed:
        return _nothing("this run measured no decode rate")
    for each in (variant, baseline.id):
        own = data.summary(speed, each, SPEED)
        if own is None or own.median is None:
            failure = data.cell(speed, each).failure
            why = (own and own.reason) or (failure and failure.message) or "not measured"
            whose = "no decode rate" if each == variant else "the baseline has no decode rate"
            return _nothing(f"{whose}: {why}")
    if variant == baseline.id:
        return Summary(median=1.0, n=1, unit="1", source="derived")
    ratios = ratios_within_blocks(data.run.trials, speed, SPEED, variant, baseline.id)
    if not ratios:
        return _nothing("no block holds a decode rate of both it and the baseline")
    values, blocks = list(ratios.values()), list(ratios)
    interval = statistics.median_interval(values, blocks)
    return Summary(
        median=statistics.median(values),
        ci_low=interval.low,
        ci_high=interval.high,
        n=len(values),
        unit="1",
        source="derived",
        reason=interval.reason,
    )


def _relative_read(data: ReportData, variant: str, baseline: VariantRecord | None) -> Summary:
    if baseline is None:
        return _nothing(NO_BASELINE)
    own, whole = (
        data.by_variant[each].get("weight_bytes_per_token") for each in (variant, baseline.id)
    )
    if own is None or own.median is None:
        return _nothing(NOT_TOLD)
    if whole is None or not whole.median:
        return _nothing(f"of the baseline, {NOT_TOLD}")
    return Summary(median=own.median / whole.median, n=1, unit="1", source="derived")


def _nothing(reason: str) -> Summary:
    return Summary(median=None, n=0, unit="1", source="derived", reason=one_line(reason))


def _dresses(*, against: str, perplexity_against: str) -> dict[str, Dress]:
    whole = perplexity_against or "the reference"
    return {
        "bits_per_weight": Dress("Bits per weight", "bits/weight", Scale(""), "lower"),
        "perplexity_change": Dress(
            f"Perplexity against {whole}",
            "PPL vs base" if perplexity_against else "PPL vs ref.",
            CHANGE,
            "lower",
        ),
        "relative_speed": Dress(
            f"Decode rate / that of {against or 'a baseline'}",
            "speed",
            Scale("× base"),
            "higher",
        ),
        "relative_read": Dress(
            f"Weights read per token, of those of {against or 'a baseline'}",
            "bandwidth need",
            replace(SHARE, unit="% of base"),
            "lower",
        ),
    }


def _how(quality: str, speed: str) -> str:
    rated = f"perplexity on {one_line(quality)}"
    return f"{rated}, speed on {one_line(speed)}" if speed else rated


def _notes(
    workload: WorkloadRecord, speed: str, against: str, *, by_windows: bool
) -> Iterator[str]:
    name = one_line(workload.name)
    yield f"PPL is the perplexity on {name}."
    if against:
        yield f"The base is {one_line(against)}."
    else:
        yield "No variant is in 16 or 32 bits, so there is no base for speed and bandwidth."
    if by_windows:
        yield (
            "PPL against the base is over pairs of windows, and its interval too: much narrower "
            "than that of the perplexity, which is of the text."
        )
    else:
        yield "PPL is compared with that of the reference, over pairs of windows."
    if speed:
        yield (
            f"Speed is the decode rate on {one_line(speed)}, the median of the ratios within "
            "blocks."
        )
    yield (
        "Bandwidth need is the bytes of weights that decoding one token reads, of the base's: "
        "counted from the artifact, not measured, and without the KV cache."
    )
