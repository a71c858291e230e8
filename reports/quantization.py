"""What each quantisation costs in quality, and what it gains in size, speed and bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgebench.harness.quality.cell import windows_by_variant
from edgebench.harness.results.cell import Summary
from edgebench.reports.broken import broken_text
from edgebench.reports.data import ratio_summary, ratios_within_blocks
from edgebench.reports.differences import change_of, compared
from edgebench.reports.format import CHANGE, SHARE, Scale
from edgebench.reports.formats import base_of, format_names, is_whole, without_reference
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import paragraph
from edgebench.reports.quality import quality_summaries
from edgebench.reports.sentences import listed, plain
from edgebench.reports.table import table_of
from edgebench.reports.table_model import Dress, TableTexts
from edgebench.reports.text import one_line
from edgebench.reports.tidy import measured_only, settled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord, WorkloadRecord
    from edgebench.harness.results.quality import WindowRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.table_model import Table

OF_BASE = ("perplexity_change", "relative_speed", "relative_read")
"""Columns in which the base is compared with itself."""

SPEED = "decode_rate"
MEMORY = "peak_rss_bytes"

NO_BASELINE = N_("no variant of this run is in 16 or 32 bits, to compare with")
NOT_TOLD = N_("the runner does not tell how many bytes of weights a token reads")

_BASE = N_(
    "PPL against the base is over pairs of windows, and its interval too: much narrower than that "
    "of the perplexity, which is of the text."
)
_REFERENCE = N_("PPL is compared with that of the reference, over pairs of windows.")


@dataclass(frozen=True, slots=True)
class QuantizationTable:
    """All variants of a run by their formats.

    Attributes:
        quality: the workload that the perplexities are of.
        speed: the workload that the decode rates are of; empty where there is none.
        table: its figures; a row's `variant` is the format.
        notes: what it was compared with and how, a sentence each.
        short: the same in one sentence or two, for where there is no room for more.
    """

    quality: str
    speed: str
    table: Table
    notes: tuple[str, ...]
    short: str


def quantization_table(data: ReportData) -> QuantizationTable | None:
    """The table; None where no text wants a perplexity or all variants have one format."""
    workload = main_quality(data)
    if workload is None or len({each.quantization for each in data.record.variants}) == 1:
        return None
    windows = _windows(data, workload)
    baseline = base_of(data.record.variants, windows, alone=without_reference(workload))
    names = format_names(data.record.variants)
    against = names[baseline.id] if baseline else ""
    by_windows = bool(baseline and baseline.id in windows)
    speed = speed_workload(data)
    summaries = measured_only(
        _summaries(data, workload, windows, baseline, speed),
        dict.fromkeys(OF_BASE, baseline.id) if baseline else {},
    )
    changes = _(_BASE if by_windows else _REFERENCE) if "perplexity_change" in summaries else ""
    table = table_of(
        data,
        workload.name,
        summaries,
        best={},
        dresses=_dresses(against=against, perplexity_against=against if by_windows else ""),
        texts=TableTexts(
            how=_how(workload.name, speed if "relative_speed" in summaries else ""),
            counted="",
            rows=_("format"),
        ),
        # Said of all variants alike, below the table.
        unremarked=("cut_by_budget",),
        order=_largest_first(data, workload.name),
        reasons_once=True,
        kind="formats",
    )
    rows = tuple(replace(row, variant=names[row.variant]) for row in table.rows)
    return QuantizationTable(
        quality=workload.name,
        speed=speed,
        table=settled(replace(table, workload=_("Formats"), rows=rows)),
        notes=tuple(_notes(workload, speed, baseline, against, set(summaries), changes)),
        short=_short(workload, speed, against, set(summaries)),
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


def _largest_first(data: ReportData, workload: str) -> list[str]:
    sizes = {each: data.summary(workload, each, "model_bytes") for each in data.variant_ids}
    known = {each: size.median or 0.0 for each, size in sizes.items() if size}
    return sorted(data.variant_ids, key=lambda each: -known.get(each, 0.0))


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
    change = quality.get("perplexity_ratio")
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
        **({"perplexity_change": change} if change is not None else {}),
        **{
            key: {each: found and _plain(found) for each, found in quality[key].items()}
            for key in ("kl_divergence", "top1_agreement")
            if key in quality
        },
        "relative_speed": {
            each: _relative_speed(data, speed, each, baseline) for each in data.variant_ids
        },
        MEMORY: {each: _memory(data, speed, each) for each in data.variant_ids},
        "relative_read": {each: _relative_read(data, each, baseline) for each in data.variant_ids},
    }


def _change(
    own: tuple[WindowRecord, ...] | None,
    baseline: tuple[WindowRecord, ...],
    perplexity: Summary | None,
) -> Summary | None:
    if own is None or perplexity is None or perplexity.median is None:
        return perplexity
    return change_of(compared(own, baseline))


def _relative_speed(
    data: ReportData, speed: str, variant: str, baseline: VariantRecord | None
) -> Summary:
    if baseline is None or (missing := _no_speed(data, speed, variant, baseline)):
        failed = _failed(data, variant, [speed]) if speed else ""
        return _nothing(failed or (_(NO_BASELINE) if baseline is None else missing))
    if variant == baseline.id:
        return Summary(median=1.0, n=1, unit="1", source="derived")
    ratios = ratios_within_blocks(data.run.trials, speed, SPEED, variant, baseline.id)
    if not ratios:
        return _nothing(_("no block holds a decode rate of both it and the baseline"))
    return ratio_summary(ratios)


def _no_speed(data: ReportData, speed: str, variant: str, baseline: VariantRecord) -> str:
    """Why the decode rates of the two can't be compared; empty where they can."""
    if not speed:
        return _("this run measured no decode rate")
    for each in (variant, baseline.id):
        own = data.summary(speed, each, SPEED)
        if data.is_broken(speed, each):
            return broken_text()
        if own is None or own.median is None:
            why = recorded((own and own.reason) or "") or _failed(data, each, [speed])
            why = why or _("not measured")
            if each == variant:
                return _("no decode rate: {reason}", reason=why)
            return _("the baseline has no decode rate: {reason}", reason=why)
    return ""


