"""The comparison table, the same in the terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.reports.answer import best_variants
from edgebench.reports.colours import framework_colours
from edgebench.reports.engines import engine_text
from edgebench.reports.format import NOT_MEASURED, duration, percent, scale_of, shown
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.metered import why_apart
from edgebench.reports.metric_names import metric_label, metric_short
from edgebench.reports.table_model import Column, Dress, Row, Table, TableTexts, Value, Where
from edgebench.reports.table_values import value_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.cell import Cell, Flag, Summary
    from edgebench.harness.results.model import ProtocolRecord
    from edgebench.reports.data import ReportData

ALWAYS = ("decode_rate", "ttft_s", "prefill_rate", "itl_p95_s", "peak_rss_bytes", "model_bytes")
"""Columns that a comparison has even where nothing was measured: the dash is the finding."""

WHERE_MEASURED = ("load_s", "load_cold_s", "energy_per_token_j", "rate_per_watt", "mbu")
"""Columns that are shown where any variant has a value."""

_LEAST_TO_COMPARE = 2


def comparison_rows(data: ReportData) -> tuple[Table, ...]:
    """The comparison, one table for each workload."""
    return tuple(
        comparison_of(data, workload, ALWAYS, WHERE_MEASURED) for workload in data.workload_names
    )


def flag_text(flag: str) -> str:
    """A cell's flag in words."""
    return {
        "noisy": _("noisy"),
        "contended": _("contended"),
        "unstable_warmup": _("unstable warm-up"),
        "few_repetitions": _("few repetitions"),
        "cut_by_budget": _("cut by budget"),
        "quick": _("quick look"),
        "throttled": _("throttled"),
        "above_bandwidth": _("broken: above the memory's bandwidth"),
    }.get(flag, flag.replace("_", " "))


def flag_meaning(flag: str, protocol: ProtocolRecord) -> str:
    """What a cell's flag says about its values."""
    return {
        "noisy": _(
            "time to first token, decode rate or a task's latency varied by more than "
            "{share} (standard deviation / mean): something disturbed it",
            share=percent(protocol.max_cv),
        ),
        "contended": _(
            "other processes ran while all CPUs were taken: threads that work in step then wait "
            "for each other, and all of them slow down; edgebench doctor names the processes"
        ),
        "unstable_warmup": _(
            "the last two warm-ups still differed by more than {share}: the first repetitions may "
            "be slower",
            share=percent(protocol.warmup_stable_within),
        ),
        "few_repetitions": _(
            "fewer than the {least} repetitions that the scenario asks for",
            least=protocol.min_repetitions,
        ),
        "cut_by_budget": _(
            "the time budget of {budget} ended before the interval was as narrow as asked",
            budget=duration(protocol.time_budget_s),
        ),
        "quick": _("a quick run: shorter and fewer repetitions, not a measurement"),
        "throttled": _(
            "rate and clock fell together while the work went on: heat, or a limit of power"
        ),
        "above_bandwidth": _(
            "the decode rate takes more bytes a second than this machine's memory was measured to "
            "deliver at its fastest, so the rate or the count of what a token reads is wrong, "
            "unless the weights stay in a cache"
        ),
    }.get(flag, _("a remark that this edgebench does not know"))


