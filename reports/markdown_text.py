"""The pieces of a Markdown report: tables, lists, sentences; all that is from outside escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import NARROW_SPACE
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas
from edgebench.reports.table_text import cell_stars, heading, table_notes
from edgebench.reports.text import markdown, markdown_code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from edgebench.reports.sentences import Sentence
    from edgebench.reports.table_model import Row, Table, Value


def title(text: str, *, level: int = 2) -> str:
    """A heading."""
    return f"{'#' * level} {markdown(text)}"


def table_blocks(table: Table, *, names: Collection[str]) -> Iterator[str]:
    """A table and all that stands below it, without its title.

    Args:
        table: what is in it.
        names: of variants, which are set as code.
    """
    yield _written(table, names)
    below = [markdown(each) for each in table_notes(table)]
    if below:
        yield bullets(below)
    if table.footnotes:
        yield "\n".join(
            f"{number}. {markdown(note)}" for number, note in enumerate(table.footnotes, 1)
        )


def _written(table: Table, names: Collection[str]) -> str:
    # A column that would be empty in every row tells nothing.
    counted = [_(table.texts.counted)] if table.texts.counted else []
    engine = [_("engine")] if any(row.engine for row in table.rows) else []
    remarks = [_("remarks")] if any(row.remarks for row in table.rows) else []
    columns = [heading(column) for column in table.columns]
    head = [_(table.texts.rows), *engine, *columns, *counted, *remarks]
    rows = [
        [
            _name(row, names),
            *(markdown(row.engine) for _each in engine),
            *(_value(value) for value in row.values),
            *("" if row.published or row.predicted else str(row.repetitions) for _each in counted),
            *(_remarks(row) for _each in remarks),
        ]
        for row in table.rows
    ]
    first = 1 + len(engine)
    right = {first + place for place, column in enumerate(table.columns) if not column.words}
    right |= {first + len(columns)} if counted else set()
    return rows_and_columns([markdown(each) for each in head], rows, numbers=right)


def _name(row: Row, names: Collection[str]) -> str:
    if row.published or row.predicted:
        return f"*{markdown(row.variant)}*"
    return markdown_code(row.variant) if row.variant in names else markdown(row.variant)


def _remarks(row: Row) -> str:
    text = markdown(commas(row.remarks))
    return f"**{text}**" if text and row.failed else text


def _value(value: Value) -> str:
    # White space that a number is grouped by is none that can be dropped.
    text = NARROW_SPACE.join(map(inline, value.text.split(NARROW_SPACE)))
    interval = NARROW_SPACE.join(map(inline, value.interval.split(NARROW_SPACE)))
    parts = [
        cell_stars(value),
        f"**{text}**" if value.best else text,
        interval,
        f"*{markdown(value.chip)}*" if value.chip else "",
    ]
    note = f" ({value.footnote})" if value.footnote else ""
    return " ".join(part for part in parts if part) + note


def rows_and_columns(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()
) -> str:
    """A table of texts that are Markdown already.

    Args:
        head: one for each column.
        rows: as many texts each.
        numbers: places of the columns that align right.
    """
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def sentence_text(sentence: Sentence) -> str:
    """A sentence with its names in bold."""
    return "".join(
        f"**{markdown(part.text)}**"
        if not isinstance(part, str)
        else _within(part)
        if place
        else spaced(part)
        for place, part in enumerate(sentence)
    )


def spaced(text: str) -> str:
    """`markdown`, with the spaces at both ends, which join a sentence's parts, kept."""
    before = " " if text.startswith(" ") else ""
    after = " " if text.endswith(" ") and text.strip() else ""
    return f"{before}{markdown(text)}{after}"


def inline(text: str) -> str:
    """`markdown`, of a text that does not begin a line, where a sign or a colon means nothing."""
    return markdown(f".{text.strip()}")[1:]


def _within(text: str) -> str:
    """`inline`, with the spaces at both ends kept."""
    before = " " if text.startswith(" ") else ""
    after = " " if text.endswith(" ") and text.strip() else ""
    return f"{before}{inline(text)}{after}"


def bullets(lines: Iterable[str]) -> str:
    """A list of texts that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def pair(label: str, text: str) -> str:
    """A label and what belongs to it, both Markdown already, with the language's colon between."""
    return f"{label}{_(': ')}{text}"
