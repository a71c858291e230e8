"""Every figure of a report as CSV: one row for each cell and metric, for spreadsheets and scripts.

The heads of its columns and the names in it are the result files' own, whatever the language.
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from edgebench.harness.results.meters import meter_of
from edgebench.harness.results.record import SYNTHETIC_WEIGHTS
from edgebench.reports.colours import framework_key
from edgebench.reports.platforms_table import predictions
from edgebench.reports.predicted import POWER, csv_figures, efficiency_text
from edgebench.reports.run_labels import machine_name
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.cell import Cell, Summary
    from edgebench.reports.data import ReportData

COLUMNS = (
    "run",
    "machine",
    "runner",
    "framework",
    "engine",
    "version",
    "variant",
    "quantization",
    "workload",
    "metric",
    "unit",
    "median",
    "ci_low",
    "ci_high",
    "min",
    "max",
    "cv",
    "n",
    "source",
    "flags",
    "status",
    "reason",
    "weights",
    "meter",
)
"""What a row holds. Figures are as stored, in `unit`; `flags` are separated by semicolons;
`weights` says where they are made up, and is empty where they are a model's own; `meter` is what an
energy or a power is of."""

_NO_FIGURES = ("",) * (COLUMNS.index("flags") - COLUMNS.index("metric"))

_FORMULA = ("=", "+", "-", "@")
"""What spreadsheets take for the beginning of a formula."""


def render_csv(data: ReportData) -> str:
    """All cells of a report as CSV by RFC 4180, in UTF-8.

    A text that a spreadsheet would run as a formula begins with an apostrophe. A cell without any
    figure is one row without metric, whose reason is why.
    """
    written = io.StringIO(newline="")
    lines = csv.writer(written)
    lines.writerow(COLUMNS)
    lines.writerows(_rows(data))
    return written.getvalue()


def safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula, on one line."""
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def _rows(data: ReportData) -> Iterator[tuple[str, ...]]:
    variants = {each.id: each for each in data.record.variants}
    runs = {each: part for part in data.parts for each in part.variants}
    for cell in data.cells.values():
        variant, part = variants[cell.variant], runs[cell.variant]
        about = tuple(
            map(
                safe,
                (
                    part.record.id,
                    machine_name(part.record.machine),
                    variant.runner,
                    framework_key(variant),
                    variant.engine or "",
                    variant.engine_version or "",
                    variant.id,
                    variant.quantization,
                    cell.workload,
                ),
            )
        )
        made_up = SYNTHETIC_WEIGHTS if part.record.synthetic is not None else ""
        metrics = {**data.by_variant[cell.variant], **cell.metrics}
        # What is known of the file alone is no result of a cell that has none.
        if not cell.metrics:
            yield (*about, *_NO_FIGURES, *_state(cell), safe(_reason(cell)), made_up, "")
        for key, summary in metrics.items():
            why = safe(summary.reason or "")
            meter = "" if summary.median is None else safe(meter_of(part.record, key) or "")
            yield (*about, safe(key), *_figures(summary), *_state(cell), why, made_up, meter)
    yield from _predicted(data)


def _predicted(data: ReportData) -> Iterator[tuple[str, ...]]:
    """Devices that are not at hand: a range in ``min`` and ``max``, and no median to mix in."""
    for found in predictions(data):
        variant = found.variant
        about = (
            "",
            found.name,
            variant.runner,
            framework_key(variant),
            variant.engine or "",
            variant.engine_version or "",
            variant.id,
            variant.quantization,
            found.workload,
        )
        for key, each in csv_figures(found):
            ends = (_number(each.low), _number(each.high))
            of_profile = found.facts.sustained_w.said if key == POWER else efficiency_text(found)
            why = each.reason or of_profile
            yield (
                *map(safe, (*about, key, each.unit)),
                *("", "", "", *ends, "", "0", "predicted" if each.low is not None else ""),
                *("", "predicted", safe(why), "", ""),
            )


def _figures(summary: Summary) -> tuple[str, ...]:
    return (
        safe(summary.unit),
        *(
            _number(each)
            for each in (
                summary.median,
                summary.ci_low,
                summary.ci_high,
                summary.min,
                summary.max,
                summary.cv,
            )
        ),
        str(summary.n),
        summary.source if summary.median is not None else "",
    )


def _state(cell: Cell) -> tuple[str, str]:
    return ";".join(cell.flags), cell.status


def _reason(cell: Cell) -> str:
    if cell.failure is not None:
        return cell.failure.message
    return "not run" if cell.status == "not_run" else "no metric was recorded"


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(value)
