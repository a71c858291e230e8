"""The documents' table of formats as printed, with the speed-up that each size allows at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import Scale, number
from edgebench.reports.frameworks_table import FACTOR
from edgebench.reports.languages import _
from edgebench.reports.physics import read_column_agrees, speedup_checks
from edgebench.reports.published.cells import (
    Footnotes,
    chip,
    figures_column,
    published_meaning,
    quoted,
)
from edgebench.reports.published.load import published_formats
from edgebench.reports.table_model import Row, Table, TableTexts, Value

if TYPE_CHECKING:
    from edgebench.harness.metrics.definitions import Better

_BETTER: dict[str, Better] = {
    "model_size": "lower",
    "perplexity": "lower",
    "relative_speed": "higher",
    "relative_read": "lower",
}


def published_formats_table() -> Table:
    """The chapter's formats: size, perplexity, speed, bandwidth need, and the bound of the speed.

    Nothing in it is of a run; what a run has of the same formats stands in tables of its own.
    """
    published = published_formats()
    said = chip(published.document)
    bounds = {each.format: each.bound for each in speedup_checks()}
    footnotes = Footnotes()
    columns = (
        *(
            figures_column(key, words.said(), words.said(), Scale(""), _BETTER[key])
            for key, words in published.columns.items()
        ),
        figures_column(
            "speed_bound", _("Most that reading fewer bytes allows"), _("bound"), FACTOR, None
        ),
    )
    rows = []
    for place, row in enumerate(published.rows):
        bound = bounds.get(row.format)
        rows.append(
            Row(
                variant=row.format,
                engine=published.model,
                place=place,
                repetitions=0,
                remarks=(said,),
                failed=False,
                values=(
                    *(quoted(getattr(row, key), published.document) for key in published.columns),
                    footnotes.silent(_("the base of all others"), published.document)
                    if bound is None
                    else Value(
                        number(bound, 2),
                        sort=bound,
                        unit="1",
                        chip=_("computed"),
                        origin="published",
                        document=published.document,
                    ),
                ),
                published=True,
            )
        )
    return Table(
        key="documents-formats-quoted",
        workload=_("The chapter's formats, as published"),
        columns=columns,
        rows=tuple(rows),
        footnotes=footnotes.texts,
        remarks=((said, published_meaning()),),
        texts=TableTexts(how=_("as printed"), marked="", counted="", rows=_("format")),
        notes=_notes(),
    )


def _notes() -> tuple[str, ...]:
    published = published_formats()
    notes = [
        _(
            "{caption} ({model}). The document names neither the text of the perplexities nor the "
            "device, and gives no intervals.",
            caption=published.caption.said(),
            model=published.model,
        ),
        _(
            "The bound is the size of FP16 over that of the format: where decoding does nothing "
            "but read weights, it is so many times as fast, and no more."
        ),
    ]
    if read_column_agrees():
        notes.append(
            _(
                "The bandwidth need is the ratio of the model sizes, so it says no more than they "
                "do."
            )
        )
    return tuple(notes)
