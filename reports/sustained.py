"""Sustained work: what a device does at first, what it keeps up, and whether it slowed itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.reports.format import (
    NOT_MEASURED,
    RATIO,
    Scale,
    decimals_for,
    number,
    quantity,
    scale_for,
)
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import paragraph
from edgebench.reports.metric_names import metric_label, metric_short
from edgebench.reports.sustained_formula import RATE, formula_of
from edgebench.reports.table import table_of
from edgebench.reports.table_model import Column, Dress, Row, Table, TableTexts, Value
from edgebench.reports.table_values import ESTIMATED
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.sustained import SustainedRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.sustained_formula import Formula

INTRO = N_(
    "One generation after the other, each from an empty cache, for as long as the workload asks. "
    "The burst rate is that of the beginning, the sustained rate that of the end; prefills are no "
    "part of either. A phone that answers one question lives by the first, a device that works "
    "all day by the second."
)

KEYS = ("burst_rate", "sustained_rate", "sustained_ratio")
WHERE_MEASURED = ("mean_power_w", "sustained_power_w", "cpu_temperature_celsius")

RATE_KEY, POWER_KEY = "decode_rate", "mean_power_w"

MOST_ROWS = 20
"""Of the table over time; the record has all intervals."""

VERDICTS = {True: N_("yes"), False: N_("no"), None: N_("not known")}


@dataclass(frozen=True, slots=True)
class SustainedView:
    """One workload.

    Attributes:
        workload: its name.
        stretches: by variant, how it went over time; where it broke off, until then.
        table: the rates, and whether the device throttled.
        seen: by variant, what became of the rate, and what the documents' formula says; sentences.
        extent: by variant, how much there was of it, a sentence.
        over_time: a table for each variant, the figures of the pictures.
    """

    workload: str
    stretches: Mapping[str, SustainedRecord]
    table: Table
    seen: tuple[tuple[str, str], ...]
    extent: Mapping[str, str]
    over_time: tuple[Table, ...]


def sustained_views(data: ReportData) -> tuple[SustainedView, ...]:
    """One for each workload that is sustained work."""
    return tuple(
        _view(data, each.name, number)
        for number, each in enumerate(data.record.workloads)
        if each.kind == "sustained"
    )


def _view(data: ReportData, workload: str, place: int) -> SustainedView:
    whole = _stretches(data, workload, "ok")
    # What broke off is shown as far as it went, and has no figure in the table.
    stretches = {**_stretches(data, workload, "failed"), **whole}
    formulas = {
        variant: found
        for variant in whole
        if (found := formula_of(data, workload, variant)) is not None
    }
    return SustainedView(
        workload=workload,
        stretches={each: stretches[each] for each in data.variant_ids if each in stretches},
        table=_table(data, workload, whole, formulas),
        seen=tuple(
            (
                variant,
                _seen(stretches[variant], formulas.get(variant), whole=variant in whole),
            )
            for variant in data.variant_ids
            if variant in stretches
        ),
        extent={variant: _extent(each) for variant, each in stretches.items()},
        over_time=tuple(
            _over_time(workload, variant, stretches[variant], f"{place}-{number}")
            for number, variant in enumerate(data.variant_ids)
            if variant in stretches
        ),
    )


def _stretches(data: ReportData, workload: str, status: str) -> dict[str, SustainedRecord]:
    """By variant, the last one of that status."""
    return {
        trial.variant: trial.sustained
        for trial in data.run.trials
        if trial.workload == workload and trial.status == status and trial.sustained is not None
    }


def _seen(stretch: SustainedRecord, formula: Formula | None, *, whole: bool) -> str:
    if not whole:
        broke = _(
            "It broke off after {time} of {asked}, and its figures do not count; until then:",
            time=quantity(stretch.lasted_s, "s"),
            asked=quantity(stretch.asked_s, "s"),
        )
        return paragraph((broke, _("{text}.", text=recorded(stretch.throttled_because))))
    seen = _("{text}.", text=_capital(recorded(stretch.throttled_because)))
    # Why there is none is mostly the same for all, and said once below the table.
    said = [formula.text] if formula and formula.rate is not None else []
    return paragraph((seen, *said))


def _extent(stretch: SustainedRecord) -> str:
    return _(
        "{generations} generations in {time}; the first and the last {edge} are compared.",
        generations=stretch.generations,
        time=quantity(stretch.lasted_s, "s"),
        edge=quantity(stretch.edge_s, "s"),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(
    data: ReportData,
    workload: str,
    stretches: Mapping[str, SustainedRecord],
    formulas: Mapping[str, Formula],
) -> Table:
    """The figures, then whether it throttled, then what the formula predicts where it can."""
    summaries = {
        key: {each: data.summary(workload, each, key) for each in data.variant_ids}
        for key in (*KEYS, *WHERE_MEASURED)
    }
    kept = {key: values for key, values in summaries.items() if key in KEYS or _any(values)}
    ratio = Dress(metric_label("sustained_ratio"), metric_short("sustained_ratio"), RATIO, "higher")
    table = table_of(
        data,
        workload,
        kept,
        best={},
        dresses={"sustained_ratio": ratio},
        texts=TableTexts(how=_("one stretch of each variant"), counted=""),
        reasons_once=True,
        kind="sustained",
    )
    columns = [Column("throttled", _("Throttled"), _("throttled"), Scale(""), None, words=True)]
    predicts = any(each.rate is not None for each in formulas.values())
    if predicts:
        label, short = _("Sustained rate by the formula"), _("by the formula")
        scale = scale_for(RATE, [each.rate for each in formulas.values()])
        columns.append(Column("sustained_by_power", label, short, scale, None, ("estimated",)))
    rows = []
    for row in table.rows:
        stretch = stretches.get(row.variant)
        values = [Value(NOT_MEASURED if stretch is None else _(VERDICTS[stretch.throttled]))]
        if predicts:
            values.append(_predicted(formulas.get(row.variant)))
        rows.append(replace(row, values=(*row.values, *values)))
    notes = dict.fromkeys(each.text for each in formulas.values() if each.rate is None)
    return replace(
        table,
        columns=(*table.columns, *columns),
        rows=tuple(rows),
        notes=(*table.notes, *notes),
    )


def _any(values: Mapping[str, Summary | None]) -> bool:
    return any(each is not None and each.median is not None for each in values.values())


def _predicted(formula: Formula | None) -> Value:
    if formula is None or formula.rate is None:
        return Value(NOT_MEASURED, reason=formula.text if formula else "")
    return Value(
        text=number(formula.rate, decimals_for(formula.rate)),
        sort=formula.rate,
        unit=RATE,
        source="estimated",
        chip=_("predicted"),
    )


def _over_time(workload: str, variant: str, stretch: SustainedRecord, place: str) -> Table:
    """The figures over time, neighbouring intervals taken together where there are many."""
    together = -(-len(stretch.t_s) // MOST_ROWS)
    series = [
        (key, unit, _means(values, together))
        for key, unit, values in series_of(stretch)
        if any(each is not None for each in values)
    ]
    scales = [scale_for(unit, values) for _key, unit, values in series]
    sources = {key: source_of(stretch, key) for key, _unit, _values in series}
    columns = tuple(
        Column(
            key, metric_label(key), metric_short(key), scale, metric(key).better, (sources[key],)
        )
        for (key, _unit, _values), scale in zip(series, scales, strict=True)
    )
    times = _means(stretch.t_s, together)
    rows = tuple(
        Row(
            variant=quantity(time, "s"),
            engine="",
            place=place,
            repetitions=0,
            remarks=(),
            failed=False,
            values=tuple(
                _level(values[place], unit, scale, sources[key])
                for (key, unit, values), scale in zip(series, scales, strict=True)
            ),
        )
        for place, time in enumerate(times)
    )
    texts = TableTexts(how=_("means over time"), counted="", rows=_("middle of the interval"))
    title = _("{workload}, {variant}: over time", workload=workload, variant=one_line(variant))
    return Table(
        f"sustained-time-{place}", title, columns, rows, (), (), texts, notes=_of_power(stretch)
    )


def _of_power(stretch: SustainedRecord) -> tuple[str, ...]:
    """What a reader must know of the power over time, where there is a meter."""
    notes = []
    longest = stretch.power_over_s
    # Of the last interval more or less is left than of the others.
    if longest is not None and longest > 1.5 * stretch.interval_s:
        text = _(
            "The meter is too slow for intervals of {short}: the power is the mean over up to "
            "{long}.",
            short=quantity(stretch.interval_s, "s"),
            long=quantity(longest, "s"),
        )
        notes.append(text)
    if stretch.power_source is not None and stretch.power_reason:
        why = one_line(recorded(stretch.power_reason)).rstrip(".。")
        missing = (
            _("No power over time: {reason}.", reason=why)
            if longest is None
            else _("No power over time in part: {reason}.", reason=why)
        )
        notes.append(missing)
    return tuple(notes)


def source_of(stretch: SustainedRecord, key: str) -> str:
    """Who said the values of a quantity over time."""
    if key == RATE_KEY:
        return "derived"
    # Runs of before have no such field, and meters that measure were the rule.
    return (stretch.power_source or "observed") if key == POWER_KEY else "observed"


def series_of(
    stretch: SustainedRecord,
) -> tuple[tuple[str, str, Sequence[float | None]], ...]:
    """Key of the metric, unit and values of all that was watched over time."""
    return (
        (RATE_KEY, RATE, stretch.decode_rate),
        ("cpu_clock_hz", "Hz", stretch.clock_hz),
        ("cpu_temperature_celsius", "°C", stretch.temperature_celsius),
        (POWER_KEY, "W", stretch.power_w),
    )


def _level(value: float | None, unit: str, scale: Scale, source: str) -> Value:
    if value is None:
        return Value(NOT_MEASURED)
    shown = scale.of(value)
    return Value(
        text=number(shown, decimals_for(shown)),
        sort=value,
        unit=unit,
        source=source,
        chip=_(ESTIMATED) if source == ESTIMATED else "",
    )


def _means(values: Sequence[float | None], together: int) -> list[float | None]:
    found: list[float | None] = []
    for start in range(0, len(values), together):
        known = [each for each in values[start : start + together] if each is not None]
        found.append(sum(known) / len(known) if known else None)
    return found
