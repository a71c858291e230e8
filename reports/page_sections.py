"""Which sections a page has, in which order, and what each one shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports import facts, plots
from edgebench.reports.answer import answers
from edgebench.reports.colours import framework_colours, framework_key
from edgebench.reports.details import details
from edgebench.reports.documents import document_notes
from edgebench.reports.drill import drill_json
from edgebench.reports.features_table import features_tables
from edgebench.reports.frameworks_table import framework_name, frameworks_table
from edgebench.reports.history import history_view
from edgebench.reports.languages import _
from edgebench.reports.metered import meter_method
from edgebench.reports.method import definitions, method, source_meanings, where_the_time_went
from edgebench.reports.opening import opening
from edgebench.reports.options import options
from edgebench.reports.pareto import INTRO as FRONTS_INTRO
from edgebench.reports.pareto import fronts
from edgebench.reports.parts import part_banners, part_notes, runs_table
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.quality import INTRO as QUALITY_INTRO
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quantization import quantization_table
from edgebench.reports.selection.limits import limit_texts
from edgebench.reports.selection.select import requirements_of, selection_of
from edgebench.reports.sustained import INTRO as SUSTAINED_INTRO
from edgebench.reports.sustained import sustained_views
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.tasks import INTRO as TASKS_INTRO
from edgebench.reports.tasks import task_tables
from edgebench.reports.word_tables import (
    difference_table,
    options_table,
    sameness_tables,
    sweep_table,
    with_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.reports.data import ReportData
    from edgebench.reports.details import Detail

MOST_FIGURES = 4000
"""More figures than this are not written out as plain tables: the page would grow too large."""


@dataclass(frozen=True, slots=True)
class Sections:
    """What a page is made of.

    Attributes:
        groups: heads of the navigation, each with the sections below it, by their id.
        titles: by id.
        context: what the templates read.
        behind: the data behind the figures, as JSON.
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...]
    titles: Mapping[str, str]
    context: Mapping[str, object]
    behind: str


def sections(data: ReportData, folder: Path | None = None) -> Sections:
    """All sections that this report has something to say in.

    Args:
        data: the report's data.
        folder: where the page will lie; None where it is beside its run.
    """
    found = _details(data)
    context = _context(data, found)
    groups = []
    for group, names in _order():
        kept = tuple(name for name in names if context.get(_NEEDS.get(name, ""), True))
        groups.append((group, kept))
    return Sections(
        groups=tuple((group, names) for group, names in groups if names),
        titles=_titles(),
        context=context,
        behind=drill_json(data, found, folder),
    )


_NEEDS = {
    "frameworks": "frameworks",
    "comparison": "tables",
    "tasks": "tasks",
    "sustained": "sustained",
    "quality": "quality",
    "quantization": "formats",
    "fronts": "fronts",
    "platforms": "platforms",
    "features": "features",
    "documents": "documents",
    "pictures": "pictures",
    "roofline": "roofline",
    "tokens": "gap_plots",
    "memory": "memory_plots",
    "history": "history",
    "same": "same",
    "failures": "failures",
    "sweeps": "sweeps",
}
"""By section, what of the context it can't do without."""


def _order() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (_("Decide"), ("short", "recommendation", "frameworks")),
        (_("Look"), ("pictures",)),
        (
            _("Compare"),
            (
                *("comparison", "sustained", "tasks", "quantization", "fronts", "quality"),
                *("platforms", "features", "documents"),
            ),
        ),
        (_("Details"), ("history", "roofline", "tokens", "memory")),
        (_("Check"), ("same", "failures", "sweeps", "options", "machine", "method")),
        (_("Go on"), ("figures", "again")),
    )


def _titles() -> dict[str, str]:
    return {
        "short": _("In short"),
        "recommendation": _("Recommendation"),
        "frameworks": _("Frameworks"),
        "comparison": _("Comparison"),
        "tasks": _("Tasks"),
        "sustained": _("Sustained work"),
        "quantization": _("Quantisation"),
        "quality": _("Quality"),
        "fronts": _("Quality against cost"),
        "platforms": _("Platforms"),
        "features": _("Features"),
        "documents": _("The documents' figures"),
        "pictures": _("Pictures"),
        "history": _("History"),
        "roofline": _("Roofline"),
        "tokens": _("Token by token"),
        "memory": _("Memory over time"),
        "same": _("Same model?"),
        "failures": _("Failures"),
        "sweeps": _("Sweeps"),
        "options": _("Options in effect"),
        "machine": _("Machine"),
        "method": _("Method"),
        "figures": _("Every figure"),
        "again": _("Files, and how to run it again"),
    }


def _context(data: ReportData, found: Mapping[str, tuple[Detail, ...]]) -> dict[str, object]:
    return {
        **_head(data),
        **_decide(data),
        **_compare(data),
        **_look(data),
        **_check(data),
        "details": found if _few(found) else {},
        "too_many": 0 if _few(found) else sum(map(len, found.values())),
    }


