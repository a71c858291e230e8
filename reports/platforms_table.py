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
from edgebench.reports.format import SHARE, Scale, number, percent, scale_for
from edgebench.reports.framework_choice import (
    NO_FRAMEWORK,
    RATE,
    failure_of,
    fastest,
    is_left_out,
    rates_of,
    standings,
    workloads_of,
)
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, paragraph
from edgebench.reports.metric_names import metric_label, metric_short
from edgebench.reports.physics import (
    platform_checks,
    power_column_agrees,
    published_bytes_per_token,
    published_size,
)
from edgebench.reports.predicted import (
    predicted_devices,
    predicted_meaning,
    predicted_row,
    unfit_meaning,
)
from edgebench.reports.published.cells import (
    Footnotes,
    chip,
    figures_column,
    measured,
    published_meaning,
    quoted,
    words_column,
)
from edgebench.reports.published.load import published_platforms
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.table_model import Row, Table, TableTexts, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.framework_choice import Standing
    from edgebench.reports.physics import PlatformCheck
    from edgebench.reports.predicted import PredictedDevice
    from edgebench.reports.table_model import Column

POWER, PER_WATT, READ = "mean_power_w", "rate_per_watt", "weight_bytes_per_token"
IMPLIED, PEAK_SHARE = "implied_bandwidth", "bandwidth_share"

_ALIKE = 0.02
"""Bytes a token that differ by less are said to be about the same."""

GIGABYTES = Scale("GB", 1e9)
GIGABYTES_PER_S = Scale("GB/s", 1e9)


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
        _published(check, len(rows) + at, columns, footnotes)
        for at, check in enumerate(platform_checks())
    ]
    return Table(
        key="platforms",
        workload=_("Platforms"),
        columns=columns,
        rows=tuple(rows),
        footnotes=footnotes.texts,
        remarks=_remarks(data, rows),
        texts=TableTexts(
            how=_("median, with its 95 % interval"), marked="", counted="n", rows=_("device")
        ),
        notes=_notes(data, [each for _part, each in stand_ins if each and each.chosen]),
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


def rate_workload(data: ReportData, variant: VariantRecord) -> str:
    """The workload that a device's rate is of: its first one that has one; else its first."""
    rated = rates_of(data, variant)
    own = workloads_of(data, variant)
    return next((each for each in own if each in rated), own[0] if own else "")


def read_per_token(data: ReportData, variant: VariantRecord) -> float | None:
    """Bytes of weights that decoding one token of a variant reads; None where not told."""
    found = data.by_variant[variant.id].get(READ)
    return found.median if found else None


def verdict_text(check: PlatformCheck) -> str:
    """What a published rate says against the device's memory, in a sentence or two."""
    row = check.row
    took = _(
        "{rate} tokens/s × {read} GB a token = {taken} GB/s, {share} of the theoretical peak of "
        "{peak} GB/s ({kind}; {source}).",
        rate=row.decode_rate.text,
        read=number(published_bytes_per_token() / 1e9, 2),
        taken=number(check.bytes_per_s / 1e9, 1),
        share=percent(check.share),
        peak=number(row.memory.bytes_per_s / 1e9, 1),
        kind=row.memory.kind.said(),
        source=row.memory.source.said(),
    )
    if check.verdict == "impossible":
        return paragraph(
            (
                took,
                _(
                    "With the memory that the maker specifies this can't be, and the KV cache is "
                    "not even counted."
                ),
            )
        )
    if check.verdict == "impossible by its own size":
        return paragraph(
            (
                took,
                _(
                    "With the size that the document itself gives, {size} GB, it would be {share}, "
                    "which can't be.",
                    size=number(published_size() / 1e9, 1),
                    share=percent(check.share_by_size),
                ),
            )
        )
    return took


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


def model_text(part: Part, variant: VariantRecord) -> str:
    """The model of a run and the quantisation of a variant, such as ``SmolLM2-135M, q4_0``."""
    model = part.record.scenario.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    made = variant.artifact.name if variant.artifact else ""
    if not name:
        name = made or _("not recorded")
    return f"{one_line(str(name))}, {variant.quantization}"


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


def _published(
    check: PlatformCheck, place: int, columns: Sequence[Column], footnotes: Footnotes
) -> Row:
    table, row = published_platforms(), check.row
    read = published_bytes_per_token()
    text = verdict_text(check)
    by_key = {
        "platform": Value(row.platform, origin="published", document=table.document),
        "model": Value(
            f"{table.model}, {table.quantization}",
            origin="published",
            document=table.document,
        ),
        RATE: quoted(row.decode_rate, table.document),
        POWER: quoted(row.power, table.document),
        PER_WATT: quoted(row.rate_per_watt, table.document),
        READ: _computed(read, GIGABYTES, "byte", table.document),
        IMPLIED: _computed(check.bytes_per_s, GIGABYTES_PER_S, "byte/s", table.document),
        PEAK_SHARE: Value(
            number(100 * check.share, 0),
            sort=check.share,
            unit="1",
            chip=_("computed"),
            origin="published",
            document=table.document,
            footnote=footnotes.number(text),
            reason=text,
        ),
    }
    wrong = {
        "impossible": (_("above the peak"),),
        "impossible by its own size": (_("above the peak by its own size"),),
        "possible": (),
    }[check.verdict]
    return Row(
        variant=row.device,
        engine="",
        place=place,
        repetitions=0,
        remarks=(chip(table.document), *wrong),
        failed=False,
        values=tuple(by_key[each.key] for each in columns),
        published=True,
    )


def _computed(value: float, scale: Scale, unit: str, document: str) -> Value:
    return Value(
        number(scale.of(value), 2 if unit == "byte" else 1),
        sort=value,
        unit=unit,
        chip=_("computed"),
        origin="published",
        document=document,
    )


def _remarks(data: ReportData, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
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


def _notes(data: ReportData, found: Sequence[Standing]) -> tuple[str, ...]:
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
