"""A run among the earlier ones of its scenario on its machine: trends, steps and drift.

Only the records beside it are read, and of those the newest; no trial and no index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import ResultError
from edgebench.harness.history.changes import find
from edgebench.harness.history.model import Selection
from edgebench.harness.history.rows import rows_of, series_of
from edgebench.harness.history.segments import SHORTEST
from edgebench.harness.results.cell import Summary
from edgebench.harness.results.run import RUN_FILE, read_record
from edgebench.reports.format import NOT_MEASURED, scale_of, shown
from edgebench.reports.history_plot import Trend, plot_title, trend_plot
from edgebench.reports.history_words import run_date, sentences
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.words import paragraph
from edgebench.reports.lines import MOST_LINES, left_out_text
from edgebench.reports.metric_names import label_of
from edgebench.reports.picture import best_first, looks, some_of_each
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from edgebench.harness.history.model import Point, Series
    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.picture import Plot

METRICS = ("decode_rate", "ttft_s")
LEAST_RUNS = 3
MOST_RUNS = 60
"""Records that are read: some milliseconds each."""

MOST_ROWS = 20
"""Runs in a table, the newest; `edgebench history` has all of them."""


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What a report says of the runs before.

    Attributes:
        intro: which runs these are.
        how: how the plots are read.
        plots: of each workload its decode rate and its time to first token.
        sentences: a paragraph for each step and drift; one that says that there is none.
        tables: the figures behind the plots.
    """

    intro: str
    how: str
    plots: tuple[Plot, ...]
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]


def history_view(data: ReportData, *, drawn: bool = True) -> HistoryView | None:
    """The history of a run, up to it.

    Args:
        data: the report's data.
        drawn: whether the plots are made, which takes the most time.

    Returns:
        None of several runs, of a run that is no measurement, and where fewer than `LEAST_RUNS`
        compare.
    """
    if len(data.parts) != 1 or not (data.run.path / RUN_FILE).is_file():
        return None
    own = data.record.model_copy(update={"cells": list(data.cells.values())})
    rows = [rows_of(own, data.run.path.resolve().name)]
    if rows[0].left_out:
        return None
    rows += [rows_of(record, name) for name, record in _siblings(data.run.path, own)]
    rows = [each for each in rows if each.run.moment <= rows[0].run.moment]
    names = {workload.name for workload in data.record.workloads}
    selection = Selection(metrics=METRICS, scenario=own.scenario_name)
    compared = [
        each
        for each in series_of(rows, selection)
        if len(each.points) >= LEAST_RUNS
        and each.points[-1].run.id == own.id
        and each.subject.workload in names
    ]
    if not compared:
        return None
    return _view(data, compared, drawn=drawn)


def _siblings(folder: Path, own: RunRecord) -> Iterator[tuple[str, RunRecord]]:
    """The newest records beside a run's; `edgebench history` names those that can't be read."""
    here = folder.resolve()
    try:
        # A run's folder is named after its time.
        names = sorted((each.name for each in here.parent.iterdir()), reverse=True)
    except OSError:
        return
    read = 0
    for name in names:
        other = here.parent / name
        if name == here.name or name.startswith(".") or not (other / RUN_FILE).is_file():
            continue
        if read == MOST_RUNS:
            return
        read += 1
        try:
            record = read_record(other)
        except ResultError:
            continue
        same = (record.scenario_name, record.machine.fingerprint)
        if same == (own.scenario_name, own.machine.fingerprint) and record.id != own.id:
            yield name, record


def _view(data: ReportData, compared: Sequence[Series], *, drawn: bool) -> HistoryView:
    seen = looks(data.record.variants)
    trends = [
        Trend(
            each,
            find(each.medians, family=len(compared)),
            seen[each.subject.variant],
        )
        for each in compared
        if each.subject.variant in seen
    ]
    plots, tables = [], []
    for place, workload in enumerate(data.workload_names):
        for key in METRICS:
            of_both = [
                each
                for each in trends
                if (each.series.subject.workload, each.series.subject.metric) == (workload, key)
            ]
            if not of_both:
                continue
            chosen = _some(data, workload, of_both)
            name = f"history-{place}-{key.replace('_', '-')}"
            title = plot_title(workload, key)
            rest = left_out_text(len(of_both) - len(chosen))
            if drawn:
                own = data.record.id
                plots.append(trend_plot(chosen, title=title, name=name, this_run=own, remark=rest))
            tables.append(_table(chosen, title, name))
    told = tuple(text for each in trends for text in sentences(each.series, each.found))
    return HistoryView(
        _intro(compared),
        _(
            "This run is ringed. A diamond on a dashed line is a step, a dashed line across runs a "
            "drift."
        ),
        tuple(plots),
        told or (_nothing(trends),),
        tuple(tables),
    )


