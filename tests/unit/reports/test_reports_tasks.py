"""Whole tasks in reports: a table of their own, in no ranking, in no column of token rates."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.results.model import TaskEngine, WorkloadRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import TaskOutput, Trial
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.html import render_html
from edgebench.reports.markdown import render_markdown
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import task_tables
from edgebench.reports.terminal import task_table

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.reports.data import ReportData

ENGINE = TaskEngine(
    engine="MediaPipe TextSummarizer",
    engine_version="1.2.3",
    build={"embedded engine": "LiteRT-LM 0.20.0"},
    effective_options={"mode": "KEYPOINTS", "max_num_tokens": 1280},
)
RESULT = "A <b>lighthouse</b>."


def made(tmp_path: Path, *, only_tasks: bool = False) -> Run:
    """Two variants; both make tokens on `w`, and summarize, one of them three times as fast."""
    rates = {"decode_rate": [10.0] * 5, "ttft_s": [0.5] * 5}
    record, trials = handmade({"fast": dict(rates), "slow": dict(rates)})
    _, whole = handmade(
        {
            name: {"task_latency_s": [latency] * 5, "task_output_characters": [20.0] * 5}
            for name, latency in (("fast", 1.5), ("slow", 4.5))
        },
        units={"task_latency_s": "s", "task_output_characters": "character"},
    )
    output = TaskOutput(text=RESULT, finished_ns=1)
    tasks = [
        Trial.model_validate(
            each.model_dump() | {"kind": "task", "workload": "summary", "output": output}
        )
        for each in whole
    ]
    summary = WorkloadRecord(
        name="summary",
        description="",
        task="text-summarizer",
        generate_tokens=None,
        prompt_text="A long text.",
    )
    record = record.model_copy(
        update={
            "workloads": [summary] if only_tasks else [*record.workloads, summary],
            "variants": [
                each.model_copy(update={"tasks": {"text-summarizer": ENGINE}})
                for each in record.variants
            ],
        }
    )
    return Run(path=tmp_path, record=record, trials=(*([] if only_tasks else trials), *tasks))


@pytest.fixture
def data(tmp_path: Path) -> ReportData:
    return build_report_data(made(tmp_path))


def test_a_task_is_in_no_comparison_and_leads_nothing(data: ReportData) -> None:
    """Neither the comparison nor the short answer knows of it."""
    assert [table.workload for table in comparison_rows(data)] == ["w"]
    assert [answer.workload for answer in answers(data)] == ["w"]
    keys = {column.key for table in comparison_rows(data) for column in table.columns}
    assert not any(key.startswith("task_") for key in keys)


def test_its_own_table_has_its_latency_and_ranks_nobody(data: ReportData) -> None:
    """Three times as fast is shown, and not called the best: the texts need not be alike."""
    (found,) = task_tables(data)
    assert found.task == "text-summarizer"
    keys = [column.key for column in found.table.columns]
    assert keys[:2] == ["task_latency_s", "task_output_characters"]
    assert "decode_rate" not in keys
    texts = [[value.text for value in row.values[:2]] for row in found.table.rows]
    assert texts == [["1.50", "20.0"], ["4.50", "20.0"]]
    assert not any(value.best for row in found.table.rows for value in row.values)


def test_it_names_what_ran_the_task(data: ReportData) -> None:
    """Engine and version are those of the task, with the engine that it embeds."""
    (found,) = task_tables(data)
    names = {row.engine for row in found.table.rows}
    assert names == {"MediaPipe TextSummarizer 1.2.3, embedded engine LiteRT-LM 0.20.0"}
    assert found.used[0] == ("fast", "mode = KEYPOINTS, max_num_tokens = 1280")
    assert found.results == (("fast", RESULT), ("slow", RESULT))


def test_every_report_shows_the_tasks_apart(tmp_path: Path) -> None:
    """HTML and Markdown have a section of their own; what a model wrote is escaped."""
    run = made(tmp_path)
    html, markdown = render_html(run), render_markdown(run)
    comparison = re.search(r'<section id="comparison".*?</section>', html, re.DOTALL)
    tasks = re.search(r'<section id="tasks".*?</section>', html, re.DOTALL)
    assert comparison is not None
    assert tasks is not None
    assert "summary" not in comparison[0]
    assert "1.50" in tasks[0]
    assert "A &lt;b&gt;lighthouse&lt;/b&gt;." in tasks[0]
    before, _, after = markdown.partition("## Tasks")
    assert "text-summarizer" not in before
    (row,) = [line for line in after.splitlines() if line.startswith("| `slow` | MediaPipe")]
    assert "| 4.50 " in row


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_a_run_of_tasks_only_has_no_empty_comparison(tmp_path: Path, render: object) -> None:
    """Sections that would be empty are not there."""
    text = render(made(tmp_path, only_tasks=True))  # type: ignore[operator]
    assert "Comparison</h2>" not in text
    assert "## Comparison" not in text
    assert "1.50" in text


def test_the_terminal_shows_tasks_in_eighty_columns(data: ReportData) -> None:
    """No line is longer, no figure is cut off."""
    screen = io.StringIO()
    Console(file=screen, width=80).print(task_table(data))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "1.50" in screen.getvalue()
    assert "…" not in screen.getvalue()
