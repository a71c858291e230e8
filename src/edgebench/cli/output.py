"""How a finished run is shown on the terminal."""

from __future__ import annotations

import json
import shlex
import textwrap
from typing import TYPE_CHECKING

import click
from rich.console import Console

from edgebench.harness.errors import ExitStatus
from edgebench.harness.execute import cells_worked
from edgebench.harness.results.summary import summarize
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.data import build_report_data
from edgebench.reports.frameworks_table import frameworks_table
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.quality import quality_views
from edgebench.reports.quantization import quantization_table
from edgebench.reports.selection.select import requirements_of, selection_of
from edgebench.reports.sentences import plain
from edgebench.reports.sustained import sustained_views
from edgebench.reports.sustained_terminal import sustained_table, sustained_text
from edgebench.reports.terminal import (
    comparison_table,
    document_table,
    formats_table,
    quality_table,
    quality_text,
    sameness_table,
    sameness_text,
    task_table,
)
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.run import Run
    from edgebench.reports.data import ReportData


_FORMS = {"md": "markdown"}
"""Of forms of a report, names for scripts that are not those of the files."""

WIDTH = 80
"""Of a terminal, at least."""

_HEAD = 9

WHAT_RAN = ("runner", "quantization", "engine", "engine_version", "framework")
"""Of a variant: a script that reads cells must know whose figures they are."""


def show_run(run: Run, reports: Mapping[str, Path], *, as_json: bool) -> int:
    """Print the comparison and the paths; return the exit status that the cells call for.

    Args:
        run: as it was read.
        reports: what was written, by form.
        as_json: print one JSON object instead.
    """
    cells = summarize(run.record, run.trials)
    data = build_report_data(run)
    status = exit_status(cells, data)
    worked, _ = cells_worked(cells)
    if as_json:
        click.echo(json.dumps(run_json(run, cells, reports, status), indent=2))
        return status
    if worked:
        _print_tables(data)
    if data.sameness is not None:
        Console().print(sameness_table(data.sameness))
        Console(highlight=False).print(sameness_text(data.sameness))
    tell_failures(cells)
    if status == ExitStatus.NOTHING_RAN:
        click.echo("edgebench: nothing could be run", err=True)
    # The page first: it is what people open.
    for number, form in enumerate(sorted(reports, key=lambda each: each != "html")):
        click.echo(f"{'' if number else 'report':<{_HEAD}}{reports[form]}")
    click.echo(f"results  {run.path}")
    if worked:
        for line in _choice(data):
            click.echo(line)
    return status


def run_json(
    run: Run, cells: Sequence[Cell], reports: Mapping[str, Path], status: ExitStatus
) -> dict[str, object]:
    """What scripts get of a run; see `show_run`."""
    return {
        "run_dir": str(run.path),
        "report": {_FORMS.get(form, form): str(path) for form, path in reports.items()},
        "exit_status": int(status),
        "variants": [
            each.model_dump(mode="json", include={"id", *WHAT_RAN}) for each in run.record.variants
        ],
        "quality": {
            each.name: each.quality.model_dump(mode="json")
            for each in run.record.workloads
            if each.quality is not None
        },
        "cells": [cell.model_dump(mode="json") for cell in cells],
        "sameness": {
            each.id: each.sameness.model_dump(mode="json")
            for each in [*run.record.variants, *run.record.proofs]
            if each.sameness is not None
        },
    }


def tell_failures(cells: Sequence[Cell], side: str = "") -> None:
    """Say which cells failed, and why; of two sides, of which one."""
    where = f"{side} · " if side else ""
    for cell in cells:
        if cell.failure is not None:
            click.echo(f"{where}{cell.variant} · {cell.workload}: {cell.status}", err=True)
            for line in cell.failure.message.splitlines():
                click.echo(f"  {line}", err=True)


def _choice(data: ReportData) -> Iterator[str]:
    """What the run recommends where its scenario says what is needed; else how to choose by it."""
    head = f"{'choose':<{_HEAD}}"
    if requirements_of(data) == Requirements():
        yield f"{head}edgebench select {shlex.quote(str(data.run.path))}"
        return
    headline = one_line(plain(selection_of(data).headline))
    yield from textwrap.wrap(
        headline,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * _HEAD,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_tables(data: ReportData) -> None:
    """Speed, tasks and quality, as far as the run has them."""
    if data.workload_names:
        Console().print(comparison_table(data))
    if data.task_names:
        Console().print(task_table(data))
    if any(view.stretches for view in sustained_views(data)):
        if data.workload_names or data.task_names:
            Console().print()
        Console().print(sustained_table(data))
        Console(highlight=False).print(sustained_text(data))
    if quality_views(data):
        if data.workload_names or data.task_names:
            Console().print()
        _print_quality(data)
    if data.record.synthetic is not None:
        _print_documents(data)


def _print_documents(data: ReportData) -> None:
    """The run's rows of the documents' tables, which are mostly about models like this one."""
    for each in (frameworks_table(data), platforms_table(data)):
        if each is not None:
            Console().print()
            Console().print(document_table(each))
    Console().print()


def _print_quality(data: ReportData) -> None:
    """What the texts that were rated say, and what each format costs where there are several."""
    Console().print(quality_table(data))
    formats = quantization_table(data)
    if formats is not None:
        Console().print()
        Console().print(formats_table(formats))
    Console().print()
    Console(highlight=False).print(quality_text(data))


def exit_status(cells: Sequence[Cell], data: ReportData) -> ExitStatus:
    """What the cells of a run call for, and what comparing them with the reference found.

    Cells that were not reached say nothing: an interrupted run is that and no more.
    """
    if data.run.record.status == "interrupted":
        return ExitStatus.INTERRUPTED
    worked, faultless = cells_worked(cells)
    if not worked:
        return ExitStatus.NOTHING_RAN
    same = data.sameness
    wrong = faultless < len(cells) or (same is not None and same.bad)
    return ExitStatus.SOME_CELLS_FAILED if wrong else ExitStatus.DONE
