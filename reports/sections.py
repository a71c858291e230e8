"""All tables of a report, by section: what Markdown, JSON and LaTeX show, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.documents import document_notes
from edgebench.reports.features_table import features_tables
from edgebench.reports.frameworks_table import frameworks_table
from edgebench.reports.languages import _
from edgebench.reports.options import options
from edgebench.reports.parts import runs_table
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.quality import quality_views
from edgebench.reports.quantization import quantization_table
from edgebench.reports.sustained import sustained_views
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import task_tables
from edgebench.reports.word_tables import (
    difference_table,
    options_table,
    sameness_tables,
    sweep_table,
    with_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.view import Selection
    from edgebench.reports.table_model import Table


@dataclass(frozen=True, slots=True)
class Section:
    """Tables that stand below one heading.

    Attributes:
        key: such as ``comparison``.
        title: in words.
        tables: at least one.
    """

    key: str
    title: str
    tables: tuple[Table, ...]


def table_sections(data: ReportData, selection: Selection | None) -> tuple[Section, ...]:
    """Every section that has a table.

    Args:
        data: the report's data.
        selection: what to choose, whose table of the measurements is one of them; None leaves it
            out.
    """
    views = quality_views(data)
    formats = quantization_table(data)
    quality: list[Table | None] = []
    for number, view in enumerate(views):
        quality += [view.table, difference_table(view, number)]
    sustained: list[Table | None] = []
    for each in sustained_views(data):
        sustained += [each.table, *each.over_time]
    found = (
        ("runs", _("Runs"), [runs_table(data)]),
        ("choice", _("Recommendation"), [_measured(selection)]),
        ("frameworks", _("Frameworks"), [frameworks_table(data)]),
        (
            "comparison",
            _("Comparison"),
            [with_verdicts(each, data.sameness) for each in comparison_rows(data)],
        ),
        ("platforms", _("Platforms"), [platforms_table(data)]),
        ("features", _("Features"), features_tables(data)),
        ("documents", _("The documents' figures"), document_notes(data).tables),
        ("sustained", _("Sustained work"), sustained),
        ("tasks", _("Tasks"), [each.table for each in task_tables(data)]),
        ("quality", _("Quality"), quality),
        ("formats", _("Quantisation"), [formats.table if formats else None]),
        ("sameness", _("Same model?"), sameness_tables(data)),
        (
            "sweeps",
            _("Sweeps"),
            [sweep_table(each, number) for number, each in enumerate(sweeps(data))],
        ),
        ("options", _("Options in effect"), [options_table(data, options(data))]),
    )
    return tuple(
        Section(key, title, kept) for key, title, tables in found if (kept := _kept(tables))
    )


def _measured(selection: Selection | None) -> Table | None:
    if selection is None or selection.measured is None:
        return None
    return selection.measured.table


def _kept(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    return tuple(each for each in tables if each is not None)
