"""Tables of what is no figure with an interval: verification, differences, sweeps, options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.reports.colours import framework_colours
from edgebench.reports.engines import made_up_text
from edgebench.reports.format import Scale
from edgebench.reports.languages import _
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.options import Options
    from edgebench.reports.quality import QualityView
    from edgebench.reports.sameness import SameView
    from edgebench.reports.sweeps import Sweep


def sameness_tables(data: ReportData) -> tuple[Table, ...]:
    """Each variant against the reference, one table for each prompt; none without verifying."""
    view = data.sameness
    if view is None:
        return ()
    columns = (
        _words("tokenizer", _("Tokenizer"), _("tokenizer")),
        _number("greedy", _("Greedy tokens in common"), _("greedy text"), _("tokens in common")),
        _number("top1", _("Same likeliest token"), _("top-1"), _("of positions")),
        _number("kl", _("KL divergence"), "KL", "nat"),
        _number("kl_p99", _("KL divergence, 99th percentile"), "KL p99", "nat"),
        _number(
            "difference",
            _("Largest difference of a log-likelihood"),
            _("max Δ log-likelihood"),
            "nat",
        ),
    )
    colours = _colours(data)
    tables = []
    for number, (workload, rows) in enumerate(view.by_workload):
        shown = []
        for row, prompt in rows:
            texts = (
                (
                    prompt.tokenizer,
                    prompt.greedy,
                    prompt.top1,
                    prompt.kl,
                    prompt.kl_p99,
                    prompt.difference,
                )
                if prompt
                else (_("was not compared"), *("–",) * 5)
            )
            shown.append(
                Row(
                    variant=row.variant,
                    engine=row.engine,
                    place=row.place,
                    repetitions=0,
                    remarks=(row.verdict,),
                    failed=row.bad,
                    values=tuple(Value(text) for text in texts),
                    colour=colours.get(row.variant, ""),
                )
            )
        how = _("against the reference")
        tables.append(_table(f"same-{number}", workload, columns, shown, how=how))
    return tuple(tables)


def with_verdicts(table: Table, view: SameView | None) -> Table:
    """A comparison with one more column: whether each variant computes the same model."""
    if view is None:
        return table
    column = _words("same", _("Same model?"), _("same model?"))
    rows = tuple(
        replace(row, values=(*row.values, Value(view.short[row.variant]))) for row in table.rows
    )
    return replace(table, columns=(*table.columns, column), rows=rows)


def difference_table(view: QualityView, number: int) -> Table | None:
    """Each variant's perplexity against the next one's; None where nothing was tested.

    Args:
        view: the workload's figures.
        number: its place among those that rate a text, for the table's key.
    """
    found = view.differences
    if found is None or not found.tested:
        return None
    columns = (
        _words("next", _("Next"), _("next")),
        _number("change", _("Next is higher by"), _("next is higher by"), ""),
        _number("interval", _("95 % interval"), _("95 % interval"), ""),
        _number("p", "p", "p", ""),
        _words("verdict", _("Verdict"), _("verdict")),
    )
    rows = [
        _row(
            each.first, place, (each.second, each.change, each.interval or "–", each.p, each.words)
        )
        for place, each in enumerate(found.rows)
    ]
    title = _("{workload}: differences", workload=view.workload)
    how = _("each variant against the next, in the order of their perplexities")
    return _table(f"differences-{number}", title, columns, rows, how=how)


def sweep_table(sweep: Sweep, number: int) -> Table:
    """One option's values with the decode rate of each."""
    columns = (_number("decode_rate", _("Decode rate"), _("decode"), sweep.unit),)
    rows = [
        Row(
            variant=point.value,
            engine="",
            place=place,
            repetitions=0,
            remarks=(),
            failed=False,
            values=(Value(point.figure, best=point.best),),
        )
        for place, point in enumerate(sweep.points)
    ]
    title = f"{sweep.base}, {sweep.workload}"
    return _table(f"sweep-{number}", title, columns, rows, how="", head=sweep.option)


def options_table(data: ReportData, found: Options) -> Table | None:
    """The options that differ between the variants; None where none does."""
    if not found.differing:
        return None
    columns = [_words(f"option-{place}", name, name) for place, name in enumerate(found.differing)]
    colours = _colours(data)
    made_up = {each.id: made_up_text(each) for each in data.record.variants}
    rows = [
        _row(variant, place, values, colours.get(variant, ""), made_up.get(variant, ""))
        for place, (variant, values) in enumerate(found.rows)
    ]
    return _table("options", _("Options that differ"), columns, rows, how="")


def _colours(data: ReportData) -> dict[str, str]:
    return framework_colours(data.record.variants)


def _words(key: str, label: str, short: str) -> Column:
    return Column(key, label, short, Scale(""), None, words=True)


def _number(key: str, label: str, short: str, unit: str) -> Column:
    return Column(key, label, short, Scale(unit), None)


def _row(name: str, place: int, texts: Sequence[str], colour: str = "", engine: str = "") -> Row:
    values = tuple(Value(text) for text in texts)
    return Row(name, engine, place, 0, (), failed=False, values=values, colour=colour)


def _table(
    key: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    how: str,
    head: str = "",
) -> Table:
    texts = TableTexts(how=how, counted="", rows=head or _("variant"))
    return Table(key, title, tuple(columns), tuple(rows), (), (), texts)
