"""Pairs of a published figure and its counterpart in a run, with what differs between the two."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.results.cell import Summary
from edgebench.reports.colours import framework_key
from edgebench.reports.format import CHANGE, SHARE, number, percent, scale_for, shown
from edgebench.reports.formats import SIXTEEN_BITS, format_names
from edgebench.reports.framework_choice import RATE, rates_of, standings
from edgebench.reports.frameworks_table import (
    FACTOR,
    base_of_part,
    framework_name,
    latency_workload,
    relative_ttft,
)
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas
from edgebench.reports.metric_names import metric_label
from edgebench.reports.physics import (
    published_bytes_per_token,
    published_size,
)
from edgebench.reports.platforms_notes import model_text, read_per_token
from edgebench.reports.published.load import (
    published_formats,
    published_frameworks,
)
from edgebench.reports.quantization import quantization_table
from edgebench.reports.table_model import Value, Where
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.framework_choice import Standing
    from edgebench.reports.published.model import FormatRow, FrameworkRow
    from edgebench.reports.quantization import QuantizationTable

MEMORY, TTFT = "peak_rss_bytes", "ttft_s"
_IN_BRACKETS = re.compile(r"\((\w+)\)")


@dataclass(frozen=True, slots=True)
class Pair:
    """A published figure and its counterpart.

    Attributes:
        what: of which framework or format it is, and which figure.
        published: as printed, or as computed from what is.
        low, high: the published value, or its range, in the unit of `own`.
        own: ours; the lowest of them where ours is a range over workloads.
        scale: how ours is shown.
        differs: what differs between the two, a few words each.
        where: whose samples are behind ours.
        computed: whether the published one was computed from printed ones.
        last: the highest of ours where ours is a range; else None.
    """

    what: str
    published: str
    low: float
    high: float
    own: Summary
    scale: Scale
    differs: tuple[str, ...]
    where: Where | None = None
    computed: bool = False
    last: Summary | None = None


def framework_pairs(data: ReportData) -> list[Pair]:
    """The chapter's figures of frameworks that this run has a counterpart of."""
    if not data.workload_names:
        return []
    published = {str(each.framework): each for each in published_frameworks().rows}
    latency = latency_workload(data)
    everyone = standings(data)
    pairs: list[Pair] = []
    for own in everyone:
        row = published.get(own.key)
        if row is None or own.chosen is None:
            continue
        base = base_of_part(everyone, own)
        pairs += _of_framework(data, own, base, row, latency)
    return pairs


def _of_framework(
    data: ReportData, own: Standing, base: Standing | None, row: FrameworkRow, latency: str
) -> Iterator[Pair]:
    assert own.chosen is not None
    name, variant = framework_name(own.key), own.chosen.id
    if len(data.parts) > 1:
        name = f"{name} · {one_line(own.part.label or own.part.record.machine.cpu_model)}"
    model = _model(published_frameworks().model, own.part, own.chosen)
    ours = own.chosen.quantization
    quantization = _("quantisation: not stated, here {own}", own=ours)
    device = _("device: not stated, here {own}", own=one_line(own.part.record.machine.cpu_model))
    if own is not base:
        related = relative_ttft(data, own, base, latency)
        if related.median is not None and base is not None and base.chosen is not None:
            figure = row.ttft_relative
            yield Pair(
                what=_("{framework}: {figure}", framework=name, figure=_("TTFT vs llama.cpp")),
                published=figure.text,
                low=figure.middle,
                high=figure.middle,
                own=related,
                scale=FACTOR,
                differs=(
                    model,
                    _(
                        "quantisation: not stated, here {own} against {base}",
                        own=own.chosen.quantization,
                        base=base.chosen.quantization,
                    ),
                    _("prompt: not stated, here {own}", own=one_line(latency)),
                    device,
                ),
                where=Where(latency, variant, TTFT),
            )
    if rates := rates_of(data, own.chosen):
        figure = row.decode_rate
        assert figure.low is not None
        assert figure.high is not None
        ordered = sorted(rates, key=lambda each: rates[each].median or 0.0)
        slowest, fastest = rates[ordered[0]], rates[ordered[-1]]
        yield Pair(
            what=_("{framework}: {figure}", framework=name, figure=metric_label(RATE)),
            published=figure.text,
            low=figure.low,
            high=figure.high,
            own=slowest,
            scale=scale_for(slowest.unit, [slowest.median]),
            differs=(
                model,
                quantization,
                _("prompt: not stated, here {own}", own=commas(map(one_line, rates))),
                *_read(data, own, slowest, fastest),
                device,
            ),
            where=Where(ordered[0], variant, RATE),
            last=fastest if len(rates) > 1 else None,
        )
    peak = None if data.is_broken(latency, variant) else data.summary(latency, variant, MEMORY)
    if peak is not None and peak.median is not None:
        figure = row.peak_memory
        yield Pair(
            what=_(
                "{framework}: {figure} on {workload}",
                framework=name,
                figure=metric_label(MEMORY),
                workload=one_line(latency),
            ),
            published=figure.text,
            low=figure.middle,
            high=figure.middle,
            own=peak,
            scale=scale_for(peak.unit, [peak.median]),
            differs=(
                model,
                _stated(figure.text, ours) or quantization,
                *_size(own),
                _("memory read: not stated, here the peak of the resident set"),
                device,
            ),
            where=Where(latency, variant, MEMORY),
        )


