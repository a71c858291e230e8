"""The report as Markdown, to paste where HTML can't go."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from edgebench.reports import facts
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.documents import document_notes
from edgebench.reports.features_table import features_tables
from edgebench.reports.frameworks_table import frameworks_table
from edgebench.reports.history import history_view
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, paragraph
from edgebench.reports.markdown_choice import choice_blocks
from edgebench.reports.markdown_text import (
    bullets,
    pair,
    rows_and_columns,
    sentence_text,
    table_blocks,
    title,
)
from edgebench.reports.metered import meter_facts, meter_method
from edgebench.reports.method import definitions, method, where_the_time_went
from edgebench.reports.opening import opening
from edgebench.reports.options import options
from edgebench.reports.pareto import INTRO as FRONTS_INTRO
from edgebench.reports.pareto import dominated_sentence, fronts, kept_sentences
from edgebench.reports.parts import part_banners, part_notes, runs_table, several
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.quality import INTRO as QUALITY_INTRO
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quantization import quantization_table
from edgebench.reports.run_labels import machine_name
from edgebench.reports.selection.select import selection_of
from edgebench.reports.sustained import INTRO as SUSTAINED_INTRO
from edgebench.reports.sustained import sustained_views
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import INTRO as TASKS_INTRO
from edgebench.reports.tasks import task_tables
from edgebench.reports.text import markdown, markdown_block, markdown_code
from edgebench.reports.word_tables import (
    difference_table,
    options_table,
    sameness_tables,
    sweep_table,
    with_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.run import Run
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.table_model import Table


def render_markdown(run: Run) -> str:
    """A run as Markdown (GitHub's dialect, for its tables and its Mermaid drawings)."""
    return render_text(build_report_data(run))


def render_text(data: ReportData) -> str:
    """The data of a report as Markdown."""
    blocks = [
        *_head(data),
        *choice_blocks(selection_of(data), names=data.variant_ids),
        *_short(data),
        *_frameworks(data),
        *_comparison(data),
        *_platforms(data),
        *_features(data),
        *_documents(data),
        *_sustained(data),
        *_tasks(data),
        *_quality(data),
        *_quantization(data),
        *_fronts(data),
        *_history(data),
        *_sameness(data),
        *_failures(data),
        *_sweeps(data),
        *_options(data),
        *_machines(data),
        *_method(data),
        *_again(data),
    ]
    return "\n\n".join(blocks) + "\n"


def _head(data: ReportData) -> Iterator[str]:
    record = data.record
    yield f"# {markdown(record.scenario_name)}"
    description = facts.scenario_text(data, "description")
    if description:
        yield markdown(description)
    for banner in (*part_banners(data), *facts.banners(data)):
        yield f"> **{markdown(banner.title)}** {markdown(banner.text)}"
    machines = dict.fromkeys(machine_name(each.record.machine) for each in data.parts)
    parts = [
        facts.scenario_text(data, "model", "name"),
        commas(machines) if several(data) else record.machine.cpu_model,
        commas(dict.fromkeys(facts.moment(each.record.created_at) for each in data.parts)),
    ]
    yield " · ".join(markdown(part) for part in parts if part)
    yield paragraph(sentence_text(each) for each in opening(data))


def _short(data: ReportData) -> Iterator[str]:
    yield title(_("In short"))
    for answer in answers(data):
        yield pair(f"**{markdown(answer.workload)}**", sentence_text(answer.paragraph))
    for workload in data.quality_names:
        sentence = quality_answer(data, workload)
        if sentence:
            yield pair(f"**{markdown(workload)}**", sentence_text(sentence))
    notes = (*part_notes(data), *facts.source_notes(data))
    if notes:
        yield bullets(markdown(note) for note in notes)


def _titled(data: ReportData, text: str, table: Table | None) -> Iterator[str]:
    """A section of one table."""
    if table is None:
        return
    yield title(text)
    yield from _shown(data, table)


def _shown(data: ReportData, table: Table) -> Iterator[str]:
    yield from table_blocks(table, names=data.variant_ids)


def _frameworks(data: ReportData) -> Iterator[str]:
    yield from _titled(data, _("Frameworks"), frameworks_table(data))


def _platforms(data: ReportData) -> Iterator[str]:
    yield from _titled(data, _("Platforms"), platforms_table(data))


def _features(data: ReportData) -> Iterator[str]:
    tables = features_tables(data)
    if not tables:
        return
    yield title(_("Features"))
    for table in tables:
        yield f"### {markdown(table.workload)}"
        yield from _shown(data, table)


def _documents(data: ReportData) -> Iterator[str]:
    found = document_notes(data)
    if not found.tables and not found.notes:
        return
    yield title(_("The documents' figures"))
    for table in found.tables:
        yield f"### {markdown(table.workload)}"
        yield from _shown(data, table)
    if found.notes:
        yield bullets(map(sentence_text, found.notes))


def _comparison(data: ReportData) -> Iterator[str]:
    if not data.workload_names:
        return
    yield title(_("Comparison"))
    yield _(
        "Medians with their 95 % interval. **Bold** values are the best of their column, or this "
        "run can't tell them apart from it."
    )
    for table in comparison_rows(data):
        yield f"### {markdown(table.workload)}"
        yield from _shown(data, with_verdicts(table, data.sameness))


def _sustained(data: ReportData) -> Iterator[str]:
    views = sustained_views(data)
    if not views:
        return
    yield title(_("Sustained work"))
    yield _(SUSTAINED_INTRO)
    for view in views:
        yield f"### {markdown(view.workload)}"
        yield from _shown(data, view.table)
        if view.seen:
            yield bullets(
                pair(markdown_code(who), markdown(paragraph((text, view.extent[who]))))
                for who, text in view.seen
            )
        for each in view.over_time:
            yield f"#### {markdown(each.workload)}"
            yield from _shown(data, each)


def _tasks(data: ReportData) -> Iterator[str]:
    tables = task_tables(data)
    if not tables:
        return
    yield title(_("Tasks"))
    yield _(TASKS_INTRO)
    for each in tables:
        yield pair(f"### {markdown(each.table.workload)}", markdown(each.task))
        yield from _shown(data, each.table)
        if each.used:
            yield bullets(pair(markdown_code(who), markdown(text)) for who, text in each.used)


def _quality(data: ReportData) -> Iterator[str]:
    views = quality_views(data)
    if not views:
        return
    yield title(_("Quality"))
    yield _(QUALITY_INTRO)
    for number, view in enumerate(views):
        yield f"### {markdown(view.workload)}"
        yield from _shown(data, view.table)
        yield bullets(markdown(sentence) for sentence in view.protocol)
        if view.differences is not None:
            table = difference_table(view, number)
            if table is not None:
                yield from _shown(data, table)
            yield markdown(view.differences.how)


def _quantization(data: ReportData) -> Iterator[str]:
    found = quantization_table(data)
    if found is None:
        return
    yield title(_("Quantisation"))
    yield from _shown(data, found.table)
    yield bullets(markdown(note) for note in found.notes)


def _fronts(data: ReportData) -> Iterator[str]:
    found = fronts(data)
    if found is None:
        return
    yield title(_("Quality against cost"))
    yield _(FRONTS_INTRO)
    yield bullets(markdown(note) for note in found.notes)
    for front in found.fronts:
        direction = _("higher is better") if front.higher else _("lower is better")
        what = _(
            "{label} on {workload} ({direction}), not dominated:",
            label=front.label,
            workload=front.workload,
            direction=direction,
        )
        yield f"**{markdown(what)}**"
        yield bullets(sentence_text(each) for each in kept_sentences(front))
        dominated = dominated_sentence(front)
        if dominated:
            yield sentence_text(dominated)


def _history(data: ReportData) -> Iterator[str]:
    view = history_view(data, drawn=False)
    if view is None:
        return
    yield title(_("History"))
    yield markdown(view.intro)
    yield bullets(markdown(each) for each in view.sentences)
    for table in view.tables:
        yield f"### {markdown(table.workload)}"
        yield from _shown(data, table)


def _sameness(data: ReportData) -> Iterator[str]:
    view = data.sameness
    if view is None:
        return
    yield title(_("Same model?"))
    yield f"**{markdown(view.judgement)}** {markdown(view.reference)}".rstrip()
    for table in sameness_tables(data):
        yield f"### {markdown(table.workload)}"
        yield from _shown(data, table)
    lines = [
        *(pair(markdown_code(row.variant), markdown(why)) for row in view.rows for why in row.why),
        *(pair(markdown(who), markdown(remark)) for who, remark in view.remarks),
        *(markdown(note) for note in view.notes),
    ]
    if lines:
        yield bullets(lines)


def _failures(data: ReportData) -> Iterator[str]:
    if not data.failures:
        return
    yield title(_("Failures"))
    for failure in data.failures:
        where = commas(failure.where)
        what = (
            _("{what} on {where}.", what=failure.what, where=where)
            if failure.count == 1
            else _(
                "{what} on {where}, {count} times.",
                what=failure.what,
                where=where,
                count=failure.count,
            )
        )
        message = markdown(recorded(failure.message))
        yield paragraph((f"**{markdown(failure.variant)}** {markdown(what)}", message))
        if failure.log_tail:
            if failure.log:
                yield pair(markdown(_("The end of the log")), markdown_code(failure.log))
            yield markdown_block(failure.log_tail)


def _sweeps(data: ReportData) -> Iterator[str]:
    found = sweeps(data)
    if not found:
        return
    yield title(_("Sweeps"))
    for number, sweep in enumerate(found):
        where = commas(map(markdown, (sweep.base, sweep.workload)))
        yield pair(where, sentence_text(sweep.verdict))
        yield from _shown(data, sweep_table(sweep, number))


def _options(data: ReportData) -> Iterator[str]:
    compared = options(data)
    yield title(_("Options in effect"))
    table = options_table(data, compared)
    if table is not None:
        names = commas(markdown_code(name) for name in compared.differing)
        yield pair(markdown(_("Differs between the variants")), names)
        yield from _shown(data, table)
    if compared.overruled:
        yield bullets(
            pair(
                markdown_code(variant),
                markdown(
                    _(
                        "asked for {name} = {asked}; the framework used {used}.",
                        name=name,
                        asked=asked,
                        used=used,
                    )
                ),
            )
            for variant, name, asked, used in compared.overruled
        )
    if compared.shared:
        yield _("The same in every variant:")
        yield bullets(pair(markdown(name), markdown(value)) for name, value in compared.shared)


def _machines(data: ReportData) -> Iterator[str]:
    table = runs_table(data)
    if table is not None:
        yield title(_("Runs"))
        yield from _shown(data, table)
    seen: set[str] = set()
    for part in data.parts:
        machine = part.record.machine
        if machine.fingerprint in seen:
            continue
        seen.add(machine.fingerprint)
        heading = title(_("Machine"))
        yield pair(heading, markdown(machine_name(machine))) if several(data) else heading
        yield bullets(
            pair(markdown(name), markdown(value))
            for name, value in (
                *facts.device_facts(part.record),
                *facts.machine_facts(machine),
                *facts.bandwidth_facts(part.record),
                *meter_facts(part.record),
            )
        )
        warnings = facts.machine_warnings(machine)
        if warnings:
            yield bullets(f"**{markdown(warning)}**" for warning in warnings)


def _method(data: ReportData) -> Iterator[str]:
    yield title(_("Method"))
    records = [part.record for part in data.parts]
    yield bullets(
        "**" + markdown(_("{subject}.", subject=name)) + f"** {markdown(text)}"
        for name, text in (*method(data.record, records), *meter_method(data))
    )
    yield title(_("Definitions"), level=3)
    rows = [
        [
            markdown(each.label),
            markdown_code(each.key),
            markdown(each.unit),
            commas(_(source) for source in each.sources) or _("not measured"),
            markdown(each.definition),
        ]
        for each in definitions(data)
    ]
    head = [_("metric"), _("key"), _("unit"), _("source"), _("definition")]
    yield rows_and_columns(head, rows)
    spent = where_the_time_went(data.record)
    if spent:
        yield title(_("Where the time went"), level=3)
        yield bullets(pair(name, text) for name, text in spent)


def _again(data: ReportData) -> Iterator[str]:
    yield title(_("Files, and how to run it again"))
    for part in data.parts:
        yield from _run(data, part)
    rows = [
        [
            markdown_code(file.artifact.name),
            file.size,
            file.bits_per_weight,
            markdown(recorded(file.artifact.made_by)),
            markdown(recorded(file.artifact.note or "")),
            markdown_code(file.artifact.sha256),
        ]
        for file in facts.files(data)
    ]
    if rows:
        head = [_("file"), _("size"), _("bits/weight"), _("made by"), _("note"), "sha256"]
        yield rows_and_columns(head, rows)


def _run(data: ReportData, part: Part) -> Iterator[str]:
    """How one run is made again."""
    record = part.record
    if part.label:
        yield f"**{markdown(part.label)}**"
    command = record.command or ["edgebench", "run", record.scenario_name]
    yield markdown_block(shlex.join(command))
    pairs = [
        (_("Run"), record.id),
        ("edgebench", record.edgebench_version),
        (_("Seed"), str(record.seed)),
        (_("Model source"), facts.scenario_text(data, "model", "source")),
        (_("Scenario, sha256"), record.scenario_sha256),
    ]
    yield bullets(pair(name, markdown(value)) for name, value in pairs if value)
