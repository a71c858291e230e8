"""The report as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edgebench.reports import facts, plots
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.details import details
from edgebench.reports.format import duration
from edgebench.reports.method import SOURCES, definitions, method, where_the_time_went
from edgebench.reports.options import options
from edgebench.reports.pareto import INTRO as FRONTS_INTRO
from edgebench.reports.pareto import fronts
from edgebench.reports.pareto_plot import front_plot
from edgebench.reports.quality import INTRO as QUALITY_INTRO
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quantization import quantization_table
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import INTRO, task_tables
from edgebench.reports.text import clean

if TYPE_CHECKING:
    from edgebench.harness.results.run import Run
    from edgebench.reports.data import ReportData
    from edgebench.reports.plots import Plot


def render_html(run: Run) -> str:
    """A run as one self-contained HTML page."""
    return render_page(build_report_data(run))


def render_page(data: ReportData) -> str:
    """The data of a report as one self-contained HTML page."""
    environment = _environment()
    style = _template_text(environment, "style.css")
    script = _template_text(environment, "sort.js")
    found_fronts = fronts(data)
    return environment.get_template("report.html.j2").render(
        data=data,
        record=data.record,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=_policy(style, script),
        banners=facts.banners(data),
        notes=facts.source_notes(data),
        description=facts.scenario_text(data, "description"),
        model_name=facts.scenario_text(data, "model", "name"),
        model_source=facts.scenario_text(data, "model", "source"),
        model_license=facts.scenario_text(data, "model", "license"),
        created=facts.moment(data.record.created_at),
        measured=_measured(data),
        answers=answers(data),
        tables=comparison_rows(data),
        tasks=task_tables(data),
        tasks_intro=INTRO,
        quality=quality_views(data),
        quality_intro=QUALITY_INTRO,
        quality_answers=[
            (each, sentence)
            for each in data.quality_names
            if (sentence := quality_answer(data, each))
        ],
        formats=quantization_table(data),
        fronts=found_fronts,
        fronts_intro=FRONTS_INTRO,
        front_plots=[
            front_plot(found_fronts, front, name=f"front-{number}")
            for number, front in enumerate(found_fronts.fronts)
        ]
        if found_fronts
        else [],
        same=data.sameness,
        pictures=_pictures(data),
        gap_plots=_gap_plots(data),
        memory_workload=_largest_workload(data),
        memory_plots=_memory_plots(data),
        sweeps=sweeps(data),
        options=options(data),
        machine=facts.machine_facts(data.record.machine),
        machine_warnings=facts.machine_warnings(data.record.machine),
        method=method(data.record),
        definitions=definitions(data),
        source_meanings=SOURCES,
        time=where_the_time_went(data.record),
        files=facts.files(data),
        command=facts.command(data),
        scenario=json.dumps(data.record.scenario, indent=2, ensure_ascii=False),
        runners={
            name: json.dumps(description, indent=2, ensure_ascii=False)
            for name, description in data.record.runners.items()
        },
        details={
            name: details(data, name)
            for name in (*data.workload_names, *data.task_names, *data.quality_names)
        },
    )


def _measured(data: ReportData) -> int:
    """Generations and tasks that count; a text that is rated is no repetition of anything."""
    return sum(cell.n for (name, _), cell in data.cells.items() if name not in data.quality_names)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("edgebench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    environment.filters["duration"] = duration
    environment.filters["svg"] = _svg
    return environment


def _cleaned(value: object) -> object:
    """What every value passes on its way into the page, before it is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value)
    return value


def _svg(plot: Plot) -> Markup:
    # Written by ElementTree, which escapes every name in it.
    return Markup(plot.svg)  # noqa: S704


def _template_text(environment: Environment, name: str) -> str:
    loader = environment.loader
    assert loader is not None
    text, _, _ = loader.get_source(environment, name)
    return text


def _policy(style: str, script: str) -> str:
    """A content security policy under which the page can reach nothing."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _pictures(data: ReportData) -> dict[str, tuple[Plot, ...]]:
    return {
        table.workload: plots.bar_plots(data, table, name=f"bars-{number}")
        for number, table in enumerate(comparison_rows(data))
    }


def _gap_plots(data: ReportData) -> tuple[Plot, ...]:
    made = (
        plots.gap_plot(data, workload, name=f"gaps-{number}")
        for number, workload in enumerate(data.workload_names)
    )
    return tuple(plot for plot in made if plot is not None)


def _memory_plots(data: ReportData) -> tuple[Plot, ...]:
    workload = _largest_workload(data)
    return plots.memory_plots(data, workload, name="memory") if workload else ()


def _largest_workload(data: ReportData) -> str:
    """The workload with the most tokens in its cache among those with a memory timeline."""
    with_timeline = {workload for workload, _ in data.series.generation_memory}
    sizes = {
        each.name: each.depth + (each.prompt_tokens or 0) + each.generate_tokens
        for each in data.record.workloads
        if each.name in with_timeline and each.generate_tokens is not None
    }
    return max(sizes, key=lambda name: sizes[name], default="")