def _some(data: ReportData, workload: str, trends: Sequence[Trend]) -> list[Trend]:
    """At most `MOST_LINES`: those that changed first, then the fastest of each framework."""
    by_variant = {each.series.subject.variant: each for each in trends}
    changed = [name for name, each in by_variant.items() if each.found.changes or each.found.drifts]
    fastest = [each for each in best_first(data, workload, METRICS[0]) if each in by_variant]
    ranked = list(dict.fromkeys([*fastest, *by_variant]))
    chosen = [
        *changed[:MOST_LINES],
        *some_of_each(data, [each for each in ranked if each not in changed], MOST_LINES),
    ][:MOST_LINES]
    return [by_variant[each] for each in data.variant_ids if each in chosen]


def _intro(compared: Sequence[Series]) -> str:
    longest = max(compared, key=lambda each: len(each.points))
    points = longest.points
    return paragraph(
        (
            _(
                "This run and {count} before it, of the same scenario on the same machine, from "
                "{first} to {last}: medians with their 95 % intervals.",
                count=plural("{count} run", "{count} runs", len(points) - 1),
                first=run_date(longest, points[0]),
                last=run_date(longest, points[-1]),
            ),
            _("Runs are joined only where model, variant, options and workload are the same."),
        )
    )


def _nothing(trends: Sequence[Trend]) -> str:
    if all(each.found.reason for each in trends):
        return _(
            "Of fewer than {count} runs, no change can be told from noise.", count=2 * SHORTEST
        )
    return _("No step and no drift can be told from noise.")


def _column_label(series: Series) -> str:
    subject = series.subject
    return f"{label_of(subject.metric, subject.source, subject.meter)}: {one_line(subject.variant)}"


def _table(trends: Sequence[Trend], title: str, key: str) -> Table:
    """The newest runs, the newest first, by variant."""
    subject = trends[0].series.subject
    values = [point.median for each in trends for point in each.series.points]
    scale = scale_of(subject.metric, subject.unit, values)
    longest = max((each.series for each in trends), key=lambda each: len(each.points))
    points: list[dict[str, Point]] = [
        {point.run.path: point for point in each.series.points} for each in trends
    ]
    runs = list(dict.fromkeys(path for each in points for path in each))
    when = {path: point for each in points for path, point in each.items()}
    runs.sort(key=lambda path: (when[path].run.moment, when[path].run.created_at), reverse=True)
    columns = tuple(
        Column(
            key=f"{subject.metric}-{place}",
            label=_column_label(each.series),
            short=one_line(each.series.subject.variant),
            scale=scale,
            better=None,
        )
        for place, each in enumerate(trends)
    )
    rows = tuple(
        Row(
            variant=" ".join(
                (run_date(longest, when[path]), one_line(when[path].run.commit))
            ).strip(),
            engine="",
            place=place,
            repetitions=0,
            remarks=(),
            failed=False,
            values=tuple(_value(each.get(path), scale, subject.unit) for each in points),
        )
        for place, path in enumerate(runs[:MOST_ROWS])
    )
    texts = TableTexts(counted="", rows=_("run"))
    return Table(key, title, columns, rows, (), (), texts)


def _value(point: Point | None, scale: Scale, unit: str) -> Value:
    if point is None:
        return Value(NOT_MEASURED)
    text = shown(
        Summary(
            median=point.median,
            ci_low=point.low,
            ci_high=point.high,
            n=point.n,
            unit=unit,
            source="derived",
        ),
        scale,
    )
    return Value(text.value, text.interval, sort=point.median, low=point.low, high=point.high)
