"""The comparison table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import TASK_KEYS, task_tables
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.reports.data import ReportData
    from edgebench.reports.sameness import SameView
    from edgebench.reports.table import Column, ComparisonTable, Row, Value

KEYS = ("decode_rate", "ttft_s", "prefill_rate", "peak_rss_bytes")
"""Four columns with intervals are what 80 characters hold."""


def comparison_table(data: ReportData) -> Table:
    """The comparison of all workloads, readable at 80 columns.

    Each value is a median with its 95 % interval below it; the best one, and those that can't be
    told apart from it, are green with a star.
    """
    tables = comparison_rows(data)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("variant", overflow="fold", ratio=1, min_width=12)
    for column in _columns(tables[0]) if tables else ():
        # A name may wrap, an interval had better not.
        table.add_column(column.short, justify="right", no_wrap=True)
    for comparison in tables:
        _add(table, comparison)
    if any(value.best for each in tables for row in each.rows for value in row.values):
        table.caption = "* the best, and what this run can't tell apart from it"
        table.caption_justify = "left"
    return table


def task_table(data: ReportData) -> Table:
    """The whole tasks, readable at 80 columns; none of it is marked as the best."""
    tables = [each.table for each in task_tables(data)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("task", overflow="fold", ratio=1, min_width=12)
    for column in _columns(tables[0], TASK_KEYS) if tables else ():
        table.add_column(column.short, justify="right", no_wrap=True)
    for comparison in tables:
        _add(table, comparison, TASK_KEYS)
    return table


def sameness_table(view: SameView) -> Table:
    """Every variant against the reference, readable at 80 columns; what needs words is left out."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("same model?", overflow="fold", ratio=1, min_width=12)
    for name in ("ids", "greedy", "top-1", "KL", "KL p99", "max Δ"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in view.rows:
        verdict = Text(row.verdict, style="red" if row.bad else "")
        if row.verdict == "agrees":
            verdict.stylize("green")
        engine = f"\n  {one_line(row.engine)}" if row.engine else ""
        table.add_row(Text.assemble(one_line(row.variant), (engine, "dim"), "\n  ", verdict))
        for prompt in row.prompts:
            table.add_row(
                Text(f"  {one_line(prompt.workload)}", style="dim"),
                prompt.tokenizer,
                prompt.greedy.replace(" of ", "/"),
                prompt.top1,
                prompt.kl,
                prompt.kl_p99,
                prompt.difference,
            )
        table.add_section()
    return table


def sameness_text(view: SameView) -> Text:
    """What the table has no room for: why, where texts part, and the judgement, a line each."""
    text = Text()
    for row in view.rows:
        for why in row.why:
            text.append(f"{one_line(row.variant)}: {why}\n", style="red" if row.bad else "")
    for who, remark in view.remarks:
        text.append(f"{one_line(who)}: {remark}\n")
    for note in filter(None, (view.reference, *view.notes)):
        text.append(f"{note}\n", style="dim")
    return text.append(view.judgement, style="red" if view.bad else "bold")


def _add(table: Table, comparison: ComparisonTable, keys: tuple[str, ...] = KEYS) -> None:
    columns = _columns(comparison, keys)
    places = [comparison.columns.index(column) for column in columns]
    # Units differ between workloads (a long prompt's TTFT in s), so each section names its own.
    units = [Text(column.scale.unit, style="dim") for column in columns]
    table.add_row(Text(one_line(comparison.workload), style="bold"), *units)
    for row in comparison.rows:
        cells = [_cell(row.values[place]) for place in places]
        table.add_row(_name(row), *cells)
    table.add_section()


def _columns(comparison: ComparisonTable, keys: tuple[str, ...] = KEYS) -> list[Column]:
    return [column for column in comparison.columns if column.key in keys]


def _name(row: Row) -> Text:
    text = Text(one_line(row.variant), style="red" if row.failed else "")
    remarks = [*filter(None, [one_line(row.engine)]), f"n={row.repetitions}", *row.remarks]
    return text.append("\n" + ", ".join(remarks), style="dim")


def _cell(value: Value) -> Text:
    text = Text(f"{value.text}{'*' if value.best else ''}", style="green" if value.best else "")
    if value.source:
        text.append(f" {value.source}", style="dim")
    return text.append(f"\n{value.interval}", style="dim") if value.interval else text
