"""How a choice is shown on the terminal, readable at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table as Printed
from rich.text import Text

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import semicolons
from edgebench.reports.selection.walk import SCENARIO
from edgebench.reports.sentences import plain
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from edgebench.reports.selection.view import Evidence, Finding, Measured, Selection, Walk
    from edgebench.reports.table_model import Row, Table

_MARKS: Final = {
    "supports": ("✓", "green", ""),
    "contradicts": ("–", "yellow", ""),
    "fails": ("✗", "red", N_("fails")),
    "failed": ("✗", "red", N_("failed")),
    "lacks": ("✗", "red", N_("lacks")),
    "unknown": ("?", "dim", N_("unknown")),
    "note": ("·", "dim", ""),
}
_MOST_COLUMNS: Final = 4
"""With their values and a variant's name they fill 80 characters."""


def selection_text(selection: Selection) -> Group:
    """All of it: the answer, what speaks against it, the trees, the evidence, the measurements."""
    parts: list[RenderableType] = [Text(plain(selection.headline), style="bold")]
    parts += [Text(f"! {plain(each)}", style="yellow") for each in selection.warnings]
    for walk in selection.walks:
        parts += [Text(), _walk(walk)]
    if selection.evidence:
        parts += [Text(), Text(_("Evidence"), style="bold underline")]
        parts += [_evidence(each) for each in selection.evidence]
    if selection.measured is not None:
        parts += [Text(), _measured(selection.measured)]
    if selection.disagreements:
        parts += [Text(), Text(_("Where tree and measurements differ"), style="bold underline")]
        parts += [_item("•", "", plain(each)) for each in selection.disagreements]
    return Group(*parts)


def _walk(walk: Walk) -> Group:
    heading = Text.assemble(
        (_("Decision tree {name}, version {version}", name=walk.name, version=walk.version)),
        style="bold underline",
    )
    parts: list[RenderableType] = [heading]
    if walk.document:
        parts.append(Text(_("from: {document}", document=walk.document), style="dim"))
    steps = Printed.grid(padding=(0, 1))
    steps.add_column(overflow="fold")
    steps.add_column(no_wrap=True)
    steps.add_column(overflow="fold")
    for step in walk.steps:
        answer = Text(one_line(step.answer_text), style="bold")
        if step.given_by != SCENARIO:
            answer.append(f" ({_(step.given_by)})", style="dim")
        steps.add_row(Text(one_line(step.question)), "→", answer)
    if walk.open is not None:
        keys = " | ".join(key for key, _words in walk.open.choices)
        asked = Text(f"--answer {walk.open.key}={keys}", style="yellow")
        steps.add_row(Text(one_line(walk.open.question)), "→", Text("? ", style="yellow") + asked)
    parts.append(Padding(steps, (0, 0, 0, 2), expand=False))
    if walk.recommendation:
        parts.append(
            Text.assemble("  ⇒ ", (one_line(framework_name(walk.recommendation)), "bold green"))
        )
    if walk.because:
        parts.append(_quoted(_("the document: “{words}”", words=walk.because)))
    if walk.fits:
        parts.append(_quoted(_("it fits, says the document: {list}", list=semicolons(walk.fits))))
    return Group(*parts)


def _quoted(text: str) -> Padding:
    return Padding(Text(one_line(text), style="dim"), (0, 0, 0, 4))


def _evidence(evidence: Evidence) -> Group:
    heading = Text(one_line(evidence.framework), style="bold")
    if evidence.variant:
        heading.append(f"  {one_line(evidence.variant)}", style="not bold dim")
    if not evidence.ran:
        heading.append(f"  {_('no measured values')}", style="not bold red")
    elif evidence.state == "partly":
        heading.append(f"  {_('measured in part')}", style="not bold red")
    elif evidence.meets_limits is False:
        heading.append(f"  {_('does not meet the limits')}", style="not bold red")
    return Group(heading, *(_finding(each) for each in evidence.findings))


def _finding(finding: Finding) -> Printed:
    mark, style, words = _MARKS[finding.kind]
    said = plain(finding.sentence)
    # A mark is not enough for the three kinds of cross.
    if words:
        said = f"{_(words)}: {said}"
    if finding.quoted:
        said = _("{sentence} [quoted]", sentence=said)
    return _item(mark, style, said)


def _item(mark: str, style: str, text: str) -> Printed:
    grid = Printed.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"  {mark}", style=style), Text(text))
    return grid


def _measured(measured: Measured) -> Group:
    title = (
        _("From the measurements, and what documents say of abilities")
        if measured.by_documents
        else _("From the measurements alone")
    )
    parts: list[RenderableType] = [Text(title, style="bold underline")]
    if measured.recommendation:
        named = f"  ⇒ {one_line(measured.framework)}"
        parts.append(Text.assemble((named, "bold green"), f"  {one_line(measured.variant)}"))
    parts += [_item("", "", plain(each)) for each in measured.sentences]
    if measured.table is not None:
        parts.append(_table(measured.table))
    return Group(*parts)


def _table(table: Table) -> Printed:
    """The first columns, and the footnotes below."""
    columns = table.columns[:_MOST_COLUMNS]
    printed = Printed(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    printed.add_column(one_line(table.texts.rows), overflow="fold", ratio=1, min_width=12)
    for column in columns:
        unit = f"\n{column.scale.unit}" if column.scale.unit and not column.words else ""
        head = Text(f"{column.short}{unit}")
        printed.add_column(head, justify="left" if column.words else "right", overflow="fold")
    for row in table.rows:
        printed.add_row(Text(one_line(row.variant)), *_cells(row, len(columns)))
    return printed


def _cells(row: Row, count: int) -> Iterable[Text]:
    for value in row.values[:count]:
        text = Text(value.text + (" *" if value.best else ""), style="green" if value.best else "")
        # Below the value, for the columns are narrow.
        for below in filter(None, (value.interval, value.chip)):
            text.append(f"\n{below}", style="dim")
        yield text