class _Footnotes:
    """Numbers the reasons, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, reason: str) -> int:
        return self.texts.setdefault(reason, len(self.texts) + 1)


def comparison_of(
    data: ReportData,
    workload: str,
    always: tuple[str, ...],
    where_measured: tuple[str, ...] = (),
    *,
    engines: Mapping[str, str] | None = None,
    ranked: bool = True,
    kind: str = "comparison",
) -> Table:
    """One table.

    Args:
        data: the report's data.
        workload: its name.
        always: keys of the columns that are there in any case.
        where_measured: keys of those that need a value.
        engines: what each variant drove, where that is not what made its tokens.
        ranked: whether the best of a column is marked.
        kind: what the table's key begins with.
    """
    summaries = {
        key: {each: data.summary(workload, each, key) for each in data.variant_ids}
        for key in (*always, *where_measured)
    }
    keys = [
        key
        for key, values in summaries.items()
        if key in always or any(each and each.median is not None for each in values.values())
    ]
    counted = [each for each in data.variant_ids if not data.is_broken(workload, each)]
    best = {
        key: _best(key, {each: summaries[key][each] for each in counted})
        if ranked and not why_apart(data, key)
        else frozenset()
        for key in keys
    }
    shown_keys = {key: summaries[key] for key in keys}
    return table_of(data, workload, shown_keys, best=best, engines=engines, kind=kind)


def table_of(
    data: ReportData,
    workload: str,
    summaries: Mapping[str, Mapping[str, Summary | None]],
    *,
    best: Mapping[str, frozenset[str]],
    engines: Mapping[str, str] | None = None,
    dresses: Mapping[str, Dress] | None = None,
    texts: TableTexts | None = None,
    unremarked: tuple[Flag, ...] = (),
    order: Sequence[str] | None = None,
    reasons_once: bool = False,
    kind: str = "comparison",
) -> Table:
    """A table of given values.

    Args:
        data: the report's data.
        workload: whose cells tell why a value is missing, and what to remark.
        summaries: by column and variant.
        best: by column, the variants to mark.
        engines: what each variant drove, where that is not what made its tokens.
        dresses: by column, how it looks where not as its metric does.
        texts: the words around it.
        unremarked: flags that are told elsewhere.
        order: the variants from the first row on, where not as in the run.
        reasons_once: whether a column without any interval says why below the table, and not in
            a footnote of every value.
        kind: what the table's key begins with.
    """
    columns = tuple(
        _column(key, values, (dresses or {}).get(key)) for key, values in summaries.items()
    )
    footnotes = _Footnotes()
    no_intervals = _no_intervals(columns, summaries) if reasons_once else {}
    places = {each: place for place, each in enumerate(data.variant_ids)}
    engine_of = {
        each.id: engine_text(each) if engines is None else engines.get(each.id, "")
        for each in data.record.variants
    }
    colours = framework_colours(data.record.variants)
    rows = tuple(
        _row(
            data.cell(workload, variant),
            engine_of[variant],
            places[variant],
            colours[variant],
            columns,
            summaries,
            best,
            footnotes,
            unremarked,
            no_intervals,
        )
        for variant in (data.variant_ids if order is None else order)
    )
    flags = dict.fromkeys(
        flag
        for variant in data.variant_ids
        for flag in data.cell(workload, variant).flags
        if flag not in unremarked
    )
    return Table(
        key=f"{kind}-{[each.name for each in data.record.workloads].index(workload)}",
        workload=workload,
        columns=columns,
        rows=rows,
        footnotes=tuple(footnotes.texts),
        remarks=tuple(
            (flag_text(flag), flag_meaning(flag, data.record.protocol)) for flag in flags
        ),
        texts=texts or TableTexts(),
        no_intervals=tuple(_sentences(columns, no_intervals)),
    )


def _no_intervals(
    columns: Sequence[Column], summaries: Mapping[str, Mapping[str, Summary | None]]
) -> dict[str, str]:
    """By column, the one reason why none of its values has an interval."""
    found = {}
    for column in columns:
        present = [
            each
            for each in summaries[column.key].values()
            if each is not None and each.median is not None
        ]
        reasons = {one_line(recorded(each.reason)) for each in present if each.reason}
        if len(reasons) == 1 and not any(shown(each, column.scale).interval for each in present):
            found[column.key] = reasons.pop()
    return found


def _sentences(columns: Sequence[Column], reasons: Mapping[str, str]) -> Iterator[str]:
    for reason in dict.fromkeys(reasons.values()):
        names = [each.short for each in columns if reasons.get(each.key) == reason]
        yield _(
            "No intervals ({columns}): {reason}.", columns=commas(names), reason=unstopped(reason)
        )


def _column(key: str, summaries: Mapping[str, Summary | None], dress: Dress | None) -> Column:
    known = metric(key)
    present = [each for each in summaries.values() if each and each.median is not None]
    if dress is None:
        unit = present[0].unit if present else known.unit
        scale = scale_of(key, unit, [each.median for each in present])
        dress = Dress(metric_label(key), metric_short(key), scale, known.better)
    return Column(
        key=key,
        label=dress.label,
        short=dress.short,
        scale=dress.scale,
        better=dress.better,
        sources=tuple(sorted({each.source for each in present})),
    )


def _best(key: str, summaries: Mapping[str, Summary | None]) -> frozenset[str]:
    present = {
        variant: each
        for variant, each in summaries.items()
        if each is not None and each.median is not None
    }
    if metric(key).better is None or len(present) < _LEAST_TO_COMPARE:
        return frozenset()
    variants, known = best_variants(present, key)
    if not known:
        return frozenset()
    ends = {present[each].median for each in variants}
    equal = {each for each, summary in present.items() if summary.median in ends}
    # Where all are alike, marking every value says nothing.
    return frozenset(equal) if len(equal) < len(present) else frozenset()


def _row(
    cell: Cell,
    engine: str,
    place: int,
    colour: str,
    columns: tuple[Column, ...],
    summaries: Mapping[str, Mapping[str, Summary | None]],
    best: Mapping[str, frozenset[str]],
    footnotes: _Footnotes,
    unremarked: tuple[Flag, ...],
    no_intervals: Mapping[str, str],
) -> Row:
    values = tuple(
        _value(
            summaries[column.key][cell.variant],
            cell,
            column,
            footnotes,
            best=cell.variant in best.get(column.key, ()),
            noted=column.key not in no_intervals,
        )
        for column in columns
    )
    return Row(
        variant=cell.variant,
        engine=engine,
        place=place,
        repetitions=cell.n,
        remarks=(
            *_status(cell),
            *(flag_text(flag) for flag in cell.flags if flag not in unremarked),
        ),
        failed=cell.status == "failed",
        values=values,
        colour=colour,
    )


def _value(
    summary: Summary | None,
    cell: Cell,
    column: Column,
    footnotes: _Footnotes,
    *,
    best: bool,
    noted: bool,
) -> Value:
    if summary is None or summary.median is None:
        reason = one_line(recorded((summary and summary.reason) or "") or _absent(cell))
        return Value(
            NOT_MEASURED,
            unit=summary.unit if summary else metric(column.key).unit,
            footnote=footnotes.number(reason),
            reason=reason,
            where=Where(cell.workload, cell.variant, column.key),
        )
    value = value_of(summary, column.scale)
    said = summary.reason if noted and not value.interval else None
    no_interval = one_line(recorded(said or ""))
    return replace(
        value,
        chip=_(summary.source) if len(column.sources) > 1 else value.chip,
        flags=tuple(flag_text(flag) for flag in cell.flags),
        best=best,
        footnote=footnotes.number(no_interval) if no_interval else None,
        reason=no_interval,
        where=Where(cell.workload, cell.variant, column.key),
    )


def _absent(cell: Cell) -> str:
    """Why a cell says nothing at all about a metric."""
    if cell.failure is not None and not cell.n:
        return _("failed: {message}", message=recorded(cell.failure.message))
    if cell.status == "not_run":
        return _("not run")
    return _("not collected in this run")


def _status(cell: Cell) -> tuple[str, ...]:
    if cell.status == "failed":
        return (_("failed"),)
    if cell.status == "not_run":
        return (_("not run"),)
    return (_("{count} failed", count=cell.n_failed),) if cell.n_failed else ()
