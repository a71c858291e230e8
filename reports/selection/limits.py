"""What a user can't do without: whether each variant meets it, as far as is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.broken import broken_text
from edgebench.reports.colours import framework_key
from edgebench.reports.format import CHANGE, percent, quantity, scale_of
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import unstopped
from edgebench.reports.quality import not_rated, quality_summaries
from edgebench.reports.quantization import main_quality
from edgebench.reports.selection.abilities import CAPABILITIES, capability_checks
from edgebench.reports.selection.check import FAILING, WORST_FIRST, Check
from edgebench.reports.selection.goals import QUALITY, absent, written
from edgebench.reports.selection.view import Figures
from edgebench.reports.sentences import Name, fill, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.model import MachineRecord, VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.check import State

_WITHIN_MEMORY: Final = (
    N_("Peak memory is {value} on {workload}, within the limit of {limit}."),
    N_("Whether peak memory is within the limit of {limit} is not known: {reason}."),
)

_MEASURED: Final = {
    "max_memory_bytes": (
        N_("Peak memory is {value} on {workload}, above the limit of {limit}."),
        *_WITHIN_MEMORY,
    ),
    "machine_memory": (
        N_("Peak memory is {value} on {workload}, above the machine's memory of {limit}."),
        *_WITHIN_MEMORY,
    ),
    "min_decode_rate": (
        N_("It decodes {value} on {workload}, below the need of {limit}."),
        N_("It decodes {value} on {workload}, at least the need of {limit}."),
        N_("Whether it decodes at least {limit} is not known: {reason}."),
    ),
    "max_ttft_s": (
        N_("The first token takes {value} on {workload}, longer than the limit of {limit}."),
        N_("The first token takes {value} on {workload}, within the limit of {limit}."),
        N_("Whether the first token comes within the limit of {limit} is not known: {reason}."),
    ),
    "max_quality_loss": (
        N_(
            "Perplexity is {value} against the reference on {workload}, above the limit of {limit}."
        ),
        N_(
            "Perplexity is {value} against the reference on {workload}, within the limit of "
            "{limit}."
        ),
        N_(
            "Whether perplexity is within the limit of {limit} above the reference's is not known: "
            "{reason}."
        ),
    ),
}
"""By limit: what is said where it fails, where it is met, and where that is not known."""

_BY_MEDIAN = N_("The interval holds the limit: that is not beyond doubt.")
_NO_INTERVAL = N_("There are too few repetitions for an interval: that is not beyond doubt.")


def checks(
    data: ReportData,
    variant: VariantRecord,
    requirements: Requirements,
    workloads: Sequence[str],
) -> tuple[Check, ...]:
    """All limits of the user's, and the memory of the machine where no other limit is given."""
    return (
        *_measured(data, variant.id, requirements, workloads),
        *capability_checks(
            variant.runner,
            requirements,
            framework=framework_key(variant),
            machine=_ran_on(data, variant.id),
        ),
    )


def _ran_on(data: ReportData, variant: str) -> MachineRecord | None:
    """The machine that a variant ran on; None where it ran nowhere."""
    part = data.part_of(variant)
    ran = any(data.cell(each.name, variant).n for each in part.record.workloads)
    return part.record.machine if ran else None


def limit_texts(requirements: Requirements) -> tuple[str, ...]:
    """The limits that the user gave, in a few words each."""
    found = []
    if requirements.max_memory_bytes is not None:
        limit = quantity(requirements.max_memory_bytes, "byte")
        found.append(_("peak memory at most {limit}", limit=limit))
    if requirements.min_decode_rate is not None:
        limit = quantity(requirements.min_decode_rate, "token/s")
        found.append(_("decode rate at least {limit}", limit=limit))
    if requirements.max_ttft_s is not None:
        limit = quantity(requirements.max_ttft_s, "s")
        found.append(_("time to first token at most {limit}", limit=limit))
    if requirements.max_quality_loss is not None:
        limit = percent(requirements.max_quality_loss)
        found.append(_("perplexity at most {limit} above the reference's", limit=limit))
    asked = [
        field
        for field in ("multimodal", "vision", "enterprise_support")
        if getattr(requirements, field)
    ]
    if requirements.target is not None:
        asked.append(requirements.target)
    return (*found, *(_(CAPABILITIES[each]) for each in asked))


