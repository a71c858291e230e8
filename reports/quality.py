"""How well each variant rates a text: a table for each workload of quality.

The perplexities of two workloads never stand in one column: text and protocol differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.quality.cell import MEANINGLESS, windows_by_variant
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.results.cell import Summary
from edgebench.reports.differences import differences
from edgebench.reports.format import BITS_PER_BYTE, CHANGE, SHARE
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.quality_text import (
    protocol_text,
    same_text_note,
    short_protocol_text,
    wants_reference,
)
from edgebench.reports.table import table_of
from edgebench.reports.table_model import Dress, TableTexts
from edgebench.reports.tidy import measured_only, settled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sized

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.differences import Differences
    from edgebench.reports.table_model import Table

QUALITY_KEYS = (
    "perplexity",
    "perplexity_ratio",
    "bits_per_byte",
    "kl_divergence",
    "kl_divergence_p99",
    "top1_agreement",
)
"""The columns, in their order."""

INTRO = N_(
    "Every framework rates the same tokens at the same positions. The interval of a perplexity is "
    "that of the text: it says how far another text of the kind might be, and is much wider than "
    "what two variants differ by on this one. Whether two variants differ is told by their windows "
    "in pairs. Only perplexities are marked."
)

_ASKED = {"perplexity_ratio": "perplexity", "kl_divergence_p99": "kl_divergence"}
"""Columns that come with another one's metric."""

NO_RATINGS = N_("not all windows of the reference are in the record, which an interval needs")


@dataclass(frozen=True, slots=True)
class QualityView:
    """All variants on one text.

    Attributes:
        workload: its name.
        table: its figures.
        protocol: on what they were made, a sentence each.
        short: the same in one line.
        differences: the variants against each other; None where there are not two.
        few_windows: whether they are too few for any interval, so that nothing can be told of
            several variants.
    """

    workload: str
    table: Table
    protocol: tuple[str, ...]
    short: str
    differences: Differences | None
    few_windows: bool


def quality_views(data: ReportData) -> tuple[QualityView, ...]:
    """One for each workload that rates a text, or would have."""
    return tuple(
        _view(data, workload, workload.quality)
        if workload.quality
        else _unrated(data, workload.name)
        for workload in data.record.workloads
        if workload.quality or _is_left_out(data, workload)
    )


def not_rated(data: ReportData) -> str:
    """Why no text was rated, where that is so."""
    if any(_is_left_out(data, each) for each in data.record.workloads):
        return recorded(MEANINGLESS)
    return _("no text was rated")


def _is_left_out(data: ReportData, workload: WorkloadRecord) -> bool:
    """Whether nobody rated a text on purpose."""
    return workload.kind == "quality" and any(
        data.cell(workload.name, each).left_out for each in data.variant_ids
    )


def _unrated(data: ReportData, workload: str) -> QualityView:
    """A text that nobody rated on purpose: no values, and why."""
    keys = ("perplexity", "bits_per_byte")
    summaries = {
        key: {each: data.summary(workload, each, key) for each in data.variant_ids} for key in keys
    }
    table = table_of(
        data,
        workload,
        summaries,
        best={},
        dresses=dresses(),
        texts=TableTexts(how="", marked="", counted=""),
        kind="quality",
    )
    why = next((each.reason for each in summaries[keys[0]].values() if each and each.reason), "")
    return QualityView(
        workload=workload,
        table=settled(table),
        protocol=(),
        short=recorded(why),
        differences=None,
        few_windows=False,
    )


def quality_summaries(
    data: ReportData, workload: str, quality: QualityRecord
) -> dict[str, dict[str, Summary | None]]:
    """The values by metric and variant; those of other windows than the others' are left out."""
    windows = windows_by_variant(data.run.trials, workload, quality)
    usual = len(next(iter(windows.values()))) if windows else quality.windows
    others = _others(data, workload, windows, usual)
    covers_less = quality.reference is None or len(quality.reference.windows) < usual
    found: dict[str, dict[str, Summary | None]] = {}
    for key in QUALITY_KEYS:
        if _ASKED.get(key, key) not in quality.metrics:
            continue
        if key == "perplexity_ratio" and not wants_reference(quality):
            continue
        found[key] = {
            each: _summary(
                data.summary(workload, each, key),
                key,
                other_windows=others.get(each),
                covers_less=covers_less,
            )
            for each in data.variant_ids
        }
    return found


def too_few_windows(windows: Mapping[str, Sized], rated: Collection[str]) -> bool:
    """Whether several variants have a perplexity, and none can have an interval."""
    return len(rated) > 1 and 0 < max(map(len, windows.values()), default=0) < MIN_WINDOWS


def _view(data: ReportData, workload: WorkloadRecord, quality: QualityRecord) -> QualityView:
    summaries = quality_summaries(data, workload.name, quality)
    perplexities = _medians(summaries.get("perplexity", {}))
    windows = windows_by_variant(data.run.trials, workload.name, quality)
    found = differences(windows, perplexities)
    table = table_of(
        data,
        workload.name,
        measured_only(summaries),
        best={"perplexity": found.marked} if found else {},
        dresses=dresses(),
        texts=TableTexts(
            how=_("over all windows, with the 95 % interval of resampled windows"),
            marked=_("perplexities are the best, or this text can't tell them apart from it."),
            counted="",
        ),
        # Said of all variants alike, below the table.
        unremarked=("cut_by_budget",),
        reasons_once=True,
        kind="quality",
    )
    others = [each for each in data.record.workloads if each.name != workload.name]
    notes = (same_text_note(quality, other) for other in others)
    protocol = protocol_text(quality, finished=data.record.status == "finished")
    return QualityView(
        workload=workload.name,
        table=settled(table),
        protocol=(*protocol, *(note for note in notes if note)),
        short=short_protocol_text(quality),
        differences=found,
        few_windows=too_few_windows(windows, perplexities),
    )


def dresses() -> dict[str, Dress]:
    """How metrics of quality look wherever they are shown, where not as their keys say."""
    return {
        "perplexity_ratio": Dress(
            _("Perplexity against the reference"), _("PPL vs ref."), CHANGE, "lower"
        ),
        "bits_per_byte": Dress(
            _("Bits per byte"), _("bits/byte"), replace(BITS_PER_BYTE, unit=""), "lower"
        ),
        "top1_agreement": Dress(_("Top-1 agreement"), _("top-1"), SHARE, "higher"),
    }


def _others(data: ReportData, workload: str, same: Collection[str], usual: int) -> dict[str, str]:
    """Variants whose values rest on other windows, with what that means, as a reason."""
    return {
        trial.variant: _(
            "it rated other windows than the others ({count} of {usual})",
            count=len(trial.windows),
            usual=usual,
        )
        for trial in data.run.trials
        if trial.workload == workload
        and trial.status == "ok"
        and trial.windows
        and trial.variant not in same
    }


def _summary(
    summary: Summary | None, key: str, *, other_windows: str | None, covers_less: bool
) -> Summary | None:
    if summary is None or summary.median is None:
        return summary
    if other_windows:
        return Summary(
            median=None, n=0, unit=metric(key).unit, source=summary.source, reason=other_windows
        )
    if key == "perplexity_ratio" and summary.ci_low is None and covers_less:
        # A run that was interrupted: the ratio is of the trial, its interval needs the record.
        return summary.model_copy(update={"reason": _(NO_RATINGS)})
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
