"""How well each variant rates a text: a table for each workload of quality.

The perplexities of two workloads never stand in one column: text and protocol differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.model import Summary
from edgebench.reports.differences import differences, windows_by_variant
from edgebench.reports.format import BITS_PER_BYTE, CHANGE, SHARE
from edgebench.reports.quality_text import protocol_text, same_text_note, short_protocol_text
from edgebench.reports.table import Dress, TableTexts, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.differences import Differences
    from edgebench.reports.table import ComparisonTable

QUALITY_KEYS = (
    "perplexity",
    "perplexity_ratio",
    "bits_per_byte",
    "kl_divergence",
    "kl_divergence_p99",
    "top1_agreement",
)
"""The columns, in their order."""

INTRO = (
    "Every framework rates the same tokens at the same positions. The interval of a perplexity is "
    "that of the text: it says how far another text of the kind might be, and is much wider than "
    "what two variants differ by on this one. Whether two variants differ is told by their windows "
    "in pairs. Only perplexities are marked."
)

_ASKED = {"perplexity_ratio": "perplexity", "kl_divergence_p99": "kl_divergence"}
"""Columns that come with another one's metric."""

_TEXTS = TableTexts(
    how="over all windows, with the 95 % interval of resampled windows",
    marked="perplexities are the best, or this text can't tell them apart from it.",
    counted="",
)
_DRESSES = {
    "perplexity_ratio": Dress("Perplexity against the reference", "PPL vs ref.", CHANGE, "lower"),
    "bits_per_byte": Dress("Bits per byte", "bits/byte", replace(BITS_PER_BYTE, unit=""), "lower"),
    "top1_agreement": Dress("Top-1 agreement", "top-1", SHARE, "higher"),
}


@dataclass(frozen=True, slots=True)
class QualityView:
    """All variants on one text.

    Attributes:
        workload: its name.
        table: its figures.
        protocol: on what they were made, a sentence each.
        short: the same in one line.
        differences: the variants against each other; None where there are not two.
    """

    workload: str
    table: ComparisonTable
    protocol: tuple[str, ...]
    short: str
    differences: Differences | None


def quality_views(data: ReportData) -> tuple[QualityView, ...]:
    """One for each workload that rates a text."""
    return tuple(
        _view(data, workload, workload.quality)
        for workload in data.record.workloads
        if workload.quality
    )


def quality_summaries(
    data: ReportData, workload: str, quality: QualityRecord
) -> dict[str, dict[str, Summary | None]]:
    """The values by metric and variant; those of other windows than the others' are left out."""
    rated = _rated(data, workload, quality)
    found: dict[str, dict[str, Summary | None]] = {}
    for key in QUALITY_KEYS:
        if _ASKED.get(key, key) in quality.metrics:
            found[key] = {
                each: _summary(data.summary(workload, each, key), rated.get(each), key)
                for each in data.variant_ids
            }
    if quality.reference is None and not quality.no_reference:
        # Nobody asked for what needs one.
        values = found.get("perplexity_ratio", {}).values()
        if all(each is None or each.median is None for each in values):
            found.pop("perplexity_ratio", None)
    return found


def _view(data: ReportData, workload: WorkloadRecord, quality: QualityRecord) -> QualityView:
    summaries = quality_summaries(data, workload.name, quality)
    perplexities = _medians(summaries.get("perplexity", {}))
    windows = windows_by_variant(data.run.trials, workload.name, quality)
    found = differences(windows, perplexities)
    table = table_of(
        data,
        workload.name,
        summaries,
        best={"perplexity": found.marked} if found else {},
        dresses=_DRESSES,
        texts=_TEXTS,
        # Said of all variants alike, below the table.
        unremarked=("cut_by_budget",),
    )
    others = [each for each in data.record.workloads if each.name != workload.name]
    notes = (same_text_note(quality, other) for other in others)
    protocol = protocol_text(quality, finished=data.record.status == "finished")
    return QualityView(
        workload=workload.name,
        table=table,
        protocol=(*protocol, *(note for note in notes if note)),
        short=short_protocol_text(quality),
        differences=found,
    )


def _rated(data: ReportData, workload: str, quality: QualityRecord) -> dict[str, str]:
    """Variants whose values rest on other windows, with what that means, as a reason."""
    same = windows_by_variant(data.run.trials, workload, quality)
    wanted = len(next(iter(same.values()))) if same else quality.windows
    return {
        trial.variant: f"it rated other windows than the others ({len(trial.windows)} of {wanted})"
        for trial in data.run.trials
        if trial.workload == workload
        and trial.status == "ok"
        and trial.windows
        and trial.variant not in same
    }


def _summary(summary: Summary | None, other_windows: str | None, key: str) -> Summary | None:
    if summary is None or summary.median is None:
        return summary
    if other_windows:
        return Summary(
            median=None, n=0, unit=metric(key).unit, source=summary.source, reason=other_windows
        )
    if key == "kl_divergence_p99":
        # That a percentile has no interval needs no footnote in every row.
        return summary.model_copy(update={"reason": None})
    return summary


def _medians(summaries: Mapping[str, Summary | None]) -> dict[str, float]:
    return {
        variant: each.median
        for variant, each in summaries.items()
        if each is not None and each.median is not None
    }
