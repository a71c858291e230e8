"""What variants are chosen by, and where each of them stands in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.metrics.statistics import MIN_BLOCKS
from edgebench.harness.quality.cell import windows_by_variant
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.results.cell import Summary
from edgebench.harness.scenario.requirements import OBJECTIVES
from edgebench.reports.broken import broken_text
from edgebench.reports.format import CHANGE, scale_of, shown
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.metered import why_apart
from edgebench.reports.quality import not_rated, quality_summaries
from edgebench.reports.quantization import main_quality
from edgebench.reports.selection.last import Last
from edgebench.reports.selection.samples import (
    Samples,
    interval,
    resampled_log_perplexities,
    samples_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.quality import WindowRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.selection.samples import Floats

QUALITY: Final = "quality"
PROMPT_GOALS: Final = tuple(each for each in OBJECTIVES if each != QUALITY)
"""Those that are measured on prompts; they are keys of metrics."""

GOAL_NAMES: Final = {
    "decode_rate": N_("decode rate"),
    "ttft_s": N_("time to first token"),
    "peak_rss_bytes": N_("peak memory"),
    QUALITY: N_("perplexity"),
    "energy_per_token_j": N_("energy per token"),
}
"""What the goals are called inside a sentence."""


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a variant stands in one goal.

    Attributes:
        summary: of one workload, as measured there; of several the geometric mean of medians. Its
            median is above 0, or None with the reason.
        drawn: its natural logarithm under each resampling, up to what all variants have in
            common; None where there are too few blocks or windows.
    """

    summary: Summary
    drawn: Floats | None

    @property
    def known(self) -> bool:
        """Whether it has a value."""
        return self.summary.median is not None

    @property
    def value(self) -> float:
        """The value; only where it is known."""
        assert self.summary.median is not None
        return self.summary.median


@dataclass(frozen=True, slots=True)
class Stands:
    """Where all variants stand.

    Attributes:
        workloads: the prompts that count: those that every run of the report has.
        text: the workload that quality is of; empty where there is none.
        against_reference: whether quality is the perplexity against the reference's; else it is
            the perplexity itself.
        windows: of that text, by variant.
        samples: of the prompts.
        by_goal: by goal and variant.
        apart: by goal whose values do not compare, such as energies of two meters, why; nobody has
            a value of it then.
    """

    workloads: tuple[str, ...]
    text: str
    against_reference: bool
    windows: Mapping[str, Sequence[WindowRecord]]
    samples: Samples
    by_goal: Mapping[str, Mapping[str, Stand]]
    apart: Mapping[str, str]

    def scale(self, goal: str, values: Sequence[float]) -> Scale:
        """The unit in which values of a goal are shown."""
        if goal == QUALITY and self.against_reference:
            return CHANGE
        key = metric_of(goal)
        return scale_of(key, metric(key).unit, values)

    def written(self, goal: str, variant: str) -> str:
        """The value of a variant with its unit and interval; only where it is known."""
        stand = self.by_goal[goal][variant]
        return written(stand.summary, self.scale(goal, [stand.value]))

    @property
    def where(self) -> str:
        """What the values of the prompts are of, for brackets behind one."""
        if len(self.workloads) == 1:
            return self.workloads[0]
        return _("geometric mean over {count} workloads", count=len(self.workloads))


_LAST: Final[Last[Stands]] = Last()


def metric_of(goal: str) -> str:
    """The key of the metric that a goal is told by."""
    return "perplexity" if goal == QUALITY else goal


def is_higher_better(goal: str) -> bool:
    """Whether more of it is better."""
    return metric(metric_of(goal)).better == "higher"


def written(summary: Summary, scale: Scale) -> str:
    """A value with its unit and its interval; of an estimate, that it is one."""
    text = shown(summary, scale)
    value = f"{text.value}{scale.suffix} {text.interval}".rstrip()
    return with_source(value, summary)


def with_source(text: str, summary: Summary) -> str:
    """A value in words; of an estimate, that it is one."""
    return _("{value}, estimated", value=text) if summary.source == "estimated" else text


def stands_of(data: ReportData) -> Stands:
    """Where each variant stands in each goal."""
    return _LAST.get(data, None, lambda: _stands(data))


def _stands(data: ReportData) -> Stands:
    workloads = common_workloads(data)
    apart: dict[str, str] = {goal: why for goal in PROMPT_GOALS if (why := why_apart(data, goal))}
    samples = samples_of(data, frozenset(PROMPT_GOALS))
    by_goal: dict[str, Mapping[str, Stand]] = {
        goal: {
            each: _nothing(metric(goal).unit, apart[goal])
            if goal in apart
            else _prompts(data, samples, workloads, each, goal)
            for each in data.variant_ids
        }
        for goal in PROMPT_GOALS
    }
    text, against_reference, windows, by_goal[QUALITY] = _quality(data)
    ordered: dict[str, Mapping[str, Stand]] = {goal: by_goal[goal] for goal in OBJECTIVES}
    return Stands(workloads, text, against_reference, windows, samples, ordered, apart)