def _measured(
    data: ReportData, variant: str, requirements: Requirements, workloads: Sequence[str]
) -> Iterator[Check]:
    if requirements.max_memory_bytes is not None:
        most = requirements.max_memory_bytes
        yield _on_prompts(data, variant, workloads, "max_memory_bytes", most)
    else:
        own = _memory_of_machine(data, variant)
        found = _on_prompts(data, variant, workloads, "machine_memory", own)
        # What ran there fits there, whether its memory was read or not.
        if found.fails:
            yield found
    if requirements.min_decode_rate is not None:
        least = requirements.min_decode_rate
        yield _on_prompts(data, variant, workloads, "min_decode_rate", least)
    if requirements.max_ttft_s is not None:
        yield _on_prompts(data, variant, workloads, "max_ttft_s", requirements.max_ttft_s)
    if requirements.max_quality_loss is not None:
        yield _on_text(data, variant, requirements.max_quality_loss)


def _memory_of_machine(data: ReportData, variant: str) -> int:
    own = (part.record for part in data.parts if variant in part.variants)
    return next(own, data.record).machine.memory_bytes


_METRICS: Final = {
    "max_memory_bytes": "peak_rss_bytes",
    "machine_memory": "peak_rss_bytes",
    "min_decode_rate": "decode_rate",
    "max_ttft_s": "ttft_s",
}


def _on_prompts(
    data: ReportData, variant: str, workloads: Sequence[str], limit: str, bound: float
) -> Check:
    key = _METRICS[limit]
    found = []
    for workload in workloads:
        summary = data.summary(workload, variant, key)
        why = summary.reason if summary and summary.median is None else None
        reason = recorded(why) if why else absent(data, workload, variant)
        if data.is_broken(workload, variant):
            summary, reason = None, broken_text()
        found.append(_check(limit, workload, summary, bound, reason))
    if not found:
        found = [_check(limit, "", None, bound, _("no workload asks for it"))]
    return min(found, key=lambda each: WORST_FIRST.index(each.state))


def _on_text(data: ReportData, variant: str, loss: float) -> Check:
    workload = main_quality(data)
    if workload is None or workload.quality is None:
        return _check("max_quality_loss", "", None, 1 + loss, not_rated(data))
    ratios = quality_summaries(data, workload.name, workload.quality).get("perplexity_ratio", {})
    summary = ratios.get(variant)
    why = (summary and summary.reason) or workload.quality.no_reference
    if why:
        reason = recorded(why)
    elif ratios:
        reason = absent(data, workload.name, variant)
    else:
        reason = _("no perplexity was compared with a reference")
    return _check("max_quality_loss", workload.name, summary, 1 + loss, reason)


def _check(limit: str, workload: str, summary: Summary | None, bound: float, reason: str) -> Check:
    fails, meets, unknown = _MEASURED[limit]
    shown_limit = _limit_text(limit, bound)
    goal = _METRICS.get(limit, QUALITY)
    if summary is None or summary.median is None:
        sentence = fill(unknown, limit=shown_limit, reason=unstopped(reason))
        return Check(limit, "unknown", sentence, figures=Figures(goal, workload))
    state = _state(summary, bound, at_least=limit == "min_decode_rate")
    value = _value_text(limit, summary)
    said = fill(
        fails if state in FAILING else meets,
        value=value,
        workload=Name(workload),
        limit=shown_limit,
    )
    if state.endswith("_by_median"):
        doubt = _NO_INTERVAL if summary.ci_low is None else _BY_MEDIAN
        said = joined([said, (_(doubt),)])
    figures = Figures(goal, workload, summary.median, summary.ci_low, summary.ci_high, summary.unit)
    return Check(limit, state, said, figures=figures)


def _state(summary: Summary, bound: float, *, at_least: bool) -> State:
    """Whether a value is on the right side of a bound, with its whole interval or without."""
    assert summary.median is not None
    ends = [summary.median]
    if summary.ci_low is not None and summary.ci_high is not None:
        ends += [summary.ci_low, summary.ci_high]
    right = [each >= bound if at_least else each <= bound for each in ends]
    sure = len(ends) > 1 and len(set(right)) == 1
    if right[0]:
        return "meets" if sure else "meets_by_median"
    return "fails" if sure else "fails_by_median"


def _limit_text(limit: str, bound: float) -> str:
    if limit == "max_quality_loss":
        return percent(bound - 1)
    units = {"min_decode_rate": "token/s", "max_ttft_s": "s"}
    return quantity(bound, units.get(limit, "byte"))


def _value_text(limit: str, summary: Summary) -> str:
    if limit == "max_quality_loss":
        return written(summary, CHANGE)
    return written(summary, scale_of(_METRICS[limit], summary.unit, [summary.median]))
