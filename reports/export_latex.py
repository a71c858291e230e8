r"""The tables of a report as LaTeX, to ``\input`` into a paper.

Needs the packages booktabs, graphicx and longtable, and an engine that reads UTF-8. Chinese, or
another script that the paper's font lacks, needs ctex or xeCJK besides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edgebench.reports.format import NARROW_SPACE
from edgebench.reports.languages import ENGLISH, _, current
from edgebench.reports.sections import table_sections
from edgebench.reports.selection.select import selection_of
from edgebench.reports.table_text import (
    cell_stars,
    heading,
    table_caption,
    table_notes,
)
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.table_model import Column, Row, Table, Value

MOST_ROWS = 40
"""More than this do not fit on a page: the table then breaks across pages."""

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
    '"': r"\textquotedbl{}",
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
    r"""All tables of a report, each in a float with a caption and a label ``tab:KEY``."""
    head = (
        "% "
        + latex(_("Tables of {title}.", title=data.record.scenario_name))
        + "\n% "
        + r"\usepackage{booktabs,graphicx,longtable}"
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
    """One table.

    Args:
        table: what is in it.
        section: the heading that it stands below, for its caption.
    """
    remarks = any(row.remarks for row in table.rows)
    counted = table.texts.counted
    head = [
        table.texts.rows,
        *(heading(column) for column in table.columns),
        *([counted] if counted else []),
        *([_("remarks")] if remarks else []),
    ]
    spec = (
        "l"
        + "".join("l" if column.words else "r" for column in table.columns)
        + ("r" if counted else "")
        + ("l" if remarks else "")
    )
    lines = [
        [
            _name(row),
            *map(_value, row.values, table.columns),
            *([str(row.repetitions) if row.repetitions else ""] if counted else []),
            *([latex(", ".join(row.remarks))] if remarks else []),
        ]
        for row in table.rows
    ]
    caption = rf"\caption{{{latex(table_caption(table, section))}}}"
    label = rf"\label{{tab:{_LABEL.sub('-', table.key)}}}"
    heads = rf"{' & '.join(map(latex, head))} \\"
    body = "\n".join(rf"{' & '.join(line)} \\" for line in lines)
    below = "\n".join(rf"\par {each}" for each in _notes(table))
    notes = "\\par\\smallskip\\footnotesize\\raggedright\n" + below if below else ""
    if len(table.rows) > MOST_ROWS:
        long = (
            r"{\small",
            rf"\begin{{longtable}}{{{spec}}}",
            rf"{caption}{label}\\",
            rf"\toprule {heads} \midrule \endfirsthead",
            rf"\toprule {heads} \midrule \endhead",
            r"\bottomrule \endfoot",
            body,
            r"\end{longtable}",
            *([notes] if notes else []),
            r"\par}",
        )
        return "\n".join(long)
    fit = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
    floated = (
        r"\begin{table}[htbp]",
        r"\centering",
        caption,
        label,
        rf"\resizebox{{{fit}}}{{!}}{{%",
        rf"\begin{{tabular}}{{{spec}}}",
        rf"\toprule {heads}",
        r"\midrule",
        body,
        r"\bottomrule",
        r"\end{tabular}}",
        *([notes] if notes else []),
        r"\end{table}",
    )
    return "\n".join(floated)


def _name(row: Row) -> str:
    name = latex(row.variant)
    if row.published:
        name = rf"\textit{{{name}}}"
    return _stacked((name, rf"\scriptsize {latex(row.engine)}"), "l") if row.engine else name


def _value(value: Value, column: Column) -> str:
    text = latex(value.text)
    if value.best:
        text = rf"\textbf{{{text}}}"
    stars = cell_stars(value)
    parts = [latex(stars) if stars else "", text]
    parts.append(rf"\textsuperscript{{{value.footnote}}}" if value.footnote else "")
    first = " ".join(filter(None, parts[:2])) + parts[2]
    below = " ".join(filter(None, (value.interval, value.chip)))
    side = "l" if column.words else "r"
    return _stacked((first, rf"\scriptsize {latex(below)}"), side) if below else first


def _stacked(lines: Sequence[str], side: str) -> str:
    text = r"\\ ".join(lines)
    return rf"\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}"


def _notes(table: Table) -> Iterator[str]:
    for each in table_notes(table):
        yield latex(each)
    for number, each in enumerate(table.footnotes, 1):
        yield rf"\textsuperscript{{{number}}} {latex(each)}"


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if found == "-":
        negative = match.string[match.end() :][:1].isdigit()
        return r"\ensuremath{-}" if negative else "-{}"
    return f"{found[0]}{{}}{found[1]}" if len(found) > 1 else _SPECIAL[found]