def common_workloads(data: ReportData) -> tuple[str, ...]:
    """The prompts that every run of the report came to; all where there is none such."""
    return shared_workloads(data) or data.workload_names


def shared_workloads(data: ReportData) -> tuple[str, ...]:
    """The prompts that every run of the report came to."""
    return tuple(
        workload
        for workload in data.workload_names
        if all(
            any(data.cell(workload, each).status != "not_run" for each in part.variants)
            for part in data.parts
            if part.variants
        )
    )


def _prompts(
    data: ReportData, samples: Samples, workloads: Sequence[str], variant: str, goal: str
) -> Stand:
    unit = metric(goal).unit
    summaries = [(each, data.summary(each, variant, goal)) for each in workloads]
    values = []
    for workload, summary in summaries:
        if data.is_broken(workload, variant):
            return _nothing(unit, broken_text())
        if summary is None or summary.median is None:
            why = summary and summary.reason
            return _nothing(unit, recorded(why) if why else absent(data, workload, variant))
        if summary.median <= 0:
            reason = _("on {workload} it is 0, which can't be compared", workload=workload)
            return _nothing(unit, reason)
        values.append(summary)
    if not values:
        return _nothing(unit, _("no workload asks for it"))
    drawn = [samples.drawn(each, variant, goal) for each in workloads]
    blocks = samples.count(workloads, variant, goal)
    logs = [np.log(each) for each in drawn if each is not None and each.min() > 0]
    together = (
        np.mean(logs, axis=0) if len(logs) == len(workloads) and blocks >= MIN_BLOCKS else None
    )
    if len(values) == 1:
        return Stand(values[0], together)
    low, high = interval(np.exp(together)) if together is not None else (None, None)
    medians = [each.median for each in values if each.median]
    return Stand(
        Summary(
            median=math.exp(sum(map(math.log, medians)) / len(medians)),
            ci_low=low,
            ci_high=high,
            n=min(each.n for each in values),
            unit=unit,
            source="estimated"
            if any(each.source == "estimated" for each in values)
            else values[0].source,
            reason=None
            if together is not None
            else next((each.reason for each in values if each.reason), None),
        ),
        together,
    )


def absent(data: ReportData, workload: str, variant: str) -> str:
    """Why a cell has no value of a metric of which it says nothing."""
    cell = data.cell(workload, variant)
    if cell.failure is not None and not cell.n:
        message = recorded(cell.failure.message)
        return _("it failed on {workload}: {message}", workload=workload, message=message)
    if cell.status == "not_run":
        return _("it was not run on {workload}", workload=workload)
    return _("not collected in this run")


def _nothing(unit: str, reason: str) -> Stand:
    return Stand(Summary(median=None, n=0, unit=unit, source="derived", reason=reason), None)


def _quality(
    data: ReportData,
) -> tuple[str, bool, Mapping[str, Sequence[WindowRecord]], Mapping[str, Stand]]:
    workload = main_quality(data)
    if workload is None or workload.quality is None:
        nobody = {each: _nothing("1", not_rated(data)) for each in data.variant_ids}
        return "", False, {}, nobody
    windows = windows_by_variant(data.run.trials, workload.name, workload.quality)
    found = quality_summaries(data, workload.name, workload.quality)
    perplexities = found.get("perplexity", {})
    ratios = found.get("perplexity_ratio", {})
    rated = [each for each in data.variant_ids if _has(perplexities.get(each)) and each in windows]
    against = bool(rated) and all(_has(ratios.get(each)) for each in rated)
    enough = bool(rated) and len(windows[rated[0]]) >= MIN_WINDOWS
    logs = resampled_log_perplexities([windows[each] for each in rated]) if enough else None
    stands = {}
    for each in data.variant_ids:
        summary = (ratios if against else perplexities).get(each)
        if each in rated and summary is not None:
            stands[each] = Stand(summary, None if logs is None else logs[rated.index(each)])
        else:
            own = perplexities.get(each)
            why = own and own.reason
            stands[each] = _nothing(
                "1", recorded(why) if why else absent(data, workload.name, each)
            )
    return workload.name, against, windows, stands


def _has(summary: Summary | None) -> bool:
    return summary is not None and summary.median is not None and summary.median > 0
