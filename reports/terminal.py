"""The comparison table for the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table as Printed
from rich.text import Text

from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.sentences import plain
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import TASK_KEYS, task_tables
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.quantization import QuantizationTable
    from edgebench.reports.sameness import SameView
    from edgebench.reports.table_model import Column, Row, Table, Value

KEYS = ("decode_rate", "ttft_s", "prefill_rate", "peak_rss_bytes")
"""Four columns with intervals are what 80 characters hold."""

ENERGY = "energy_per_token_j"
"""A fifth one, where a meter told it, at the cost of intervals."""

YIELDING = ("peak_rss_bytes", "prefill_rate")
"""Whose intervals make room for it, the first one first."""

_GAP = 3
"""Characters between two columns."""

WIDTH = 80
"""Of a terminal, at least."""

NO_ROOM = ("ttft_relative", "implied_bandwidth", "bandwidth_share")
"""Columns of the documents' tables that 80 characters have no room for."""

QUALITY_COLUMNS = (
    "perplexity",
    "perplexity_ratio",
    "bits_per_byte",
    "kl_divergence",
    "top1_agreement",
)
QUALITY_PLAIN = ("bits_per_byte", "kl_divergence", "top1_agreement")
FORMAT_COLUMNS = (
    "model_bytes",
    "bits_per_weight",
    "perplexity",
    "perplexity_change",
    "relative_speed",
    "relative_read",
)
FORMAT_PLAIN = ("perplexity",)
"""Of those, the ones whose intervals 80 characters can't hold."""


def comparison_table(data: ReportData) -> Printed:
    """The comparison of all workloads, readable at 80 columns.

    Each value is a median with its 95 % interval below it; the best one, and those that can't be
    told apart from it, are green with a star. Energy per token is there where it was measured,
    without its interval, and where that makes room, in place of those of some others.
    """
    tables = comparison_rows(data)
    energy = next(
        (column for each in tables for column in each.columns if column.key == ENERGY), None
    )
    columns = _columns(tables[0], KEYS) if tables else []
    if energy is not None:
        for count in range(len(YIELDING) + 1):
            wide = _comparison(tables, [*columns, energy], without=(ENERGY, *YIELDING[:count]))
            if _fits(wide):
                return wide
    return _comparison(tables, columns)


def _fits(table: Printed) -> bool:
    """Whether a terminal holds a table; a long name is folded, a value is not."""
    console = Console(width=WIDTH)
    names, *values = table.columns
    wide = sum(
        _GAP + max(console.measure(each).maximum for each in (column.header, *column.cells))
        for column in values
    )
    return (names.min_width or 0) + wide <= WIDTH


def _comparison(
    tables: Sequence[Table], columns: Sequence[Column], without: tuple[str, ...] = ()
) -> Printed:
    table = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("variant", overflow="fold", ratio=1, min_width=12)
    for column in columns:
        # A name may wrap, an interval had better not.
        table.add_column(column.short, justify="right", no_wrap=True)
    for comparison in tables:
        _add(table, comparison, columns, without=without)
    values = [value for each in tables for row in each.rows for value in row.values]
    captions = []
    if any(value.best for value in values):
        captions.append("* the best, and what this run can't tell apart from it")
    if any(value.source == "engine" for value in values):
        captions.append("engine: the framework's own tool told it")
    if captions:
        table.caption = "\n".join(captions)
        table.caption_justify = "left"
    return table


def task_table(data: ReportData) -> Printed:
    """The whole tasks, readable at 80 columns; none of it is marked as the best."""
    tables = [each.table for each in task_tables(data)]
    table = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("task", overflow="fold", ratio=1, min_width=12)
    columns = _columns(tables[0], TASK_KEYS) if tables else []
    for column in columns:
        table.add_column(column.short, justify="right", no_wrap=True)
    for comparison in tables:
        _add(table, comparison, columns)
    return table


def quality_table(data: ReportData) -> Printed:
    """How well each variant rates the texts, readable at 80 columns; a star as in the others."""
    views = quality_views(data)
    # Texts may be asked for different metrics: one head for all of them, a blank where not.
    heads = {column.key: column for view in views for column in view.table.columns}
    columns = [heads[key] for key in QUALITY_COLUMNS if key in heads]
    table = _of(columns, "quality")
    for view in views:
        _add(table, view.table, columns, counted=False, without=QUALITY_PLAIN)
    caption = [
        f"All: {', '.join(everywhere)}."
        for everywhere in dict.fromkeys(view.table.everywhere for view in views)
        if everywhere
    ]
    if any(view.differences and view.differences.marked for view in views):
        caption.append("* the best perplexity, and what can't be told apart from it")
    if caption:
        table.caption = Text("\n".join(one_line(each) for each in caption))
        table.caption_justify = "left"
    return table


def quality_text(data: ReportData) -> Text:
    """What the table has no room for: who can't be told apart, and on how many windows."""
    text = Text()
    for view in quality_views(data):
        name = one_line(view.workload)
        found = view.differences.short if view.differences else ()
        if view.few_windows:
            # The answer says so.
            found = ()
        for sentence in filter(None, (*found, quality_answer(data, view.workload))):
            text.append(f"{name}: {plain(sentence)}\n")
        text.append(f"{name}: {view.short}.\n", style="dim")
        for number, note in _notes(view.table, QUALITY_COLUMNS):
            text.append(f"{name}: ({number}) {note}\n", style="dim")
    text.rstrip()
    return text


