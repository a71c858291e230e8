"""What stands below the table of platforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import number
from edgebench.reports.framework_choice import (
    rates_of,
    workloads_of,
)
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas
from edgebench.reports.physics import (
    power_column_agrees,
    published_bytes_per_token,
)
from edgebench.reports.platforms_published import READ
from edgebench.reports.predicted import (
    predicted_meaning,
    unfit_meaning,
)
from edgebench.reports.published.cells import (
    chip,
    published_meaning,
)
from edgebench.reports.published.load import published_platforms
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.framework_choice import Standing
    from edgebench.reports.table_model import Row

_ALIKE = 0.02
"""Bytes a token that differ by less are said to be about the same."""


def rate_workload(data: ReportData, variant: VariantRecord) -> str:
    """The workload that a device's rate is of: its first one that has one; else its first."""
    rated = rates_of(data, variant)
    own = workloads_of(data, variant)
    return next((each for each in own if each in rated), own[0] if own else "")


def read_per_token(data: ReportData, variant: VariantRecord) -> float | None:
    """Bytes of weights that decoding one token of a variant reads; None where not told."""
    found = data.by_variant[variant.id].get(READ)
    return found.median if found else None


def model_text(part: Part, variant: VariantRecord) -> str:
    """The model of a run and the quantisation of a variant, such as ``SmolLM2-135M, q4_0``."""
    model = part.record.scenario.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    made = variant.artifact.name if variant.artifact else ""
    if not name:
        name = made or _("not recorded")
    return f"{one_line(str(name))}, {variant.quantization}"


def remarks(data: ReportData, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """What the marks of the rows mean, of those that stand in the table."""
    used = {remark for row in rows for remark in row.remarks}
    flags = dict.fromkeys(flag for cell in data.cells.values() for flag in cell.flags)
    known = {flag_text(flag): flag_meaning(flag, data.record.protocol) for flag in flags}
    known |= {
        chip(published_platforms().document): published_meaning(),
        _("above the peak"): _(
            "the published rate takes more than the theoretical peak of the device's memory, at "
            "the fastest memory that its maker specifies: it can't be right as it stands"
        ),
        _("above the peak by its own size"): _(
            "the published rate takes more than the peak if a token reads as many bytes as the "
            "document itself says that the model has"
        ),
        _("predicted"): predicted_meaning(),
        _("does not fit"): unfit_meaning(),
        _("no framework"): _("the fake runner makes its figures up, to try edgebench out"),
    }
    return tuple((text, meaning) for text, meaning in known.items() if text in used)


def notes_on(data: ReportData, found: Sequence[Standing]) -> tuple[str, ...]:
    """Sentences below the table: what a row is, and what may be set against what.

    Args:
        data: the report.
        found: the fastest framework of each device.
    """
    table = published_platforms()
    read = published_bytes_per_token()
    notes = [
        _(
            "A device's row is its fastest framework, with that framework's fastest variant; its "
            "rate and its power are those of {workload}.",
            workload=commas(
                dict.fromkeys(
                    one_line(rate_workload(data, each.chosen)) for each in found if each.chosen
                )
            ),
        )
        if found
        else _("This run measured no decode rate."),
        *(
            [_("No device is predicted, since there is no rate of this run to begin with.")]
            if data.predicted and not found
            else []
        ),
        _(
            "Weights read per token of {model} {quantization} are counted from its architecture: "
            "32 layers of 4 × 4096² + 3 × 4096 × 11008 weights at 4.5 bits, the output layer of "
            "32000 × 4096 at 6.5625 bits (Q6_K, as llama.cpp makes it), one row of the embedding, "
            "and the norms in 32 bits: {bytes} GB. The KV cache is left out.",
            model=table.model,
            quantization=table.quantization,
            bytes=number(read / 1e9, 3),
        ),
        _(
            "Peaks are theoretical: the number of transfers a second times their width, at the "
            "fastest memory that the maker specifies. A real memory reaches less."
        ),
    ]
    if power_column_agrees():
        notes.append(
            _(
                "The published tokens/s/W are the published rate over the published power, "
                "rounded; the document does not say how power was taken."
            )
        )
    for standing in found:
        assert standing.chosen is not None
        own = read_per_token(data, standing.chosen)
        name = model_text(standing.part, standing.chosen)
        if own and abs(own / read - 1) <= _ALIKE:
            text = _(
                "{name} reads {own} GB of weights a token, about as many as the published model.",
                name=name,
                own=number(own / 1e9, 2),
            )
        elif own:
            larger, factor = (read, read / own) if read >= own else (own, own / read)
            whose = _("the published model") if larger is read else name
            text = _(
                "{name} reads {own} GB of weights a token, the published model {read} GB: {whose} "
                "reads {factor} times as much, so rates and tokens/s/W of the two can't be set "
                "against each other. Bandwidths can.",
                name=name,
                own=number(own / 1e9, 3),
                read=number(read / 1e9, 2),
                whose=whose,
                factor=number(factor, 1),
            )
        else:
            text = _(
                "It is not known how many bytes {name} reads a token, so its rates and tokens/s/W "
                "can't be set against those of the published model.",
                name=name,
            )
        if text not in notes:
            notes.append(text)
    return tuple(notes)
