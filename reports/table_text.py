"""The words of a table that Markdown, LaTeX and other forms of plain text share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.reports.table_model import Column, Table, Value

MOST_STARS = 5


def heading(column: Column) -> str:
    """A column's head: its short name with the unit, such as ``TTFT, ms``."""
    unit = column.scale.unit
    if not unit or unit == column.short:
        return column.short
    return _("{name}, {unit}", name=column.short, unit=unit)


def cell_stars(value: Value) -> str:
    """A value's stars, such as ``★★★☆☆``; empty where it has none."""
    if value.stars is None:
        return ""
    return "★" * value.stars + "☆" * (MOST_STARS - value.stars)


def table_caption(table: Table, section: str) -> str:
    """What a table is, in a line: its section, its title, what its values are."""
    title = one_line(table.workload)
    named = _("{section}: {title}", section=section, title=title) if title != section else title
    return f"{named} ({table.texts.how})" if table.texts.how else named


def table_notes(table: Table) -> Iterator[str]:
    """What stands below a table, a sentence each, but for its footnotes."""
    if table.everywhere:
        yield _("All rows: {facts}.", facts=commas(table.everywhere))
    if table.sources:
        yield table.sources
    yield from table.no_intervals
    yield from table.notes
    for name, meaning in table.remarks:
        yield _("{remark}: {meaning}.", remark=name, meaning=meaning.rstrip(".。"))