def _stated(printed: str, own: str) -> str:
    """The quantisation beside ours, where a printed figure names it, as in ``4.2GB(Q4)``."""
    found = _IN_BRACKETS.search(printed)
    return _("quantisation: {published}, here {own}", published=found[1], own=own) if found else ""


def _model(published: str, part: Part, variant: VariantRecord) -> str:
    name = model_text(part, variant).removesuffix(f", {variant.quantization}")
    return _("model: {published}, here {own}", published=published, own=name)


def _read(data: ReportData, own: Standing, slowest: Summary, fastest: Summary) -> tuple[str, ...]:
    """What both rates take of a memory, which does not depend on the model's size."""
    assert own.chosen is not None
    assert slowest.median is not None
    assert fastest.median is not None
    read = read_per_token(data, own.chosen)
    if not read:
        return (_("weights read per token: not stated, here not known"),)
    figure = next(
        each for each in published_frameworks().rows if each.framework == own.key
    ).decode_rate
    theirs = published_bytes_per_token()
    ours = [number(each * read / 1e9, 1) for each in (slowest.median, fastest.median)]
    assert figure.low is not None
    assert figure.high is not None
    return (
        _(
            "weights read per token: {published} GB if in Q4_0, here {own} GB",
            published=number(theirs / 1e9, 2),
            own=number(read / 1e9, 3),
        ),
        _(
            "bandwidth that the rate takes: {low} to {high} GB/s if in Q4_0, here {own} GB/s",
            low=number(figure.low * theirs / 1e9, 0),
            high=number(figure.high * theirs / 1e9, 0),
            own=ours[0] if ours[0] == ours[1] else "–".join(ours),
        ),
    )


def _size(own: Standing) -> tuple[str, ...]:
    if own.chosen is None or own.chosen.artifact is None:
        return ()
    return (
        _(
            "model on disk: {published} GB if in Q4_0, as the same document says, here {own} GB",
            published=number(published_size() / 1e9, 1),
            own=number(own.chosen.artifact.bytes / 1e9, 3),
        ),
    )


