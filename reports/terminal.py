"""The comparison table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from edgebench.reports.table import comparison_rows
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.reports.data import ReportData
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


def _add(table: Table, comparison: ComparisonTable) -> None:
    columns = _columns(comparison)
    places = [comparison.columns.index(column) for column in columns]
    # Units differ between workloads (a long prompt's TTFT in s), so each section names its own.
    units = [Text(column.scale.unit, style="dim") for column in columns]
    table.add_row(Text(one_line(comparison.workload), style="bold"), *units)
    for row in comparison.rows:
        cells = [_cell(row.values[place]) for place in places]
        table.add_row(_name(row), *cells)
    table.add_section()


def _columns(comparison: ComparisonTable) -> list[Column]:
    return [column for column in comparison.columns if column.key in KEYS]


def _name(row: Row) -> Text:
    text = Text(one_line(row.variant), style="red" if row.failed else "")
    remarks = [f"n={row.repetitions}", *row.remarks]
    return text.append("\n" + ", ".join(remarks), style="dim")


def _cell(value: Value) -> Text:
    text = Text(f"{value.text}{'*' if value.best else ''}", style="green" if value.best else "")
    if value.source:
        text.append(f" {value.source}", style="dim")
    return text.append(f"\n{value.interval}", style="dim") if value.interval else text
