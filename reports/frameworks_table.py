"""The documents' table of frameworks, from measurements, with the documents' own rows beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness.artifacts import BITS, UNQUANTIZED
from edgebench.harness.results.cell import Summary
from edgebench.reports.broken import broken_text
from edgebench.reports.colours import KNOWN, framework_colours
from edgebench.reports.data import BROKEN, ratio_summary, ratios_within_blocks
from edgebench.reports.engines import engine_text
from edgebench.reports.format import Scale, scale_for
from edgebench.reports.framework_choice import (
    NO_FRAMEWORK,
    RATE,
    failure_of,
    framework_name,
    is_left_out,
    rates_of,
    standings,
    workloads_of,
)
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas
from edgebench.reports.metric_names import metric_label, metric_short
from edgebench.reports.published.cells import (
    Footnotes,
    chip,
    figures_column,
    judged,
    measured,
    opinion_chip,
    published_meaning,
    quoted,
    words_column,
)
from edgebench.reports.published.load import published_frameworks
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.table_model import Row, Table, TableTexts, Value, Where
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.framework_choice import Standing
    from edgebench.reports.published.model import FrameworkRow
    from edgebench.reports.table_model import Column

__all__ = ["framework_name", "frameworks_table", "relative_ttft"]

BASE = "llama.cpp"
"""The framework that times to the first token are relative to, as in the documents."""

TTFT, MEMORY = "ttft_s", "peak_rss_bytes"
FACTOR = Scale("×", least=2)


def frameworks_table(data: ReportData) -> Table | None:
    """One row a framework and machine, then the chapter's rows; None where no prompt was run."""
    if not data.workload_names:
        return None
    found = standings(data)
    latency = latency_workload(data)
    columns = _columns(data, found, latency)
    footnotes = Footnotes()
    places = {each: place for place, each in enumerate(data.variant_ids)}
    colours = framework_colours(data.record.variants)
    rows = [
        _row(
            data,
            each,
            base_of_part(found, each),
            latency,
            columns,
            footnotes,
            places[each.variants[0].id],
            colours[each.variants[0].id],
        )
        for each in found
    ]
    rows += [
        _published(row, len(places) + at, columns, footnotes)
        for at, row in enumerate(published_frameworks().rows)
    ]
    return Table(
        key="frameworks",
        workload=_("Frameworks"),
        columns=columns,
        rows=tuple(rows),
        footnotes=footnotes.texts,
        remarks=_remarks(data, rows),
        texts=TableTexts(
            how=_("median, with its 95 % interval"),
            marked="",
            counted="n",
            rows=_("framework"),
        ),
        notes=_notes(found, latency),
    )


def latency_workload(data: ReportData) -> str:
    """The workload that times to the first token are of: that with the longest prompt."""
    records = [each for each in data.record.workloads if each.name in data.workload_names]
    return max(records, key=_prompt).name


def relative_ttft(data: ReportData, own: Standing, base: Standing | None, latency: str) -> Summary:
    """A framework's time to the first token, of llama.cpp's on the same machine.

    Returns:
        The median of the ratios within blocks with its 95 % interval, or the reason for none.
    """
    unit = {"unit": "1", "source": "derived"}
    if base is None or base.chosen is None:
        why = (
            _("llama.cpp is no part of this run, so there is nothing to relate to")
            if base is None
            else _("llama.cpp has no values to relate to")
        )
        return Summary.model_validate({"median": None, "n": 0, "reason": why, **unit})
    assert own.chosen is not None
    if own is base:
        return Summary.model_validate({"median": 1.0, "n": 1, **unit})
    ratios = ratios_within_blocks(data.run.trials, latency, TTFT, own.chosen.id, base.chosen.id)
    if not ratios:
        why = _("no block holds a time to the first token of both it and llama.cpp")
        return Summary.model_validate({"median": None, "n": 0, "reason": why, **unit})
    return ratio_summary(ratios)


def widths(quantizations: Sequence[str]) -> tuple[int, ...]:
    """The bits of weights that names of quantisations tell, each once, the smallest first."""
    found = {
        int(match[2]) for name in quantizations if (match := BITS.search(UNQUANTIZED.sub("", name)))
    }
    return tuple(sorted(found - {0}))


def offered(standing: Standing) -> tuple[str, ...] | None:
    """The quantisations that a framework's runner makes; None where the run does not tell."""
    described = standing.part.record.runners.get(standing.runner)
    names = described.get("quantizations") if described else None
    if not isinstance(names, list):
        return None
    return tuple(str(each) for each in names)


