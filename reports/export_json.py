"""A report as JSON, for programs: every table and every cell, the runs, and what to choose."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from edgebench import __version__
from edgebench.reports import facts
from edgebench.reports.languages import current
from edgebench.reports.opening import opening
from edgebench.reports.parts import part_banners, part_notes
from edgebench.reports.sections import table_sections
from edgebench.reports.selection.as_json import selection_as_json
from edgebench.reports.selection.select import requirements_of, selection_of
from edgebench.reports.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.cell import Cell
    from edgebench.reports.data import Part, ReportData
    from edgebench.reports.sections import Section
    from edgebench.reports.table_model import Column, Table, Value

SCHEMA_VERSION: Final = 1
"""Of ``report.json``, which is independent of the results' and of the package's version.

1. the first.
"""


def render_json(data: ReportData) -> str:
    """A report as one JSON object.

    Texts are in the report's language, keys and figures as in the result files: in the unit that
    stands beside them, null where not measured, never NaN. docs/combining-runs.md says what is
    in it.
    """
    selection = selection_of(data)
    document = {
        "schema_version": SCHEMA_VERSION,
        "language": current(),
        "edgebench_version": __version__,
        "title": data.record.scenario_name,
        "opening": [plain(each) for each in opening(data)],
        "banners": [
            {"title": each.title, "text": each.text}
            for each in (*part_banners(data), *facts.banners(data))
        ],
        "notes": [*part_notes(data), *facts.source_notes(data)],
        "runs": [_run(each) for each in data.parts],
        "machines": list(_machines(data)),
        "tables": [
            _table(section, table)
            for section in table_sections(data, selection)
            for table in section.tables
        ],
        "cells": [_cell(data, each) for each in data.cells.values()],
        "selection": selection_as_json(selection, requirements_of(data), {}, data),
    }
    text = json.dumps(_finite(document), indent=1, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair, which a framework's log may hold, is no UTF-8.
    return text.encode("utf-8", "replace").decode() + "\n"


def _run(part: Part) -> dict[str, object]:
    record = part.record
    return {
        "id": record.id,
        "label": part.label,
        "folder": part.path.name,
        "machine": record.machine.fingerprint,
        "variants": list(part.variants),
        **record.model_dump(
            mode="json",
            include={
                "scenario_name",
                "scenario_sha256",
                "created_at",
                "finished_at",
                "status",
                "quick",
                "synthetic",
                "edgebench_version",
                "command",
                "seed",
                "stopped_by_budget",
                "protocol",
                "meters",
                "no_meter_reasons",
            },
        ),
        "damaged_lines": part.damaged_lines,
    }


def _machines(data: ReportData) -> Iterator[dict[str, object]]:
    seen: set[str] = set()
    for part in data.parts:
        machine = part.record.machine
        if machine.fingerprint not in seen:
            seen.add(machine.fingerprint)
            yield machine.model_dump(mode="json")


def _table(section: Section, table: Table) -> dict[str, object]:
    return {
        "key": table.key,
        "section": section.key,
        "title": table.workload,
        "rows_are": table.texts.rows,
        "columns": [_column(each) for each in table.columns],
        "rows": [
            {
                "name": row.variant,
                "below": row.engine,
                "repetitions": row.repetitions,
                "remarks": list(row.remarks),
                "failed": row.failed,
                "published": row.published,
                "predicted": row.predicted,
                "values": [_value(each) for each in row.values],
            }
            for row in table.rows
        ],
        "notes": [*table.everywhere, *table.no_intervals, *table.notes],
        "remarks": dict(table.remarks),
    }


def _column(column: Column) -> dict[str, object]:
    return {
        "key": column.key,
        "label": column.label,
        "shown_in": column.scale.unit,
        "better": column.better,
        "sources": list(column.sources),
    }


def _value(value: Value) -> dict[str, object]:
    where = value.where
    return {
        "text": value.text,
        # The middle of a predicted range is no figure of anything.
        "value": None if value.origin == "predicted" and value.low != value.high else value.sort,
        "low": value.low,
        "high": value.high,
        "unit": value.unit,
        "n": value.n,
        "source": value.source,
        "flags": list(value.flags),
        "best": value.best,
        "stars": value.stars,
        "reason": value.reason,
        "origin": value.origin,
        "document": value.document,
        "cell": None
        if where is None
        else {"workload": where.workload, "variant": where.variant, "metric": where.key},
    }


def _cell(data: ReportData, cell: Cell) -> dict[str, object]:
    found = cell.model_dump(mode="json")
    of_variant = {
        key: each.model_dump(mode="json") for key, each in data.by_variant[cell.variant].items()
    }
    found["metrics"] = {**of_variant, **found["metrics"]}
    return found


def _finite(value: object) -> object:
    """The same with null in place of what no JSON holds, however deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
