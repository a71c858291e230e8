"""Every figure of the run, in full: what the comparison leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import METRICS
from edgebench.reports.format import NOT_MEASURED, decimals_for, number, percent, scale_of, shown
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.metric_names import metric_label
from edgebench.reports.quality import dresses, quality_summaries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.cell import Summary
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale


@dataclass(frozen=True, slots=True)
class Detail:
    """One metric of one variant on one workload, all of it as text.

    Attributes:
        key: the metric's key.
        metric: its name for people.
        variant: the variant's id.
        median, interval, least, most, variation: of its values, in `unit`.
        unit: the unit that they are shown in.
        scale: the same, to show more values in.
        repetitions: how many values: of repetitions, or of the windows of a text.
        source: who said them; empty without a median.
        reason: why there is no median, or no interval.
        sort: the median as stored, to sort by, or None.
    """

    key: str
    metric: str
    variant: str
    median: str
    unit: str
    scale: Scale
    interval: str
    least: str
    most: str
    variation: str
    repetitions: int
    source: str
    reason: str
    sort: float | None


def details(data: ReportData, workload: str) -> tuple[Detail, ...]:
    """Every metric of every variant on a workload, metric by metric.

    What a text's own table shows is the same here: unit, digits, and what is left out.
    """
    known = [key for key in METRICS if key in data.metric_keys]
    keys = [*known, *sorted(data.metric_keys - set(known))]
    rated = _rated(data, workload)
    scales = {key: each.scale for key, each in dresses().items()} if rated else {}
    rows: list[Detail] = []
    for key in keys:
        found = rated.get(key) or {
            each: data.summary(workload, each, key) for each in data.variant_ids
        }
        present = [each for each in found.values() if each is not None]
        if not present:
            continue
        scale = scales.get(key) or scale_of(key, present[0].unit, [each.median for each in present])
        rows += [
            _detail(key, variant, summary, scale)
            for variant, summary in found.items()
            if summary is not None
        ]
    return tuple(rows)


def _rated(data: ReportData, workload: str) -> Mapping[str, Mapping[str, Summary | None]]:
    """The figures of a rated text by metric and variant; none of any other workload."""
    quality = next(each.quality for each in data.record.workloads if each.name == workload)
    return quality_summaries(data, workload, quality) if quality else {}


def _detail(key: str, variant: str, summary: Summary, scale: Scale) -> Detail:
    text = shown(summary, scale)
    return Detail(
        key=key,
        metric=metric_label(key),
        variant=variant,
        median=text.value,
        unit=scale.unit,
        scale=scale,
        interval=text.interval,
        least=_plain(summary.min, scale),
        most=_plain(summary.max, scale),
        variation="" if summary.cv is None else percent(summary.cv),
        repetitions=summary.n,
        source=_(summary.source) if summary.median is not None else "",
        reason=recorded(summary.reason or ""),
        sort=summary.median,
    )


def _plain(value: float | None, scale: Scale) -> str:
    if value is None:
        return NOT_MEASURED
    scaled = scale.of(value)
    return number(scaled, decimals_for(scaled))
