r"""The tables of a report as LaTeX, to ``\input`` into a paper.

Needs the packages array, booktabs, graphicx, longtable and pdflscape, an engine that reads UTF-8,
and a paper of one column. Chinese, or another script that the paper's font lacks, needs ctex or
xeCJK besides.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.format import NARROW_SPACE
from edgebench.reports.languages import ENGLISH, _, current
from edgebench.reports.languages.words import commas, semicolons
from edgebench.reports.latex_layout import (
    Field,
    chunks,
    height,
    lines,
    longest_piece,
    paragraphs_field,
    sheets,
    text_field,
    width,
)
from edgebench.reports.sections import table_sections
from edgebench.reports.selection.select import selection_of
from edgebench.reports.table_model import Value
from edgebench.reports.table_text import (
    cell_stars,
    heading,
    table_caption,
    table_notes,
)
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.latex_layout import Sheet
    from edgebench.reports.table_model import Table

MOST_LINES = 46
"""More than this, with its notes, do not fit on a page: the table then breaks across pages."""

_BOLD = 1.15
_SMALLER = 0.8

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # A command of its own is known to some encodings of fonts only.
    '"': r"\symbol{34}",
    "–": r"--",
    NARROW_SPACE: r"\,",
    "\N{NO-BREAK SPACE}": r"~",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "×": r"\texttimes{}",
    "±": r"\textpm{}",
    "°": r"\textdegree{}",
    "Δ": r"\ensuremath{\Delta}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "★": r"\ensuremath{\star}",
    "☆": r"\ensuremath{\cdot}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
    "→": r"\ensuremath{\rightarrow}",
    "−": r"\ensuremath{-}",
}
# Two hyphens would become a dash, and a question mark before a backtick a turned one.
_PATTERN = re.compile(
    "|".join((r"(?<![\w.)-])-(?=\d)", r"-(?=-)", *map(re.escape, ("?`", "!`", *_SPECIAL))))
)
_LABEL = re.compile(r"[^A-Za-z0-9-]+")


def render_latex(data: ReportData) -> str:
    r"""All tables of a report, each with a caption and a label ``tab:KEY``."""
    head = (
        "% "
        + latex(_("Tables of {title}.", title=data.record.scenario_name))
        + "\n% "
        + r"\usepackage{array,booktabs,graphicx,longtable,pdflscape}"
    )
    if current() != ENGLISH:
        head += "\n% " + r"\usepackage{ctex}"
    tables = (
        latex_table(table, section.title)
        for section in table_sections(data, selection_of(data))
        for table in section.tables
    )
    return "\n\n".join((head, *tables)) + "\n"


def latex(text: str) -> str:
    """A text from outside as LaTeX that shows the text and does nothing."""
    # White space that a number is grouped by is none that can be dropped.
    line = NARROW_SPACE.join(map(one_line, text.split(NARROW_SPACE)))
    return _PATTERN.sub(_escaped, line)


def latex_table(table: Table, section: str) -> str:
    """One table; several, each with the names of the rows, where it is too wide for a page.

    What is the same in all rows stands below it and not in a column. Nothing is shrunk: a table
    that is too wide is set in a smaller size, then on a turned page, and then split. One that is
    longer than a page, or turned, breaks across pages; all others float.

    Args:
        table: what is in it.
        section: the heading that it stands below, for its caption.
    """
    columns = [
        *(_values(table, place) for place in range(len(table.columns))),
        *_counted(table),
        *_remarks(table),
    ]
    kept = [each for each in columns if not each.constant] or columns[:1]
    dropped = [each for each in columns if each not in kept]
    engines, below_names = _engines(table)
    facts = [*engines, *(each.fact for each in dropped)]
    numbers = _numbers(table, kept)
    notes = [
        *([_("The same in all rows: {facts}.", facts=semicolons(facts))] if facts else []),
        *table_notes(table),
    ]
    below = [latex(each) for each in notes]
    below += [
        rf"\textsuperscript{{{numbers[old]}}} {latex(each)}"
        for old, each in enumerate(table.footnotes, 1)
        if old in numbers
    ]
    # Half an em is what a letter takes, and what LaTeX makes of it is a little longer.
    noted = [width(each) for each in (*notes, *table.footnotes)]
    fields = [_names(table, below=below_names), *(each.field(numbers) for each in kept)]
    found = sheets(fields)
    name = table_caption(table, section)
    label = f"tab:{_LABEL.sub('-', table.key)}"
    return "\n\n".join(
        _sheet(
            each,
            caption=name if len(found) == 1 else f"{name} ({number}/{len(found)})",
            label=label if number == 1 else f"{label}-{number}",
            notes=below if number == len(found) else [],
            noted=noted if number == len(found) else [],
        )
        for number, each in enumerate(found, 1)
    )


@dataclass(frozen=True)
class _Column:
    """A column before it is known whether it is needed.

    Attributes:
        head: its heading.
        values: of each row.
        words: whether they are texts, which align left and break.
    """

    head: str
    values: tuple[Value, ...]
    words: bool

    @property
    def constant(self) -> bool:
        """Whether all rows say the same, and nothing but words or a number."""
        said = {(each.text, each.footnote) for each in self.values}
        more = any(each.interval or each.chip or each.stars or each.best for each in self.values)
        return len(self.values) > 1 and len(said) == 1 and not more

    @property
    def fact(self) -> str:
        """What all rows say."""
        value = self.values[0]
        if not value.reason or value.footnote is None:
            return _("{column}: {value}", column=self.head, value=value.text)
        return _(
            "{column}: {value} ({reason})",
            column=self.head,
            value=value.text,
            reason=one_line(value.reason),
        )

    def field(self, numbers: Mapping[int, int]) -> Field:
        """What of it is laid out.

        Args:
            numbers: new numbers of the footnotes, by old.
        """
        cells = [_value(each, self.words, numbers) for each in self.values]
        texts = tuple(" ".join((cell_stars(each), each.text)).strip() for each in self.values)
        if self.words and not any(map(_below, self.values)):
            return text_field(self.head, texts, cells)
        most = max(
            (
                max(width(text) * (_BOLD if each.best else 1) + 1, _SMALLER * width(_below(each)))
                for text, each in zip(texts, self.values, strict=True)
            ),
            default=0.0,
        )
        wide = max(most, longest_piece(self.head))
        return Field(self.head, "l" if self.words else "r", tuple(cells), texts, wide, wide)


def _values(table: Table, place: int) -> _Column:
    column = table.columns[place]
    return _Column(heading(column), tuple(row.values[place] for row in table.rows), column.words)


def _counted(table: Table) -> Iterator[_Column]:
    if table.texts.counted:
        counts = (str(row.repetitions) if row.repetitions else "" for row in table.rows)
        yield _Column(table.texts.counted, tuple(map(Value, counts)), words=False)


def _remarks(table: Table) -> Iterator[_Column]:
    if any(row.remarks for row in table.rows):
        texts = (commas(row.remarks) for row in table.rows)
        yield _Column(_("remarks"), tuple(map(Value, texts)), words=True)


def _engines(table: Table) -> tuple[list[str], bool]:
    """What all rows have below their names, and whether it must stand there."""
    engines = {row.engine for row in table.rows}
    if len(table.rows) > 1 and len(engines) == 1 and "" not in engines:
        return [*engines], False
    return [], any(engines)


def _numbers(table: Table, kept: Sequence[_Column]) -> dict[int, int]:
    """New numbers of the footnotes that are still called, by old."""
    called = {each.footnote for column in kept for each in column.values}
    return {
        old: new
        for new, old in enumerate(
            (each for each in range(1, len(table.footnotes) + 1) if each in called), 1
        )
    }


def _names(table: Table, *, below: bool) -> Field:
    texts = [row.variant for row in table.rows]
    cells = []
    for row in table.rows:
        name = _broken(row.variant)
        if row.published or row.predicted:
            name = rf"\textit{{{name}}}"
        if below and row.engine:
            # A column of texts is one of paragraphs where it is wide enough for two lines.
            name += rf"\newline {{\scriptsize {_broken(row.engine)}}}"
        cells.append(name)
    if not below:
        return text_field(table.texts.rows, texts, cells)
    longest = [max(row.variant, row.engine, key=width) for row in table.rows]
    return paragraphs_field(table.texts.rows, longest, cells)


def _below(value: Value) -> str:
    return " ".join(filter(None, (value.interval, value.chip)))


def _value(value: Value, words: bool, numbers: Mapping[int, int]) -> str:  # noqa: FBT001
    text = _broken(value.text)
    if value.best:
        text = rf"\textbf{{{text}}}"
    stars = latex(cell_stars(value))
    called = numbers.get(value.footnote) if value.footnote is not None else None
    number = rf"\textsuperscript{{{called}}}" if called is not None else ""
    first = " ".join(filter(None, (stars, text))) + number
    below = _below(value)
    side = "l" if words else "r"
    return stacked((first, rf"\scriptsize {latex(below)}"), side) if below else first


def _broken(text: str) -> str:
    """A text whose long pieces may break into lines, without a hyphen that is not theirs."""
    return " ".join(
        r"\hspace{0pt}".join(map(latex, chunks(word))) for word in one_line(text).split(" ")
    )


def stacked(lines: Sequence[str], side: str, corner: str = "t") -> str:
    """Lines above each other in one cell."""
    text = r"\\ ".join(lines)
    return rf"\begin{{tabular}}[{corner}]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}"


def _sheet(
    sheet: Sheet, *, caption: str, label: str, notes: Sequence[str], noted: Sequence[float]
) -> str:
    page = sheet.page
    named = rf"\caption{{{latex(caption)}}}"
    labelled = rf"\label{{{label}}}"
    spec = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{wide / 2:g}em}}" if each.side == "p" else each.side
        for each, wide in zip(sheet.fields, sheet.widths, strict=True)
    )
    heads = " & ".join(_head(*each) for each in zip(sheet.fields, sheet.widths, strict=True))
    rows = zip(*(each.cells for each in sheet.fields), strict=True)
    body = [rf"{' & '.join(row)} \\" for row in rows]
    below = [
        r"\par\smallskip\footnotesize\raggedright",
        *(rf"\par {each}" for each in notes),
    ] if notes else []  # fmt: skip
    size = rf"{page.font}\setlength{{\tabcolsep}}{{{page.space_pt:g}pt}}"
    high = height(sheet) + sum(math.ceil(each / page.room) for each in noted)
    if high <= MOST_LINES and not page.on_its_side:
        # Where a paper's lines are shorter than was reckoned with, better small than cut off.
        fit = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
        return "\n".join(
            (
                r"\begin{table}[htbp]",
                r"\centering",
                named,
                labelled,
                size,
                rf"\resizebox{{{fit}}}{{!}}{{%",
                rf"\begin{{tabular}}{{{spec}}}",
                rf"\toprule {heads} \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                *below,
                r"\end{table}",
            )
        )
    lines = (
        rf"{{{size}\setlength{{\LTcapwidth}}{{\linewidth}}",
        rf"\begin{{longtable}}{{{spec}}}",
        rf"{named}{labelled}\\",
        rf"\toprule {heads} \\ \midrule \endfirsthead",
        rf"\toprule {heads} \\ \midrule \endhead",
        r"\bottomrule \endfoot",
        *body,
        r"\end{longtable}",
        *below,
        r"\par}",
    )
    if page.on_its_side:
        lines = (r"\begin{landscape}", *lines, r"\end{landscape}")
    return "\n".join(lines)


def _head(field: Field, wide: float) -> str:
    found = [latex(each) for each in lines(field.head, wide)]
    return (
        stacked(found, field.side, "b") if len(found) > 1 and field.side != "p" else " ".join(found)
    )


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if found == "-":
        negative = match.string[match.end() :][:1].isdigit()
        return r"\ensuremath{-}" if negative else "-{}"
    return f"{found[0]}{{}}{found[1]}" if len(found) > 1 else _SPECIAL[found]