def _head(data: ReportData) -> dict[str, object]:
    return {
        "banners": (*part_banners(data), *facts.banners(data)),
        "description": facts.scenario_text(data, "description"),
        "model_name": facts.scenario_text(data, "model", "name"),
        "model_source": facts.scenario_text(data, "model", "source"),
        "model_license": facts.scenario_text(data, "model", "license"),
        "machines": tuple(dict.fromkeys(each.record.machine.cpu_model for each in data.parts)),
        # A text that is rated is no repetition of anything.
        "measured": sum(
            cell.n for (name, _v), cell in data.cells.items() if name not in data.quality_names
        ),
        "colours": framework_colours(data.record.variants),
        "framework_name": framework_name,
    }


def _decide(data: ReportData) -> dict[str, object]:
    colours = framework_colours(data.record.variants)
    rated = ((each, quality_answer(data, each)) for each in data.quality_names)
    return {
        "opening": opening(data),
        "answers": answers(data),
        "quality_answers": [(each, sentence) for each, sentence in rated if sentence],
        "notes": (*facts.source_notes(data), *part_notes(data)),
        "selection": selection_of(data),
        "limited": bool(limit_texts(requirements_of(data))),
        "folders": "RUN_DIR",
        "runner_colours": {
            name: colours[each.id]
            for each in data.record.variants
            for name in (each.runner, framework_key(each))
        },
    }


def _compare(data: ReportData) -> dict[str, object]:
    found = fronts(data)
    drawn = enumerate(found.fronts) if found else ()
    return {
        "frameworks": frameworks_table(data),
        "tables": [with_verdicts(each, data.sameness) for each in comparison_rows(data)],
        "tasks": task_tables(data),
        "tasks_intro": _(TASKS_INTRO),
        "sustained": [
            (view, plots.sustained_plots(data, view, name=f"sustained-{number}"))
            for number, view in enumerate(sustained_views(data))
        ],
        "sustained_intro": _(SUSTAINED_INTRO),
        "quality_intro": _(QUALITY_INTRO),
        "fronts_intro": _(FRONTS_INTRO),
        "quality": [
            (view, difference_table(view, number))
            for number, view in enumerate(quality_views(data))
        ],
        "formats": quantization_table(data),
        "fronts": found,
        "front_plots": [
            plots.front_plot(found, front, name=f"front-{number}") for number, front in drawn
        ]
        if found
        else [],
        "platforms": platforms_table(data),
        "features": features_tables(data),
        "documents": document_notes(data),
    }


def _look(data: ReportData) -> dict[str, object]:
    workload = _largest_workload(data)
    return {
        "pictures": {
            table.workload: drawn
            for number, table in enumerate(comparison_rows(data))
            if (drawn := plots.bar_plots(data, table, name=f"bars-{number}"))
        },
        "history": history_view(data),
        "roofline": plots.roofline_plots(data, name="roofline"),
        "roofline_intro": plots.how_to_read(data),
        "gap_plots": plots.token_plots(data),
        "memory_workload": workload,
        "memory_plots": plots.memory_plots(data, workload, name="memory") if workload else (),
    }


def _check(data: ReportData) -> dict[str, object]:
    found = options(data)
    record = data.record
    return {
        "same": data.sameness,
        "same_tables": sameness_tables(data),
        "failures": data.failures,
        "sweeps": [(each, sweep_table(each, at)) for at, each in enumerate(sweeps(data))],
        "options": found,
        "options_table": options_table(data, found),
        "runs": runs_table(data),
        "method": (*method(record, [each.record for each in data.parts]), *meter_method(data)),
        "definitions": definitions(data),
        "source_meanings": source_meanings(),
        "time": where_the_time_went(record),
        "files": facts.files(data),
        "commands": [facts.command(data)],
        "scenario": json.dumps(record.scenario, indent=2, ensure_ascii=False),
        "runners": {
            name: json.dumps(description, indent=2, ensure_ascii=False)
            for name, description in record.runners.items()
        },
    }


def _details(data: ReportData) -> dict[str, tuple[Detail, ...]]:
    names = (each.name for each in data.record.workloads)
    return {name: details(data, name) for name in names}


def _few(found: Mapping[str, tuple[Detail, ...]]) -> bool:
    return sum(map(len, found.values())) <= MOST_FIGURES


def _largest_workload(data: ReportData) -> str:
    """The workload with the most tokens in its cache among those with a memory timeline."""
    with_timeline = {workload for workload, _variant in data.series.generation_memory}
    sizes = {
        each.name: each.depth + (each.prompt_tokens or 0) + each.generate_tokens
        for each in data.record.workloads
        if each.name in with_timeline and each.generate_tokens is not None
    }
    return max(sizes, key=lambda name: sizes[name], default="")