def format_pairs(data: ReportData) -> list[Pair]:
    """The chapter's figures of formats that this run has a counterpart of, by llama.cpp."""
    found = quantization_table(data)
    published = published_formats()
    if found is None:
        return []
    names = format_names(data.record.variants)
    rows = {each.variant: each.values for each in found.table.rows}
    columns = {each.key: at for at, each in enumerate(found.table.columns)}
    own = [each for each in data.record.variants if framework_key(each) == published.framework]
    base = _of_name(own, published.base)
    if base is None:
        return []
    # What our table relates to another base, such as another framework's, is no counterpart.
    whole = rows[names[base.id]]
    related = {key: at for key, at in columns.items() if whole[at].sort == 1.0}
    beside = [each for each in own if data.part_of(each.id) is data.part_of(base.id)]
    pairs: list[Pair] = []
    printed_base = next(each for each in published.rows if each.format == published.base)
    for row in published.rows:
        variant = _of_name(beside, row.format, like=base)
        if variant is None or variant is base:
            continue
        mine = {key: rows[names[variant.id]][at] for key, at in related.items()}
        pairs += _of_format(data, found, (row, printed_base), (variant, base), mine)
    return pairs


def _of_name(
    variants: Sequence[VariantRecord], name: str, like: VariantRecord | None = None
) -> VariantRecord | None:
    """The first variant of a format; one with the same options as another where there is one."""
    found = [each for each in variants if _format(each.quantization) == _format(name)]
    alike = (each for each in found if like is not None and each.options == like.options)
    return next(alike, found[0] if found else None)


def _of_format(
    data: ReportData,
    found: QuantizationTable,
    printed: tuple[FormatRow, FormatRow],
    variants: tuple[VariantRecord, VariantRecord],
    mine: Mapping[str, Value],
) -> Iterator[Pair]:
    """The figures of one format.

    Args:
        data: the report's data.
        found: our table of formats.
        printed: the document's rows of the format and of the base.
        variants: ours of the same.
        mine: the format's values of our table that are relative to that base, by column.
    """
    (row, base), (record, whole), speed = printed, variants, found.speed
    part = data.part_of(record.id)
    model = _model(published_formats().model, part, record)
    device = _("device: not stated, here {own}", own=one_line(part.record.machine.cpu_model))
    text = _("text: not stated, here {own}", own=one_line(found.quality))

    def what(figure: str) -> str:
        return _("{framework}: {figure}", framework=row.format, figure=figure)

    if record.artifact and whole.artifact and whole.artifact.bytes:
        size = record.artifact.bytes / whole.artifact.bytes
        ratio = row.model_size.middle / base.model_size.middle
        yield Pair(
            what(_("size, of that of FP16")),
            percent(round(ratio, 3)),
            ratio,
            ratio,
            Summary(median=size, n=1, unit="1", source="derived"),
            SHARE,
            (model,),
            computed=True,
        )
    change = mine.get("perplexity_change")
    if change is not None and change.sort is not None:
        ratio = row.perplexity.middle / base.perplexity.middle
        change_text = shown(Summary(median=ratio, n=1, unit="1", source="derived"), CHANGE)
        yield Pair(
            what(_("perplexity, against FP16")),
            f"{change_text.value} %",
            ratio,
            ratio,
            _summary(change),
            CHANGE,
            (model, text),
            change.where,
            computed=True,
        )
    rate = mine.get("relative_speed")
    if rate is not None and rate.sort is not None:
        yield Pair(
            what(_("speed, against FP16")),
            row.relative_speed.text,
            row.relative_speed.middle,
            row.relative_speed.middle,
            _summary(rate),
            FACTOR,
            (model, device),
            Where(speed, record.id, RATE) if speed else None,
        )
    read = mine.get("relative_read")
    if read is not None and read.sort is not None:
        yield Pair(
            what(_("bandwidth need, of that of FP16")),
            row.relative_read.text,
            row.relative_read.middle,
            row.relative_read.middle,
            _summary(read),
            SHARE,
            (model, _("what is counted: the model's size, here the weights that a token reads")),
        )


def _format(name: str) -> str:
    lowered = name.lower()
    return "f16" if lowered in SIXTEEN_BITS - {"bf16"} else lowered


def _summary(value: Value) -> Summary:
    return Summary(
        median=value.sort,
        ci_low=value.low,
        ci_high=value.high,
        n=value.n or 1,
        unit=value.unit or "1",
        source="derived",
        reason=value.reason or None,
    )