def offered_value(standing: Standing, footnotes: Footnotes) -> Value:
    """How many quantisations a runner offers, and of how many bits; or why that is not known."""
    names = offered(standing)
    if names is None:
        return footnotes.missing(_("the run does not record what this runner offers"))
    text = plural("{count} format", "{count} formats", len(names))
    bits = widths(names)
    if bits:
        text = _("{formats}: {bits} bits", formats=text, bits=commas(map(str, bits)))
    another = ""
    if standing.chosen is not None and standing.chosen.framework:
        another = _(
            "what the runner {runner} offers; some of it may take another engine than the one that "
            "ran",
            runner=standing.runner,
        )
    return Value(
        text,
        sort=float(len(names)),
        unit="1",
        n=None,
        chip=_("offered"),
        origin="offered",
        footnote=footnotes.number(another),
        reason=another,
    )


def rate_range(data: ReportData, standing: Standing, scale: Scale, footnotes: Footnotes) -> Value:
    """A framework's decode rates over its workloads, as one value.

    Its text is the lowest and the highest median; its interval goes from the low end of the lowest
    one's to the high end of the highest one's; it sorts by the geometric mean.
    """
    assert standing.chosen is not None
    rates = rates_of(data, standing.chosen)
    ordered = sorted(rates, key=lambda each: rates[each].median or 0.0)
    slow, fast = ordered[0], ordered[-1]
    cells = {each: data.cell(each, standing.chosen.id) for each in (slow, fast)}
    lowest = measured(rates[slow], cells[slow], RATE, scale, footnotes)
    highest = measured(rates[fast], cells[fast], RATE, scale, footnotes)
    if slow == fast or lowest.text == highest.text:
        return lowest
    low, high = rates[slow].ci_low, rates[fast].ci_high
    interval = ""
    if low is not None and high is not None:
        first, last = (each.interval.strip("[]").split(", ") for each in (lowest, highest))
        interval = f"[{first[0]}, {last[-1]}]" if first[0] and last[-1] else ""
    return Value(
        f"{lowest.text}–{highest.text}",
        interval=interval,
        sort=standing.rate,
        low=low,
        high=high,
        unit=rates[slow].unit,
        n=min(rates[each].n for each in ordered),
        source=rates[slow].source,
        flags=tuple(
            dict.fromkeys(
                flag_text(flag)
                for each in ordered
                for flag in data.cell(each, standing.chosen.id).flags
            )
        ),
        footnote=lowest.footnote or highest.footnote,
        reason=lowest.reason or highest.reason,
        where=Where(slow, standing.chosen.id, RATE),
    )


def base_of_part(found: Sequence[Standing], own: Standing) -> Standing | None:
    """The llama.cpp that a framework is related to: that of the same machine; None without."""
    return next((each for each in found if each.key == BASE and each.part is own.part), None)


def _prompt(workload: WorkloadRecord) -> int:
    return workload.prompt_tokens or 0


def _memory_cell(data: ReportData, standing: Standing) -> str:
    """The workload on which the framework's peak of memory is the highest."""
    assert standing.chosen is not None
    peaks = {
        each: found.median
        for each in workloads_of(data, standing.chosen)
        if (found := data.summary(each, standing.chosen.id, MEMORY))
        and found.median is not None
        and not data.is_broken(each, standing.chosen.id)
    }
    return max(peaks, key=lambda each: peaks[each]) if peaks else next(iter(data.workload_names))


def _columns(data: ReportData, found: Sequence[Standing], latency: str) -> tuple[Column, ...]:
    chosen = [each.chosen for each in found if each.chosen is not None]
    times = [data.summary(latency, each.id, TTFT) for each in chosen]
    peaks = [
        data.summary(_memory_cell(data, each), each.chosen.id, MEMORY)
        for each in found
        if each.chosen is not None
    ]
    rates = [one for each in chosen for one in rates_of(data, each).values()]
    return (
        figures_column(
            TTFT,
            metric_label(TTFT),
            metric_short(TTFT),
            scale_for("s", [each.median for each in times if each]),
            "lower",
            *(each.source for each in times if each and each.median is not None),
        ),
        figures_column(
            "ttft_relative",
            _("Time to first token, relative to llama.cpp"),
            _("TTFT vs llama.cpp"),
            FACTOR,
            "lower",
            "derived" if chosen else "",
        ),
        figures_column(
            RATE,
            _("Decode rate, over the workloads"),
            metric_short(RATE),
            scale_for("token/s", [each.median for each in rates]),
            "higher",
            *(each.source for each in rates),
        ),
        figures_column(
            MEMORY,
            metric_label(MEMORY),
            metric_short(MEMORY),
            scale_for("byte", [each.median for each in peaks if each]),
            "lower",
            *(each.source for each in peaks if each and each.median is not None),
        ),
        words_column("quantizations", _("Quantisation support"), _("quantisations")),
    )


