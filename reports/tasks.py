"""Whole tasks: a table of their own, since a latency of unlike texts is no speed to rank by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.languages import N_
from edgebench.reports.options import option_text
from edgebench.reports.table import comparison_of

if TYPE_CHECKING:
    from edgebench.harness.results.model import TaskEngine, WorkloadRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.table_model import Table

TASK_KEYS = ("task_latency_s", "task_output_characters", "task_load_s", "peak_rss_bytes")

INTRO = N_(
    "Each framework runs the whole task by itself: the text in, its result out. The time from one "
    "to the other depends on how much it writes and on what it adds to the text, so nothing here "
    "is ranked, and nothing here compares with a token rate."
)


@dataclass(frozen=True, slots=True)
class TaskTable:
    """All variants on one task.

    Attributes:
        task: the task's name.
        table: its figures, of which none is marked as the best.
        used: by variant, the options that its engine says it used, as text.
        results: by variant, what the last measured repetition gave.
    """

    task: str
    table: Table
    used: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]


def task_tables(data: ReportData) -> tuple[TaskTable, ...]:
    """One for each workload that is a task."""
    return tuple(_task_table(data, workload) for workload in data.record.workloads if workload.task)


def task_engine_text(engine: TaskEngine) -> str:
    """Name and version, with what it embeds."""
    inside = "".join(f", {name} {value}" for name, value in engine.build.items())
    return f"{engine.engine} {engine.engine_version}{inside}"


def _task_table(data: ReportData, workload: WorkloadRecord) -> TaskTable:
    task = workload.task or ""
    engines = {
        variant.id: variant.tasks[task] for variant in data.record.variants if task in variant.tasks
    }
    texts = {each: task_engine_text(engine) for each, engine in engines.items()}
    table = comparison_of(data, workload.name, TASK_KEYS, engines=texts, ranked=False, kind="tasks")
    used = (
        (variant, ", ".join(f"{k} = {option_text(v)}" for k, v in engine.effective_options.items()))
        for variant, engine in engines.items()
    )
    return TaskTable(
        task=task,
        table=table,
        used=tuple((variant, text) for variant, text in used if text),
        results=_results(data, workload.name),
    )


def _results(data: ReportData, workload: str) -> tuple[tuple[str, str], ...]:
    last = {
        trial.variant: trial.output.text
        for trial in data.run.trials
        if trial.workload == workload and trial.phase == "measured" and trial.output is not None
    }
    return tuple((variant, last[variant]) for variant in data.variant_ids if variant in last)
