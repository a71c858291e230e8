"""The report as Markdown, to paste where HTML can't go."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from edgebench.reports import facts
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.method import definitions, method, where_the_time_went
from edgebench.reports.options import options
from edgebench.reports.pareto import INTRO as FRONTS_INTRO
from edgebench.reports.pareto import dominated_sentence, fronts, kept_sentences
from edgebench.reports.quality import INTRO as QUALITY_INTRO
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quantization import quantization_table
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import INTRO, task_tables
from edgebench.reports.text import markdown, markdown_block, markdown_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgebench.harness.results.run import Run
    from edgebench.reports.data import ReportData
    from edgebench.reports.differences import Differences
    from edgebench.reports.sameness import SameView
    from edgebench.reports.sentences import Sentence
    from edgebench.reports.table import Column, ComparisonTable, Value


def render_markdown(run: Run) -> str:
    """A run as Markdown (GitHub's dialect, for its tables)."""
    return render_text(build_report_data(run))


def render_text(data: ReportData) -> str:
    """The data of a report as Markdown."""
    blocks = [
        *_head(data),
        *_short(data),
        *_comparison(data),
        *_tasks(data),
        *_quality(data),
        *_quantization(data),
        *_fronts(data),
        *_sameness(data),
        *_failures(data),
        *_sweeps(data),
        *_options(data),
        *_machine(data),
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
    for banner in facts.banners(data):
        yield f"> **{markdown(banner.title)}** {markdown(banner.text)}"
    model = facts.scenario_text(data, "model", "name")
    parts = [model, record.machine.cpu_model, facts.moment(record.created_at)]
    yield " · ".join(markdown(part) for part in parts if part)


def _short(data: ReportData) -> Iterator[str]:
    yield "## In short"
    for answer in answers(data):
        yield f"**{markdown(answer.workload)}**: {_sentence(answer.paragraph)}"
    for workload in data.quality_names:
        sentence = quality_answer(data, workload)
        if sentence:
            yield f"**{markdown(workload)}**: {_sentence(sentence)}"
    notes = facts.source_notes(data)
    if notes:
        yield _bullets(markdown(note) for note in notes)


def _comparison(data: ReportData) -> Iterator[str]:
    if not data.workload_names:
        return
    yield "## Comparison"
    yield (
        "Medians with their 95 % interval. **Bold** values are the best of their column, or this "
        "run can't tell them apart from it."
    )
    for table in comparison_rows(data):
        yield f"### {markdown(table.workload)}"
        yield _comparison_table(table, data.sameness)
        yield from _notes(table)


def _notes(table: ComparisonTable) -> Iterator[str]:
    if table.everywhere:
        yield f"All rows: {markdown(', '.join(table.everywhere))}."
    if table.sources:
        yield table.sources
    for sentence in table.no_intervals:
        yield markdown(sentence)
    if table.footnotes:
        yield "\n".join(
            f"{number}. {markdown(note)}" for number, note in enumerate(table.footnotes, 1)
        )
    if table.remarks:
        yield _bullets(f"{name}: {markdown(meaning)}." for name, meaning in table.remarks)


def _tasks(data: ReportData) -> Iterator[str]:
    tables = task_tables(data)
    if not tables:
        return
    yield "## Tasks"
    yield INTRO
    for each in tables:
        yield f"### {markdown(each.table.workload)}: {markdown(each.task)}"
        yield _comparison_table(each.table, None)
        yield from _notes(each.table)
        if each.used:
            yield _bullets(f"{markdown_code(who)}: {markdown(text)}" for who, text in each.used)


def _comparison_table(table: ComparisonTable, same: SameView | None) -> str:
    columns = [_heading(column) for column in table.columns]
    counted = [table.texts.counted] if table.texts.counted else []
    # What all rows of a table of quality have in common stands below it, and leaves no column.
    told = bool(table.texts.counted)
    engine = ["engine"] if told or any(row.engine for row in table.rows) else []
    remarks = ["remarks"] if told or any(row.remarks for row in table.rows) else []
    head = [table.texts.rows, *engine, *columns, *counted, *remarks]
    rows = [
        [
            markdown_code(row.variant),
            *(markdown(row.engine) for _ in engine),
            *(_value(value) for value in row.values),
            *(str(row.repetitions) for _ in counted),
            *(", ".join(row.remarks) for _ in remarks),
        ]
        for row in table.rows
    ]
    if same is not None:
        head.append("same model?")
        for cells, row in zip(rows, table.rows, strict=True):
            cells.append(markdown(same.short[row.variant]))
    first = 1 + len(engine)
    return _table(head, rows, numbers=range(first, first + len(columns) + len(counted)))


def _quality(data: ReportData) -> Iterator[str]:
    views = quality_views(data)
    if not views:
        return
    yield "## Quality"
    yield QUALITY_INTRO
    for view in views:
        yield f"### {markdown(view.workload)}"
        yield _comparison_table(view.table, None)
        yield from _notes(view.table)
        yield _bullets(markdown(sentence) for sentence in view.protocol)
        if view.differences is not None:
            if view.differences.tested:
                yield _differences(view.differences)
            yield markdown(view.differences.how)


def _differences(found: Differences) -> str:
    rows = [
        [
            markdown_code(row.first),
            markdown_code(row.second),
            row.change,
            markdown(row.interval),
            markdown(row.p),
            markdown(row.words),
        ]
        for row in found.rows
    ]
    head = ["variant", "next", "next is higher by", "95 % interval", "p", "verdict"]
    return _table(head, rows, numbers=range(2, 5))


def _quantization(data: ReportData) -> Iterator[str]:
    found = quantization_table(data)
    if found is None:
        return
    yield "## Quantisation"
    yield _comparison_table(found.table, None)
    yield from _notes(found.table)
    yield _bullets(markdown(note) for note in found.notes)


def _fronts(data: ReportData) -> Iterator[str]:
    found = fronts(data)
    if found is None:
        return
    yield "## Quality against cost"
    yield FRONTS_INTRO
    yield _bullets(markdown(note) for note in found.notes)
    for front in found.fronts:
        direction = "higher" if front.higher else "lower"
        yield (
            f"**{front.label}** on {markdown(front.workload)} ({direction} is better), not "
            "dominated:"
        )
        yield _bullets(_sentence(each) for each in kept_sentences(front))
        dominated = dominated_sentence(front)
        if dominated:
            yield _sentence(dominated)


def _heading(column: Column) -> str:
    return f"{column.short}, {column.scale.unit}" if column.scale.unit else column.short


def _value(value: Value) -> str:
    text = f"**{value.text}**" if value.best else value.text
    parts = [text, markdown(value.interval) if value.interval else "", value.source]
    note = f" ({value.footnote})" if value.footnote else ""
    return " ".join(part for part in parts if part) + note


def _sameness(data: ReportData) -> Iterator[str]:
    view = data.sameness
    if view is None:
        return
    yield "## Same model?"
    yield f"**{markdown(view.judgement)}** {markdown(view.reference)}".rstrip()
    head = ["variant", "engine", "same model?", "on", "tokenizer", "greedy tokens in common"]
    head += ["top-1", "KL, nat", "KL p99, nat", "largest log-likelihood difference, nat"]
    rows = [
        [
            markdown_code(row.variant),
            markdown(row.engine),
            f"**{markdown(row.verdict)}**" if row.bad else markdown(row.verdict),
            markdown(prompt.workload),
            prompt.tokenizer,
            prompt.greedy,
            prompt.top1,
            prompt.kl,
            prompt.kl_p99,
            prompt.difference,
        ]
        for row in view.rows
        for prompt in row.prompts
    ]
    if rows:
        yield _table(head, rows, numbers=range(5, 10))
    lines = [
        *(f"{markdown_code(row.variant)}: {markdown(why)}" for row in view.rows for why in row.why),
        *(f"{markdown(who)}: {markdown(remark)}" for who, remark in view.remarks),
        *(markdown(note) for note in view.notes),
    ]
    if lines:
        yield _bullets(lines)


def _failures(data: ReportData) -> Iterator[str]:
    if not data.failures:
        return
    yield "## Failures"
    for failure in data.failures:
        times = f", {failure.count} times" if failure.count > 1 else ""
        where = ", ".join(markdown(each) for each in failure.where)
        yield (
            f"**{markdown(failure.variant)}** {failure.what} on {where}{times}. "
            f"{markdown(failure.message)}"
        )
        if failure.log_tail:
            if failure.log:
                yield f"The end of {markdown_code(failure.log)}:"
            yield markdown_block(failure.log_tail)


def _sweeps(data: ReportData) -> Iterator[str]:
    found = sweeps(data)
    if not found:
        return
    yield "## Sweeps"
    for sweep in found:
        yield f"{markdown(sweep.base)}, {markdown(sweep.workload)}: {_sentence(sweep.verdict)}"
        rows = [[markdown(point.value), markdown(point.figure)] for point in sweep.points]
        yield _table([markdown(sweep.option), f"decode, {sweep.unit}"], rows, numbers=(1,))


def _options(data: ReportData) -> Iterator[str]:
    compared = options(data)
    yield "## Options in effect"
    if compared.differing:
        names = ", ".join(markdown_code(name) for name in compared.differing)
        yield f"Differs between the variants: {names}."
        rows = [
            [markdown_code(variant), *(markdown(value) for value in values)]
            for variant, values in compared.rows
        ]
        yield _table(["variant", *(markdown(name) for name in compared.differing)], rows)
    if compared.overruled:
        yield _bullets(
            f"{markdown_code(variant)} asked for {markdown(name)} = {markdown(asked)}; "
            f"the framework used {markdown(used)}."
            for variant, name, asked, used in compared.overruled
        )
    if compared.shared:
        yield "The same in every variant:"
        yield _bullets(f"{markdown(name)}: {markdown(value)}" for name, value in compared.shared)


def _machine(data: ReportData) -> Iterator[str]:
    machine = data.record.machine
    yield "## Machine"
    yield _bullets(f"{name}: {markdown(value)}" for name, value in facts.machine_facts(machine))
    warnings = facts.machine_warnings(machine)
    if warnings:
        yield _bullets(f"**{markdown(warning)}**" for warning in warnings)


def _method(data: ReportData) -> Iterator[str]:
    yield "## Method"
    yield _bullets(f"**{name}.** {markdown(text)}" for name, text in method(data.record))
    yield "### Definitions"
    rows = [
        [
            markdown(each.label),
            markdown_code(each.key),
            markdown(each.unit),
            ", ".join(each.sources) or "not measured",
            markdown(each.definition),
        ]
        for each in definitions(data)
    ]
    yield _table(["metric", "key", "unit", "source", "definition"], rows)
    spent = where_the_time_went(data.record)
    if spent:
        yield "### Where the time went"
        yield _bullets(f"{name}: {text}" for name, text in spent)


def _again(data: ReportData) -> Iterator[str]:
    record = data.record
    yield "## Files, and how to run it again"
    yield markdown_block(shlex.join(record.command) if record.command else facts.command(data))
    source = facts.scenario_text(data, "model", "source")
    pairs = [
        ("Run", record.id),
        ("edgebench", record.edgebench_version),
        ("Seed", str(record.seed)),
        ("Model source", source),
        ("Scenario, sha256", record.scenario_sha256),
    ]
    yield _bullets(f"{name}: {markdown(value)}" for name, value in pairs if value)
    rows = [
        [
            markdown_code(file.artifact.name),
            file.size,
            file.bits_per_weight,
            markdown(file.artifact.made_by),
            markdown(file.artifact.note or ""),
            markdown_code(file.artifact.sha256),
        ]
        for file in facts.files(data)
    ]
    if rows:
        yield _table(["file", "size", "bits/weight", "made by", "note", "sha256"], rows)


def _sentence(sentence: Sentence) -> str:
    return "".join(
        markdown_spaced(part) if isinstance(part, str) else f"**{markdown(part.text)}**"
        for part in sentence
    )


def markdown_spaced(text: str) -> str:
    """`markdown`, with the spaces at both ends, which join a sentence's parts, kept."""
    before = " " if text.startswith(" ") else ""
    after = " " if text.endswith(" ") and text.strip() else ""
    return f"{before}{markdown(text)}{after}"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()
) -> str:
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