def formats_table(found: QuantizationTable) -> Printed:
    """The quantisations of a run, readable at 80 columns."""
    columns = _columns(found.table, FORMAT_COLUMNS)
    table = _of(columns, "format")
    named = replace(found.table, workload=found.quality)
    _add(table, named, columns, counted=False, without=FORMAT_PLAIN)
    reasons = (
        f"({number}) {note.rstrip('.')}." for number, note in _notes(found.table, FORMAT_COLUMNS)
    )
    table.caption = Text("\n".join([found.short, *reasons]))
    table.caption_justify = "left"
    return table


def document_table(found: Table) -> Printed:
    """A run's rows of a table as the documents have it, readable at 80 columns.

    What the documents themselves say is left to the report: a terminal has no room for both.
    """
    own = [row for row in found.rows if not row.published]
    shown = [
        place
        for place, column in enumerate(found.columns)
        if not column.words
        and column.key not in NO_ROOM
        and any(row.values[place].sort is not None for row in own)
    ]
    columns = [found.columns[place] for place in shown]
    table = _of(columns, one_line(found.texts.rows))
    table.title = Text(one_line(found.workload), style="bold")
    table.title_justify = "left"
    table.add_row(Text(), *(Text(column.scale.unit, style="dim") for column in columns))
    for row in own:
        cells = [_cell(row.values[place], interval=True, number=None) for place in shown]
        table.add_row(_name(row, counted=True), *cells)
    return table


def sameness_table(view: SameView) -> Printed:
    """Every variant against the reference, readable at 80 columns; what needs words is left out."""
    table = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
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


def _of(columns: Sequence[Column], name: str) -> Printed:
    table = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(name, overflow="fold", ratio=1, min_width=12)
    for column in columns:
        table.add_column(_stacked(column.short), justify="right", no_wrap=True)
    return table


def _stacked(words: str) -> str:
    """A head's words below each other, the last one alone: ``PPL against`` over ``base``."""
    return "\n".join(words.replace("/", "/ ").rsplit(" ", 1))


def _add(
    table: Printed,
    comparison: Table,
    columns: Sequence[Column],
    *,
    counted: bool = True,
    without: tuple[str, ...] = (),
) -> None:
    """A section; `columns` are those of the head, of which a table may lack some."""
    own = {column.key: place for place, column in enumerate(comparison.columns)}
    places = [own.get(column.key) for column in columns]
    # Units differ between workloads (a long prompt's TTFT in s), so each section names its own.
    numbers = {} if counted else _numbers(comparison, tuple(each.key for each in columns))
    units = [
        Text("" if place is None else comparison.columns[place].scale.unit, style="dim")
        for place in places
    ]
    table.add_row(Text(one_line(comparison.workload), style="bold"), *units)
    for row in comparison.rows:
        cells = [
            Text()
            if place is None
            else _cell(
                row.values[place],
                interval=comparison.columns[place].key not in without,
                number=numbers.get(row.values[place].footnote),
            )
            for place in places
        ]
        table.add_row(_name(row, counted=counted), *cells)
    table.add_section()


def _columns(comparison: Table, keys: tuple[str, ...]) -> list[Column]:
    return [column for column in comparison.columns if column.key in keys]


def _name(row: Row, *, counted: bool) -> Text:
    text = Text(one_line(row.variant), style="red" if row.failed else "")
    number = [f"n={row.repetitions}"] if counted else []
    remarks = [*filter(None, [one_line(row.engine)]), *number, *row.remarks]
    return text.append("\n" + ", ".join(remarks), style="dim") if remarks else text


def _numbers(comparison: Table, keys: tuple[str, ...]) -> dict[int | None, int]:
    """The footnotes that a shown dash refers to, by their numbers in the whole table."""
    places = [comparison.columns.index(column) for column in _columns(comparison, keys)]
    cells = (row.values[place] for row in comparison.rows for place in places)
    used = sorted({each.footnote for each in cells if each.footnote and each.sort is None})
    return {number: place for place, number in enumerate(used, 1)}


def _notes(comparison: Table, keys: tuple[str, ...]) -> list[tuple[int, str]]:
    """Those footnotes, with the numbers that they have here."""
    return [
        (place, comparison.footnotes[number - 1])
        for number, place in _numbers(comparison, keys).items()
        if number is not None
    ]


def _cell(value: Value, *, interval: bool, number: int | None) -> Text:
    text = Text(f"{value.text}{'*' if value.best else ''}", style="green" if value.best else "")
    if value.chip:
        # A column without intervals is a narrow one.
        text.append(f"{' ' if interval else chr(10)}{value.chip}", style="dim")
    if number and value.sort is None:
        text.append(f" ({number})", style="dim")
    shown = value.interval if interval else ""
    return text.append(f"\n{shown}", style="dim") if shown else text
