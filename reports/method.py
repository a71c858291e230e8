"""How the figures were made, in words: the protocol, the statistics, the definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import METRICS
from edgebench.harness.metrics.statistics import MIN_BLOCKS, RESAMPLES
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.quality.figures import RESAMPLES as QUALITY_RESAMPLES
from edgebench.reports.data import MEMORY_PARTS
from edgebench.reports.format import counted, duration, percent, scale_for
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import paragraph
from edgebench.reports.metric_names import metric_definition, metric_label
from edgebench.reports.quality import QUALITY_KEYS
from edgebench.reports.table import ALWAYS, WHERE_MEASURED
from edgebench.reports.tasks import TASK_KEYS
from edgebench.reports.tool_method import (
    by_tools,
    tool_definition,
    tool_processes,
    tool_prompts,
    tool_warmup,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import ProtocolRecord, RunRecord
    from edgebench.reports.data import ReportData

QUALITY = frozenset((*QUALITY_KEYS, "bits_per_weight", "weight_bytes_per_token"))
COMPARED = frozenset((*ALWAYS, *WHERE_MEASURED, *MEMORY_PARTS, *TASK_KEYS))

SOURCES = (
    (N_("observed"), N_("our own clock, or the kernel's own accounting")),
    (N_("engine"), N_("the framework reported it")),
    (N_("derived"), N_("computed from other values")),
    (N_("estimated"), N_("from a model, not from a measurement")),
)
"""Who says values, and what that means; to be looked up, see `source_meanings`."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric of the report.

    Attributes:
        key: the metric's key in the result files.
        label: its name for people.
        unit: the unit it is stored in, written out.
        sources: who said its values in this run; empty where it has none.
        definition: what exactly was measured.
        compared: whether the comparison or a picture shows it.
    """

    key: str
    label: str
    unit: str
    sources: tuple[str, ...]
    definition: str
    compared: bool


def method(record: RunRecord, others: Sequence[RunRecord] = ()) -> tuple[tuple[str, str], ...]:
    """The protocol of the run, as (subject, sentences).

    Args:
        record: the run.
        others: more runs of the same report, some of which frameworks' own tools may have made.
    """
    if by_tools(record):
        first = next((each for each in others if not by_tools(each)), None)
        return _method_of_tools(record) if first is None else method(first, [record])
    if tools := next((each for each in others if by_tools(each)), None):
        texts = (tool_prompts(), tool_processes(), tool_warmup(tools.protocol))
        there = (_("On Android devices"), paragraph(texts))
        return (*_method(record), there)
    return _method(record)


def _method_of_tools(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """The same where no runner of edgebench ran: no text is rated, and no task is run."""
    instead = {
        _("Prompts"): tool_prompts(),
        _("Processes"): tool_processes(),
        _("Warm-up"): tool_warmup(record.protocol),
    }
    texts = {**dict(_method(record)), **instead}
    return tuple((s, t) for s, t in texts.items() if s not in {_("Tasks"), _("Quality")})


def _method(record: RunRecord) -> tuple[tuple[str, str], ...]:
    protocol = record.protocol
    order = (
        _(
            "The variants are interleaved in blocks, in an order drawn at random (seed {seed}),"
            " so that drift of the machine meets all of them alike.",
            seed=record.seed,
        )
        if protocol.interleave
        else _(
            "One variant after the other, not interleaved (seed {seed}): drift of the machine "
            "meets the later ones only.",
            seed=record.seed,
        )
    )
    rates = any(workload.quality for workload in record.workloads)
    timed = not rates or any(workload.quality is None for workload in record.workloads)
    not_measured, time_limit = _("Not measured"), _("Time limit")
    texts = {
        _("Prompts"): _(
            "Every variant gets the same token ids, of exactly the stated length, and makes "
            "exactly the stated number of tokens, greedily, past any end of text. Each "
            "generation starts from an empty KV cache, filled to the workload's depth."
        ),
        _("Processes"): _processes(protocol),
        _("Order"): order,
        _("Warm-up"): _(
            "At least {least} and at most {most} in each process, until two in a row differ by at "
            "most {share}. Warm-ups are kept in the files and count in no figure.",
            least=protocol.warmup_min,
            most=protocol.warmup_max,
            share=percent(protocol.warmup_stable_within),
        ),
        _("Repetitions"): _(
            "At least {least} and at most {most}, until half of the 95 % interval is at most "
            "{share} of the median, or until the time budget of {budget} ends.",
            least=protocol.min_repetitions,
            most=protocol.max_repetitions,
            share=percent(protocol.ci_half_width),
            budget=duration(protocol.time_budget_s),
        ),
        _("Median and interval"): _(
            "A value is the median over the measured repetitions. The brackets hold its 95 % "
            "interval: a percentile bootstrap over blocks, {resamples} resamples, from {blocks} "
            "blocks on. The interval also decides how many digits are shown.",
            resamples=RESAMPLES,
            blocks=MIN_BLOCKS,
        ),
        _("Comparing"): _(
            "Two variants whose intervals overlap are reported as not told apart. Ratios are "
            "the median of the ratios within blocks. A cell whose standard deviation is more "
            "than {share} of its mean is marked noisy.",
            share=percent(protocol.max_cv),
        ),
        not_measured: _("A dash, with the reason below the table; never 0."),
        time_limit: _(
            "A call that takes longer than {limit} is stopped and counts as a failure, which is a "
            "row of its own.",
            limit=duration(protocol.timeout_s),
        ),
    }
    if any(workload.task for workload in record.workloads):
        texts[_("Tasks")] = _(
            "A whole task gets its text as it is and ends by itself. It runs in processes that do "
            "nothing else, with the same warm-up and repetitions, judged by its latency."
        )
    if not timed:
        texts = {subject: texts[subject] for subject in (not_measured, time_limit)}
    if rates:
        texts[_("Quality")] = _rating(protocol, timed=timed)
    return tuple(texts.items())


def source_meanings() -> tuple[tuple[str, str], ...]:
    """Who says values, and what that means, in the current language."""
    return tuple((_(source), _(meaning)) for source, meaning in SOURCES)


def definitions(data: ReportData) -> tuple[Definition, ...]:
    """Every metric that the run says something about, in the usual order, unknown ones last."""
    sources: dict[str, dict[str, None]] = {key: {} for key in data.metric_keys}
    units: dict[str, str] = {}
    summaries = [cell.metrics for cell in data.cells.values()] + list(data.by_variant.values())
    for metrics in summaries:
        for key, summary in metrics.items():
            units.setdefault(key, summary.unit)
            if summary.median is not None:
                sources[key][summary.source] = None
    known = [key for key in METRICS if key in sources]
    others = sorted(key for key in sources if key not in METRICS)
    compared = COMPARED | QUALITY if data.quality_names else COMPARED
    return tuple(
        Definition(
            key=key,
            label=metric_label(key),
            unit=scale_for(units[key], [1.0]).unit,
            sources=tuple(_(source) for source in sources[key]),
            definition=_definition(data, key, frozenset(sources[key])),
            compared=key in compared,
        )
        for key in (*known, *others)
    )


def _definition(data: ReportData, key: str, sources: frozenset[str]) -> str:
    """What it is in this report: frameworks' own tools may count otherwise."""
    there = {by_tools(part.record) for part in data.parts}
    told = tool_definition(key, told="engine" in sources) if True in there and sources else ""
    if not told:
        return metric_definition(key)
    if there == {True}:
        return told
    return paragraph((metric_definition(key), _("On Android devices:"), told))


