"""The documents' table of platforms: the user's own devices, then the published ones, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.mbu import roof_of
from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.cell import Summary
from edgebench.reports.broken import broken_text
from edgebench.reports.colours import framework_colours
from edgebench.reports.data import BROKEN
from edgebench.reports.engines import made_up_text
from edgebench.reports.format import SHARE, number, scale_for
from edgebench.reports.framework_choice import (
    NO_FRAMEWORK,
    RATE,
    failure_of,
    fastest,
    is_left_out,
    standings,
)
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.metric_names import metric_label, metric_short
from edgebench.reports.physics import (
    platform_checks,
)
from edgebench.reports.platforms_notes import (
    model_text,
    notes_on,
    rate_workload,
    remarks,
)
from edgebench.reports.platforms_published import (
    GIGABYTES,
    GIGABYTES_PER_S,
    IMPLIED,
    PEAK_SHARE,
    PER_WATT,
    POWER,
    READ,
    published_row,
)
from edgebench.reports.predicted import (
    predicted_devices,
    predicted_row,
)
from edgebench.reports.published.cells import (
    Footnotes,
    figures_column,
    measured,
    words_column,
)
from edgebench.reports.table import flag_text
from edgebench.reports.table_model import Row, Table, TableTexts, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.framework_choice import Standing
    from edgebench.reports.predicted import PredictedDevice
    from edgebench.reports.table_model import Column


def platforms_table(data: ReportData) -> Table:
    """One row a machine of the report, then the published platforms."""
    found = standings(data)
    stand_ins = [
        (part, fastest([each for each in found if each.part is part])) for part in data.parts
    ]
    columns = _columns(data, [each for _part, each in stand_ins if each])
    footnotes = Footnotes()
    rows = [
        _row(data, part, best, place, columns, footnotes)
        for place, (part, best) in enumerate(stand_ins)
    ]
    rows += predicted_rows(data, stand_ins, len(rows), columns, footnotes)
    rows += [
        published_row(check, len(rows) + at, columns, footnotes)
        for at, check in enumerate(platform_checks())
    ]
    return Table(
        key="platforms",
        workload=_("Platforms"),
        columns=columns,
        rows=tuple(rows),
        footnotes=footnotes.texts,
        remarks=remarks(data, rows),
        texts=TableTexts(
            how=_("median, with its 95 % interval"), marked="", counted="n", rows=_("device")
        ),
        notes=notes_on(data, [each for _part, each in stand_ins if each and each.chosen]),
    )


def predicted_rows(
    data: ReportData,
    stand_ins: Sequence[tuple[Part, Standing | None]],
    place: int,
    columns: Sequence[Column],
    footnotes: Footnotes,
) -> list[Row]:
    """Of the devices that the report was asked to predict; the fastest variant of all stands in."""
    part, best = _fastest_of_all(stand_ins)
    if part is None or best is None or best.chosen is None:
        return []
    workload = rate_workload(data, best.chosen)
    model = model_text(part, best.chosen)
    return [
        predicted_row(each, best.name, model, place + at, columns, footnotes)
        for at, each in enumerate(predicted_devices(data, best.chosen, workload))
    ]


def predictions(data: ReportData) -> tuple[PredictedDevice, ...]:
    """What the table of platforms predicts, for forms that have other tables."""
    found = standings(data)
    _part, best = _fastest_of_all(
        [(part, fastest([each for each in found if each.part is part])) for part in data.parts]
    )
    if best is None or best.chosen is None:
        return ()
    return predicted_devices(data, best.chosen, rate_workload(data, best.chosen))


def _fastest_of_all(
    stand_ins: Sequence[tuple[Part, Standing | None]],
) -> tuple[Part | None, Standing | None]:
    able = [(part, each) for part, each in stand_ins if each is not None and each.chosen]
    return max(able, key=lambda pair: pair[1].rate or 0.0, default=(None, None))


def _columns(data: ReportData, found: Sequence[Standing]) -> tuple[Column, ...]:
    chosen = [each.chosen for each in found if each.chosen is not None]

    def of(key: str) -> list[Summary]:
        cells = ((rate_workload(data, each), each.id) for each in chosen)
        all_of = (data.summary(name, variant, key) for name, variant in cells if name)
        return [each for each in all_of if each is not None and each.median is not None]

    return (
        words_column("platform", _("Platform"), _("platform")),
        words_column("model", _("Model"), _("model")),
        *(
            figures_column(
                key,
                metric_label(key),
                metric_short(key),
                scale_for(unit, [each.median for each in of(key)]),
                metric(key).better,
                *(each.source for each in of(key)),
            )
            for key, unit in ((RATE, "token/s"), (POWER, "W"), (PER_WATT, "token/s/W"))
        ),
        figures_column(
            READ, _("Weights read per token"), _("weights/token"), GIGABYTES, None, "derived"
        ),
        figures_column(
            IMPLIED,
            _("Bandwidth that the rate takes"),
            _("bandwidth"),
            GIGABYTES_PER_S,
            None,
            "derived",
        ),
        figures_column(
            PEAK_SHARE, _("Share of the memory's peak"), _("of peak"), SHARE, None, "derived"
        ),
    )


def _row(
    data: ReportData,
    part: Part,
    best: Standing | None,
    place: int,
    columns: Sequence[Column],
    footnotes: Footnotes,
) -> Row:
    machine = part.record.machine
    device = one_line(machine.cpu_model)
    if len(data.parts) > 1 and part.label:
        device = one_line(part.label)
    if best is None or best.chosen is None:
        variants = [each for each in data.record.variants if each.id in part.variants]
        message = failure_of(data, variants)
        reason = _("failed: {message}", message=recorded(message)) if message else _("not run")
        remark = _("failed") if message else _("not run")
        if not message and is_left_out(data, variants):
            reason, remark = broken_text(), flag_text(BROKEN)
        nothing = footnotes.missing(reason)
        return Row(
            device,
            "",
            place,
            0,
            (remark,),
            failed=bool(message),
            values=(Value(machine.architecture), *(nothing for _column in columns[1:])),
        )
    variant = best.chosen
    cell = data.cell(rate_workload(data, variant), variant.id)
    power = data.summary(cell.workload, variant.id, POWER)
    no_power = (power and power.reason) or ""
    by_key = {
        each.key: measured(
            data.summary(cell.workload, variant.id, each.key),
            cell,
            each.key,
            each.scale,
            footnotes,
            no_power if each.key == PER_WATT else "",
        )
        for each in columns
        if each.key in {RATE, POWER, PER_WATT}
    }
    read = data.by_variant[variant.id].get(READ)
    told = _("the runner does not tell how many bytes of weights a token reads")
    by_key[READ] = measured(read, cell, READ, GIGABYTES, footnotes, told)
    by_key[IMPLIED] = measured(
        _implied(data.summary(cell.workload, variant.id, RATE), read, told),
        cell,
        RATE,
        GIGABYTES_PER_S,
        footnotes,
    )
    by_key[PEAK_SHARE] = _share_measured(part, variant, by_key[IMPLIED], footnotes)
    by_key["platform"] = Value(machine.architecture, source="observed")
    by_key["model"] = Value(model_text(part, variant), source="observed")
    flags = [flag_text(each) for each in cell.flags]
    fake = [_("no framework")] if best.runner == NO_FRAMEWORK else []
    return Row(
        variant=device,
        engine=" · ".join(filter(None, (best.name, one_line(variant.id), made_up_text(variant)))),
        place=place,
        repetitions=cell.n,
        remarks=(*fake, *flags),
        failed=False,
        values=tuple(by_key[each.key] for each in columns),
        colour=framework_colours(data.record.variants)[variant.id],
    )


def _share_measured(
    part: Part, variant: VariantRecord, implied: Value, footnotes: Footnotes
) -> Value:
    """Of the bandwidth that was measured on the machine itself, with the variant's threads."""
    roof = roof_of(part.record, variant)
    if roof is None:
        return footnotes.missing(_("the memory bandwidth of this machine was not measured"))
    if implied.sort is None:
        return footnotes.missing(implied.reason or _("not measured"))
    share = implied.sort / roof.bytes_per_s
    text = _(
        "Of the {bandwidth} GB/s that {threads} read here, measured: a real memory's, and not the "
        "theoretical peak of the published rows.",
        bandwidth=number(roof.bytes_per_s / 1e9, 1),
        threads=plural("{count} thread", "{count} threads", roof.threads),
    )
    return Value(
        number(100 * share, 0),
        sort=share,
        unit="1",
        source="derived",
        footnote=footnotes.number(text),
        reason=text,
    )


def _implied(rate: Summary | None, read: Summary | None, told: str) -> Summary:
    if rate is None or rate.median is None or read is None or read.median is None:
        why = told if read is None or read.median is None else (rate and rate.reason)
        return Summary(
            median=None, n=0, unit="byte/s", source="derived", reason=why or _("not measured")
        )
    size = read.median
    return Summary(
        median=rate.median * size,
        ci_low=None if rate.ci_low is None else rate.ci_low * size,
        ci_high=None if rate.ci_high is None else rate.ci_high * size,
        n=rate.n,
        unit="byte/s",
        source="derived",
        reason=rate.reason,
    )
