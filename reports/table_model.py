"""What a table of a report is made of, whatever form it is shown in.

Every table is one of these: HTML, Markdown, CSV, LaTeX, JSON and the terminal show the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas, semicolons

if TYPE_CHECKING:
    from edgebench.harness.metrics.definitions import Better
    from edgebench.reports.format import Scale

Origin = Literal["measured", "offered", "published", "judgement", "predicted"]
"""Where a value is from: this run; what a runner says it offers; a document's figure; a document's
opinion; a prediction, with `low` and `high` the ends of what is expected."""


@dataclass(frozen=True, slots=True)
class Where:
    """A cell of the run, for a reader who wants to see the samples behind a value.

    Attributes:
        workload, variant: the cell's, as the report names them.
        key: the metric.
    """

    workload: str
    variant: str
    key: str


@dataclass(frozen=True, slots=True)
class Column:
    """One metric, or one fact.

    Attributes:
        key, label, short: of the metric.
        scale: the unit of the whole column.
        better: which direction is better.
        sources: who said the values; more than one where the column mixes them.
        words: whether its values are words, which align left.
    """

    key: str
    label: str
    short: str
    scale: Scale
    better: Better | None
    sources: tuple[str, ...] = ()
    words: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a table.

    Attributes:
        text: the median, or a dash; or words.
        interval: the 95 % interval, or empty.
        sort: what to sort by, as stored (so in the unit of the metric), or None.
        low, high: the ends of the interval, as stored.
        unit: the unit of `sort`, `low` and `high`.
        n: how many samples it is the median of; None where it is of none.
        source: who said it: observed, engine, derived, estimated; empty without a value.
        chip: what stands beside it: the source where the column mixes several, or where it is
            from where it is not of this run; else empty.
        flags: what a reader must know about its cell, such as ``noisy``, in words.
        best: whether it is the best of its column or can't be told apart from it.
        stars: 1 to 5 where it is shown as stars; `text` then says the same in words or a number.
        footnote: the number of the footnote that says why something is missing, or None.
        reason: the text of that footnote.
        origin: where it is from.
        document: key of the document that says it, where `origin` is a document.
        where: whose samples are behind it; None where there are none.
    """

    text: str
    interval: str = ""
    sort: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    n: int | None = None
    source: str = ""
    chip: str = ""
    flags: tuple[str, ...] = ()
    best: bool = False
    stars: int | None = None
    footnote: int | None = None
    reason: str = ""
    origin: Origin = "measured"
    document: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One variant, framework or device.

    Attributes:
        variant: its name; of a variant, its id.
        engine: what it drove, with the version, or what else belongs below the name; may be empty.
        place: its place in the run, by which rows are sorted back into their order.
        repetitions: measured repetitions that succeeded.
        remarks: what a reader must know about the row, in a few words each.
        failed: whether it has no values because it failed.
        values: in the order of the columns.
        published: whether it is quoted from a document whole.
        predicted: whether it is of a device that is not at hand, and nothing of it was measured.
        colour: the class of its framework's colour, or empty; see `edgebench.reports.colours`.
    """

    variant: str
    engine: str
    place: int
    repetitions: int
    remarks: tuple[str, ...]
    failed: bool
    values: tuple[Value, ...]
    published: bool = False
    predicted: bool = False
    colour: str = ""


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
    """The words around a table, in the language in which it is made: never made on import.

    Attributes:
        how: what its values are.
        marked: what it means that a value is marked.
        counted: the head of the column with the repetitions; empty for none.
        rows: what a row is.
    """

    how: str = field(default_factory=lambda: _("median, with its 95 % interval"))
    marked: str = field(
        default_factory=lambda: _(
            "values are the best of their column, or this run can't tell them apart from it."
        )
    )
    counted: str = "n"
    rows: str = field(default_factory=lambda: _("variant"))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by columns.

    Attributes:
        key: unique in a report, of letters, digits and hyphens, such as ``comparison-0``.
        workload: its title; of a comparison, the workload's name.
        columns, rows: in the order in which they are shown.
        footnotes: the reasons for what is missing; the first is number 1.
        remarks: what each remark in the rows means.
        texts: the words around it.
        everywhere: what all rows have in common, such as the engine, where the rows don't say it.
        no_intervals: why whole columns have no interval, a sentence each.
        notes: what else a reader must know, a sentence or two each.
    """

    key: str
    workload: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[str, ...]
    remarks: tuple[tuple[str, str], ...]
    texts: TableTexts
    everywhere: tuple[str, ...] = ()
    no_intervals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> str:
        """Who said the values, by column: a sentence; empty where nothing was measured."""
        by_source: dict[str, list[str]] = {}
        for column in self.columns:
            for source in column.sources:
                by_source.setdefault(source, []).append(column.short)
        parts = [
            _("{source} ({columns})", source=_(source), columns=commas(names))
            for source, names in sorted(by_source.items())
        ]
        return _("Sources: {sources}.", sources=semicolons(parts)) if parts else ""