def where_the_time_went(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """The run's wall time in its parts; empty where the run did not finish."""
    spent = record.accounting
    if spent is None:
        return ()
    rates = any(workload.quality for workload in record.workloads)
    return (
        (_("All of it"), duration(spent.wall_s)),
        (_("Preparing models"), duration(spent.prepare_s)),
        *(((_("Rating texts"), duration(spent.quality_s)),) if rates else ()),
        (_("Starting processes"), duration(spent.start_s)),
        (_("Loading"), duration(spent.load_s)),
        (_("Warming up"), duration(spent.warmup_s)),
        (_("Measuring"), duration(spent.measured_s)),
        (_("Cooling down"), duration(spent.cooldown_s)),
        (_("Everything else"), duration(spent.overhead_s)),
    )


def _processes(protocol: ProtocolRecord) -> str:
    repetitions = counted(
        "{count} measured repetition", "{count} measured repetitions", protocol.per_block
    )
    if not protocol.cooldown_s:
        return _(
            "Each framework runs in a process of its own, started fresh for each block. A block "
            "holds {repetitions} of each workload. Time stamps are taken inside of that process.",
            repetitions=repetitions,
        )
    return _(
        "Each framework runs in a process of its own, started fresh for each block, {pause} apart. "
        "A block holds {repetitions} of each workload. Time stamps are taken inside of that "
        "process.",
        pause=duration(protocol.cooldown_s),
        repetitions=repetitions,
    )


def _rating(protocol: ProtocolRecord, *, timed: bool) -> str:
    begins = (
        _("Before anything is timed, each framework rates the windows of a text")
        if timed
        else _("Each framework rates the windows of a text")
    )
    return _(
        "{begins}, in a process of its own: the same token ids at the same positions, cut to the "
        "same number of windows where the time budget of {budget} is short. Intervals resample "
        "windows ({resamples} times, from {windows} windows on) and are widened where there are "
        "few. Two variants are compared window by window.",
        begins=begins,
        budget=duration(protocol.time_budget_s),
        resamples=QUALITY_RESAMPLES,
        windows=MIN_WINDOWS,
    )