def _memory(data: ReportData, speed: str, variant: str) -> Summary:
    found = data.summary(speed, variant, MEMORY) if speed else None
    if found is not None and found.median is not None:
        return _plain(found)
    why = recorded((found and found.reason) or "") or (speed and _failed(data, variant, [speed]))
    return _nothing(why or _("not measured"))


def _plain(summary: Summary) -> Summary:
    """A value whose interval stands in another table: there is no room for it here."""
    if summary.median is None:
        return summary
    return summary.model_copy(update={"ci_low": None, "ci_high": None, "reason": None})


def _relative_read(data: ReportData, variant: str, baseline: VariantRecord | None) -> Summary:
    # The runner tells when it has loaded a model: one that failed throughout had no chance to.
    everywhere = [each.name for each in data.record.workloads]
    own, whole = (
        data.by_variant[each].get("weight_bytes_per_token") if each else None
        for each in (variant, baseline and baseline.id)
    )
    if own is None or own.median is None:
        return _nothing(_failed(data, variant, everywhere) or _(NOT_TOLD))
    if baseline is None:
        return _nothing(_(NO_BASELINE))
    if whole is None or not whole.median:
        why = _failed(data, baseline.id, everywhere) or _(NOT_TOLD)
        return _nothing(_("of the baseline, {reason}", reason=why))
    return Summary(median=own.median / whole.median, n=1, unit="1", source="derived")


def _failed(data: ReportData, variant: str, workloads: Sequence[str]) -> str:
    """How a variant failed; empty where it made something of any of these workloads."""
    cells = [data.cell(each, variant) for each in workloads]
    if any(cell.n for cell in cells):
        return ""
    messages = (recorded(cell.failure.message) for cell in cells if cell.failure)
    return next((_("failed: {message}", message=each) for each in messages), "")


def _nothing(reason: str) -> Summary:
    return Summary(median=None, n=0, unit="1", source="derived", reason=one_line(reason))


def _dresses(*, against: str, perplexity_against: str) -> dict[str, Dress]:
    base = against or _("a baseline")
    return {
        "bits_per_weight": Dress(_("Bits per weight"), _("bits/weight"), Scale(""), "lower"),
        "perplexity_change": Dress(
            _("Perplexity against {base}", base=perplexity_against or _("the reference")),
            _("PPL vs base") if perplexity_against else _("PPL vs ref."),
            CHANGE,
            "lower",
        ),
        "relative_speed": Dress(
            _("Decode rate / that of {base}", base=base), _("speed"), Scale(_("× base")), "higher"
        ),
        "relative_read": Dress(
            _("Weights read per token, of those of {base}", base=base),
            _("bandwidth need"),
            replace(SHARE, unit=_("% of base")),
            "lower",
        ),
        "top1_agreement": Dress(_("Top-1 agreement"), _("top-1"), SHARE, "higher"),
    }


def _how(quality: str, speed: str) -> str:
    if not speed:
        return _("perplexity on {text}", text=one_line(quality))
    return _(
        "perplexity on {text}, speed on {workload}",
        text=one_line(quality),
        workload=one_line(speed),
    )


def _short(workload: WorkloadRecord, speed: str, against: str, columns: Collection[str]) -> str:
    text = one_line(workload.name)
    on = (
        _("PPL on {text}, speed on {workload}.", text=text, workload=one_line(speed))
        if "relative_speed" in columns
        else _("PPL on {text}.", text=text)
    )
    return paragraph((_("Base: {base}.", base=one_line(against)), on)) if against else on


def _notes(
    workload: WorkloadRecord,
    speed: str,
    baseline: VariantRecord | None,
    against: str,
    columns: Collection[str],
    changes: str,
) -> Iterator[str]:
    yield _("PPL is the perplexity on {text}.", text=one_line(workload.name))
    if baseline is None:
        yield _("No variant is in 16 or 32 bits, so there is no base for speed and bandwidth.")
    elif is_whole(baseline):
        yield _("The base is {base}.", base=one_line(against))
    else:
        yield _(
            "No variant is in 16 or 32 bits: the base is the one with the most bits per weight, "
            "{base}.",
            base=one_line(against),
        )
    if changes:
        yield changes
    if "relative_speed" in columns:
        yield _(
            "Speed is the decode rate on {workload}, the median of the ratios within blocks.",
            workload=one_line(speed),
        )
    if MEMORY in columns:
        yield _("Peak memory is that of generating on {workload}.", workload=one_line(speed))
    elsewhere = [
        name
        for key, name in (
            ("kl_divergence", _("KL")),
            ("top1_agreement", _("top-1 agreement")),
            (MEMORY, _("peak memory")),
        )
        if key in columns
    ]
    if elsewhere:
        yield _("Intervals of {figures}: see the tables above.", figures=plain(listed(elsewhere)))
    if "relative_read" in columns:
        yield _(
            "Bandwidth need is the bytes of weights that decoding one token reads, of the base's: "
            "counted from the artifact, not measured, and without the KV cache."
        )
