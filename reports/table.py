"""The comparison table, the same in the terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import Better, metric
from edgebench.reports.answer import best_variants
from edgebench.reports.engines import engine_text
from edgebench.reports.format import NOT_MEASURED, Scale, duration, percent, scale_of, shown
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import Cell, Flag, ProtocolRecord, Summary
    from edgebench.reports.data import ReportData

ALWAYS = ("decode_rate", "ttft_s", "prefill_rate", "itl_p95_s", "peak_rss_bytes", "model_bytes")
"""Columns that a comparison has even where nothing was measured: the dash is the finding."""

WHERE_MEASURED = ("load_s", "load_cold_s", "energy_per_token_j", "rate_per_watt")
"""Columns that are shown where any variant has a value."""

_LEAST_TO_COMPARE = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One metric.

    Attributes:
        key, label, short: of the metric.
        scale: the unit of the whole column.
        better: which direction is better.
        sources: who said the values; more than one where the column mixes them.
    """

    key: str
    label: str
    short: str
    scale: Scale
    better: Better | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the table.

    Attributes:
        text: the median, or a dash.
        interval: the 95 % interval, or empty.
        sort: what to sort by, or None.
        source: who said it, where the column mixes sources; else empty.
        best: whether it is the best of its column or can't be told apart from it.
        footnote: the number of the footnote that says why something is missing, or None.
        reason: the text of that footnote.
    """

    text: str
    interval: str = ""
    sort: float | None = None
    source: str = ""
    best: bool = False
    footnote: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant.

    Attributes:
        variant: its id.
        engine: what it drove, with the version; empty where that is not known.
        place: its place in the run, which gives it its colour.
        repetitions: measured repetitions that succeeded.
        remarks: what a reader must know about the row, in a few words each.
        failed: whether it has no values because it failed.
        values: in the order of the columns.
    """

    variant: str
    engine: str
    place: int
    repetitions: int
    remarks: tuple[str, ...]
    failed: bool
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Dress:
    """How a column looks that is not shown as its metric usually is.

    Attributes:
        label, short: its name, and that for a narrow head.
        scale: its unit.
        better: which direction is better.
    """

    label: str
    short: str
    scale: Scale
    better: Better | None


@dataclass(frozen=True, slots=True)
class TableTexts:
    """The words around a table.

    Attributes:
        how: what its values are.
        marked: what it means that a value is marked.
        counted: the head of the column with the repetitions; empty for none.
        rows: what a row is.
    """

    how: str = "median, with its 95 % interval"
    marked: str = "values are the best of their column, or this run can't tell them apart from it."
    counted: str = "n"
    rows: str = "variant"


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """All variants on one workload.

    Attributes:
        workload: the workload's name.
        columns, rows: in the order in which they are shown.
        footnotes: the reasons for what is missing; the first is number 1.
        remarks: what each remark in the rows means.
        texts: the words around it.
        everywhere: what all rows have in common, such as the engine, where the rows don't say it.
        no_intervals: why whole columns have no interval, a sentence each.
    """

    workload: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[str, ...]
    remarks: tuple[tuple[str, str], ...]
    texts: TableTexts
    everywhere: tuple[str, ...] = ()
    no_intervals: tuple[str, ...] = ()

    @property
    def sources(self) -> str:
        """Who said the values, by column: a sentence; empty where nothing was measured."""
        by_source: dict[str, list[str]] = {}
        for column in self.columns:
            for source in column.sources:
                by_source.setdefault(source, []).append(column.short)
        parts = [f"{source} ({', '.join(names)})" for source, names in sorted(by_source.items())]
        return f"Sources: {'; '.join(parts)}." if parts else ""


def comparison_rows(data: ReportData) -> tuple[ComparisonTable, ...]:
    """The comparison, one table for each workload."""
    return tuple(
        comparison_of(data, workload, ALWAYS, WHERE_MEASURED) for workload in data.workload_names
    )


def flag_text(flag: str) -> str:
    """A cell's flag in words."""
    return {
        "noisy": "noisy",
        "contended": "contended",
        "unstable_warmup": "unstable warm-up",
        "few_repetitions": "few repetitions",
        "cut_by_budget": "cut by budget",
        "quick": "quick look",
    }.get(flag, flag.replace("_", " "))


