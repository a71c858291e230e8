"""Sustained work for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as Printed
from rich.text import Text

from edgebench.reports.sustained import sustained_views
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.reports.data import ReportData
    from edgebench.reports.table_model import Column

COLUMNS = ("burst_rate", "sustained_rate", "sustained_ratio", "throttled", "sustained_by_power")
"""What 80 characters hold."""


def sustained_table(data: ReportData) -> Printed:
    """The sustained work of a run, readable at 80 columns."""
    views = sustained_views(data)
    heads: dict[str, Column] = {}
    for view in views:
        heads |= {each.key: each for each in view.table.columns if each.key in COLUMNS}
    table = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("sustained work", overflow="fold", ratio=1, min_width=12)
    for column in heads.values():
        table.add_column(column.short, justify="right", no_wrap=True)
    for view in views:
        own = {column.key: place for place, column in enumerate(view.table.columns)}
        units = [heads[key].scale.unit if key in own else "" for key in heads]
        name = Text(one_line(view.workload), style="bold")
        table.add_row(name, *(Text(each, style="dim") for each in units))
        for row in view.table.rows:
            cells = [row.values[own[key]] if key in own else None for key in heads]
            texts = [
                Text() if each is None else Text(" ".join(filter(None, (each.text, each.chip))))
                for each in cells
            ]
            who = Text(one_line(row.variant), style="red" if row.failed else "")
            if row.remarks:
                who.append("\n" + ", ".join(row.remarks), style="dim")
            table.add_row(who, *texts)
        table.add_section()
    return table


def sustained_text(data: ReportData) -> Text:
    """What was seen of each, a paragraph each."""
    text = Text()
    for view in sustained_views(data):
        for variant, seen in view.seen:
            text.append(f"{one_line(view.workload)}, {one_line(variant)}: {seen}\n")
        for note in view.table.notes:
            text.append(f"{one_line(view.workload)}: {note}\n", style="dim")
    text.rstrip()
    return text