def _row(
    data: ReportData,
    standing: Standing,
    base: Standing | None,
    latency: str,
    columns: Sequence[Column],
    footnotes: Footnotes,
    place: int,
    colour: str,
) -> Row:
    name = _row_name(data, standing)
    remarks = [_("no framework")] if standing.runner == NO_FRAMEWORK else []
    support = offered_value(standing, footnotes)
    if standing.chosen is None:
        message = failure_of(data, standing.variants)
        reason = _("failed: {message}", message=recorded(message)) if message else _("not run")
        remark = _("failed") if message else _("not run")
        if not message and is_left_out(data, standing.variants):
            reason, remark = broken_text(), flag_text(BROKEN)
        missing = footnotes.missing(reason)
        return Row(
            variant=name,
            engine=commas(one_line(each.id) for each in standing.variants),
            place=place,
            repetitions=0,
            remarks=(*remarks, remark),
            failed=bool(message),
            values=(*(missing for _column in columns[:-1]), support),
            colour=colour,
        )
    variant = standing.chosen
    peak = _memory_cell(data, standing)
    own = {each: data.cell(each, variant.id) for each in workloads_of(data, variant)}
    time = data.summary(latency, variant.id, TTFT) if latency in own else None
    related = relative_ttft(data, standing, base, latency)
    values = (
        measured(time, data.cell(latency, variant.id), TTFT, columns[0].scale, footnotes),
        measured(related, data.cell(latency, variant.id), TTFT, FACTOR, footnotes),
        rate_range(data, standing, columns[2].scale, footnotes),
        measured(
            data.summary(peak, variant.id, MEMORY),
            data.cell(peak, variant.id),
            MEMORY,
            columns[3].scale,
            footnotes,
        ),
        support,
    )
    flags = dict.fromkeys(flag_text(flag) for cell in own.values() for flag in cell.flags)
    without = [each for each in standing.without if not data.is_broken(each, variant.id)]
    if without:
        failed = plural("failed on {count} workload", "failed on {count} workloads",
                        len(without))  # fmt: skip
        remarks.append(failed)
    return Row(
        variant=name,
        engine=" · ".join(filter(None, (one_line(variant.id), engine_text(variant)))),
        place=place,
        repetitions=min(each.n for each in own.values() if each.n),
        remarks=(*remarks, *flags),
        failed=False,
        values=values,
        colour=colour,
    )


def _row_name(data: ReportData, standing: Standing) -> str:
    if len(data.parts) == 1:
        return standing.name
    where = standing.part.label or standing.part.record.machine.cpu_model
    return f"{standing.name} · {one_line(where)}"


def _published(
    row: FrameworkRow, place: int, columns: Sequence[Column], footnotes: Footnotes
) -> Row:
    table = published_frameworks()
    by_column = {
        TTFT: footnotes.silent(
            _("the document gives no time, only the relation to llama.cpp"), table.document
        ),
        "ttft_relative": quoted(row.ttft_relative, table.document),
        RATE: quoted(row.decode_rate, table.document),
        MEMORY: quoted(row.peak_memory, table.document),
        "quantizations": replace(
            judged(row.quantization_support, table.document), chip=opinion_chip(table.document)
        ),
    }
    return Row(
        variant=framework_name(row.framework),
        engine=table.model,
        place=place,
        repetitions=0,
        remarks=(chip(table.document),),
        failed=False,
        values=tuple(by_column[each.key] for each in columns),
        published=True,
        colour=f"s{KNOWN[row.framework]}",
    )


def _remarks(data: ReportData, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    used = {remark for row in rows for remark in row.remarks}
    flags = dict.fromkeys(flag for cell in data.cells.values() for flag in cell.flags)
    known = {flag_text(flag): flag_meaning(flag, data.record.protocol) for flag in flags}
    known |= {
        chip(published_frameworks().document): published_meaning(),
        _("no framework"): _("the fake runner makes its figures up, to try edgebench out"),
    }
    return tuple((text, meaning) for text, meaning in known.items() if text in used)


def _notes(found: Sequence[Standing], latency: str) -> tuple[str, ...]:
    published = published_frameworks()
    notes = [
        _(
            "A framework's row is its fastest variant: that with the highest geometric mean of the "
            "decode rates over all workloads, of those that failed on none."
        ),
        _(
            "Time to first token is on {workload}, the longest prompt; relative to llama.cpp it is "
            "the median of the ratios within blocks. Decode rate is the lowest and the highest "
            "median over the workloads, the interval from the low end of the one to the high end "
            "of the other. Peak memory is that of the workload with the highest.",
            workload=one_line(latency),
        ),
        _(
            "Published rows are of {model}: {conditions}. They name no device, version, text or "
            "number of threads, so that their absolute values can't be set against this run's.",
            model=published.model,
            conditions=published.conditions.said(),
        ),
    ]
    kinds = {each.chosen.quantization for each in found if each.chosen is not None}
    if len(kinds) > 1:
        notes.append(
            _(
                "The variants that stand here are of different quantisations: {names}.",
                names=commas(sorted(kinds)),
            )
        )
    others = [each for each in found if any(one.framework for one in each.variants)]
    notes += [
        _(
            "{framework} is what the runner {runner} ran; its figures are not those of {named}.",
            framework=one_line(each.name),
            runner=each.runner,
            named=framework_name(each.runner),
        )
        for each in others
    ]
    return tuple(notes)