def flag_meaning(flag: str, protocol: ProtocolRecord) -> str:
    """What a cell's flag says about its values."""
    return {
        "noisy": (
            "time to first token, decode rate or a task's latency varied by more than "
            f"{percent(protocol.max_cv)} (standard deviation / mean): something disturbed it"
        ),
        "contended": (
            "other processes ran while all CPUs were taken: threads that work in step then wait "
            "for each other, and all of them slow down; edgebench doctor names the processes"
        ),
        "unstable_warmup": (
            "the last two warm-ups still differed by more than "
            f"{percent(protocol.warmup_stable_within)}: the first repetitions may be slower"
        ),
        "few_repetitions": (
            f"fewer than the {protocol.min_repetitions} repetitions that the scenario asks for"
        ),
        "cut_by_budget": (
            f"the time budget of {duration(protocol.time_budget_s)} ended before the interval "
            "was as narrow as asked"
        ),
        "quick": "a quick run: shorter and fewer repetitions, not a measurement",
    }.get(flag, "a remark that this edgebench does not know")


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
) -> ComparisonTable:
    """One table.

    Args:
        data: the report's data.
        workload: its name.
        always: keys of the columns that are there in any case.
        where_measured: keys of those that need a value.
        engines: what each variant drove, where that is not what made its tokens.
        ranked: whether the best of a column is marked.
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
    best = {key: _best(key, summaries[key]) if ranked else frozenset() for key in keys}
    shown_keys = {key: summaries[key] for key in keys}
    return table_of(data, workload, shown_keys, best=best, engines=engines)


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
) -> ComparisonTable:
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
    rows = tuple(
        _row(
            data.cell(workload, variant),
            engine_of[variant],
            places[variant],
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
    return ComparisonTable(
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
        reasons = {one_line(each.reason) for each in present if each.reason}
        if len(reasons) == 1 and not any(shown(each, column.scale).interval for each in present):
            found[column.key] = reasons.pop()
    return found


def _sentences(columns: Sequence[Column], reasons: Mapping[str, str]) -> Iterator[str]:
    for reason in dict.fromkeys(reasons.values()):
        names = [each.short for each in columns if reasons.get(each.key) == reason]
        yield f"No intervals ({', '.join(names)}): {reason.rstrip('.')}."


def _column(key: str, summaries: Mapping[str, Summary | None], dress: Dress | None) -> Column:
    known = metric(key)
    present = [each for each in summaries.values() if each and each.median is not None]
    if dress is None:
        unit = present[0].unit if present else known.unit
        scale = scale_of(key, unit, [each.median for each in present])
        dress = Dress(known.label, known.short, scale, known.better)
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
    columns: tuple[Column, ...],
    summaries: Mapping[str, Mapping[str, Summary | None]],
    best: Mapping[str, frozenset[str]],
    footnotes: _Footnotes,
    unremarked: tuple[Flag, ...],
    no_intervals: Mapping[str, str],
) -> Row:
    absent = _absent(cell)
    values = tuple(
        _value(
            summaries[column.key][cell.variant],
            column,
            absent,
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
    )


def _value(
    summary: Summary | None,
    column: Column,
    absent: str,
    footnotes: _Footnotes,
    *,
    best: bool,
    noted: bool,
) -> Value:
    if summary is None or summary.median is None:
        reason = one_line((summary.reason if summary else None) or absent)
        return Value(NOT_MEASURED, footnote=footnotes.number(reason), reason=reason)
    text = shown(summary, column.scale)
    no_interval = one_line(summary.reason) if summary.reason and noted and not text.interval else ""
    return Value(
        text=text.value,
        interval=text.interval,
        sort=summary.median,
        source=summary.source if len(column.sources) > 1 else "",
        best=best,
        footnote=footnotes.number(no_interval) if no_interval else None,
        reason=no_interval,
    )


def _absent(cell: Cell) -> str:
    """Why a cell says nothing at all about a metric."""
    if cell.failure is not None and not cell.n:
        return f"failed: {cell.failure.message}"
    if cell.status == "not_run":
        return "not run"
    return "not collected in this run"


def _status(cell: Cell) -> tuple[str, ...]:
    if cell.status == "failed":
        return ("failed",)
    if cell.status == "not_run":
        return ("not run",)
    return (f"{cell.n_failed} failed",) if cell.n_failed else ()
