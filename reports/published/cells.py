"""Builds the cells of the documents' tables: quoted ones beside measured ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness.compare.model import FACTS
from edgebench.reports.broken import broken_text
from edgebench.reports.data import BROKEN
from edgebench.reports.format import NOT_MEASURED, Scale
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.published.load import documents
from edgebench.reports.table import flag_text
from edgebench.reports.table_model import Column, Value, Where
from edgebench.reports.table_values import value_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.harness.metrics.definitions import Better
    from edgebench.harness.results.cell import Cell, Summary
    from edgebench.reports.published.model import Figure, Words


class Footnotes:
    """Numbers the reasons of one table, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """The footnotes; the first is number 1."""
        return tuple(self._numbers)

    def missing(self, reason: str, where: Where | None = None) -> Value:
        """A dash with its reason."""
        text = one_line(reason)
        return Value(NOT_MEASURED, footnote=self.number(text), reason=text, where=where)

    def silent(self, reason: str, document: str) -> Value:
        """A dash in a document's row, with the reason."""
        return replace(self.missing(reason), origin="published", document=document)

    def number(self, reason: str) -> int | None:
        """The number of a footnote; None without a reason."""
        text = one_line(reason)
        return self._numbers.setdefault(text, len(self._numbers) + 1) if text else None


def words_column(key: str, label: str, short: str = "") -> Column:
    """A column of words."""
    return Column(key, label, short or label, Scale(""), None, words=True)


def figures_column(
    key: str, label: str, short: str, scale: Scale, better: Better | None, *sources: str
) -> Column:
    """A column of numbers; without sources where nothing of it was measured."""
    return Column(key, label, short, scale, better, tuple(sorted(set(filter(None, sources)))))


def chip(document: str) -> str:
    """What stands beside a figure of a document, such as ``published: chapter``."""
    return _("published: {document}", document=documents()[document].short.said())


def opinion_chip(document: str) -> str:
    """What stands beside a judgement of a document."""
    return _("judgement: {document}", document=documents()[document].short.said())


def published_meaning() -> str:
    """What `chip` means."""
    return _(
        "a document's figures and words, as printed there: not measured by edgebench, without "
        "interval or number of repetitions"
    )


def quoted(figure: Figure, document: str) -> Value:
    """A figure as printed in a document; its row says of which."""
    return Value(
        figure.text,
        sort=figure.middle,
        unit=figure.unit,
        origin="published",
        document=document,
    )


def quoted_fact(words: Words, document: str) -> Value:
    """What a document says in words and could be checked, such as a format's name."""
    return Value(words.said(), origin="published", document=document)


def judged(judgement: Words, document: str) -> Value:
    """What a document thinks; with its stars, if it gives any."""
    stars: int | None = getattr(judgement, "stars", None)
    return Value(
        judgement.said(),
        sort=None if stars is None else float(stars),
        stars=stars,
        origin="judgement",
        document=document,
    )


def measured(
    summary: Summary | None,
    cell: Cell,
    key: str,
    scale: Scale,
    footnotes: Footnotes,
    reason: str = "",
) -> Value:
    """A median of a cell with all that belongs to it, or why there is none.

    Args:
        summary: of the cell.
        cell: whose samples are behind it.
        key: the metric.
        scale: the column's unit.
        footnotes: of the table.
        reason: why it is missing, where the summary does not tell.
    """
    where = Where(cell.workload, cell.variant, key)
    if BROKEN in cell.flags and key not in FACTS:
        return footnotes.missing(broken_text(), where)
    if summary is None or summary.median is None:
        failed = cell.failure.message if cell.failure is not None and not cell.n else ""
        why = recorded((summary and summary.reason) or "") or (
            _("failed: {message}", message=recorded(failed)) if failed else reason
        )
        return footnotes.missing(why or _("not measured"), where)
    value = value_of(summary, scale)
    no_interval = one_line(recorded(summary.reason or "")) if not value.interval else ""
    return replace(
        value,
        flags=tuple(flag_text(each) for each in cell.flags),
        footnote=footnotes.number(no_interval),
        reason=no_interval,
        where=where,
    )
