"""What stands behind each figure of a page: statistics, raw samples, options, the end of a log.

The page holds it once, as compact JSON, and its script shows it when a reader asks.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from edgebench.harness.metrics.definitions import METRICS
from edgebench.reports.colours import framework_colours
from edgebench.reports.details import details
from edgebench.reports.engines import engine_text
from edgebench.reports.failures import LOADING
from edgebench.reports.format import counted
from edgebench.reports.languages import plural
from edgebench.reports.metric_names import metric_label
from edgebench.reports.options import options
from edgebench.reports.samples import Behind, samples
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.reports.data import ReportData
    from edgebench.reports.details import Detail
    from edgebench.reports.failures import FailureView
    from edgebench.reports.table_model import Row, Where

DIGITS = 6
"""Significant digits of a raw sample: more than any clock here resolves."""


class _Numbered:
    """Texts, each once, by their number."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.texts.setdefault(clean(text), len(self.texts))


class Places:
    """Where the data behind a value is found: `at` is what a cell of a table carries."""

    def __init__(self, data: ReportData) -> None:
        self._workloads = {each.name: at for at, each in enumerate(data.record.workloads)}
        self._variants = {each: at for at, each in enumerate(data.variant_ids)}

    def at(self, where: Where | None) -> str:
        """A cell's address, such as ``0.3.decode_rate``; empty where there is nothing behind it."""
        if where is None or where.workload not in self._workloads:
            return ""
        if where.variant not in self._variants:
            return ""
        return f"{self._workloads[where.workload]}.{self._variants[where.variant]}.{where.key}"

    def of_row(self, row: Row, key: str = "") -> str:
        """The address of the first value of a row that has one; else empty.

        Args:
            row: the row.
            key: a metric to put in the place of that value's own.
        """
        found = next((at for value in row.values if (at := self.at(value.where))), "")
        return ".".join((*found.split(".", 2)[:2], key)) if found and key else found


def drill_json(
    data: ReportData,
    found: Mapping[str, tuple[Detail, ...]] | None = None,
    folder: Path | None = None,
) -> str:
    """The data behind the figures as JSON that can stand inside of a script element.

    Args:
        data: the report's data.
        found: by workload what `details` says, where it was asked already.
        folder: where the page will lie; None where it is beside its run.

    Returns:
        An object with ``workloads`` (names), ``variants`` (objects), ``metrics`` (key, label),
        ``texts`` (sources, reasons, units, figures: everything that repeats, by number),
        ``flags`` (text, meaning), ``failures``, and ``cells``: by ``workload.variant`` an object
        with n (how much it was measured, in words), f (flags), x (failures), b (by what samples
        are of, their blocks) and m: by metric ``[median, interval, min, max, sd/mean, n, source,
        reason, unit, samples, of]``. The samples are in that unit, one number where all are equal;
        `of` says what they are of: 0 repetitions, 1 loads of the model, 2 windows of a text.
    """
    texts, flags, failures = _Numbered(), _Numbered(), _failures(data, folder)
    keys = [*(key for key in METRICS if key in data.metric_keys)]
    keys += sorted(data.metric_keys - set(keys))
    places = {key: at for at, key in enumerate(keys)}
    cells: dict[str, object] = {}
    for w, workload in enumerate(data.record.workloads):
        rows = details(data, workload.name) if found is None else found[workload.name]
        by_variant: dict[str, list[Detail]] = {each: [] for each in data.variant_ids}
        for row in rows:
            by_variant[row.variant].append(row)
        behind = samples(data, workload)
        for v, variant in enumerate(data.variant_ids):
            cell = data.cell(workload.name, variant)
            own = behind.get(variant, Behind())
            cells[f"{w}.{v}"] = {
                "n": texts(_extent(cell.n, own)),
                "s": cell.status,
                "f": [flags(flag) for flag in cell.flags],
                "x": [
                    at
                    for at, (whose, where, _view) in enumerate(failures)
                    if whose == variant and (workload.name in where or LOADING in where)
                ],
                "b": own.blocks,
                "m": {places[row.key]: _figures(row, own, texts) for row in by_variant[variant]},
            }
    return _embedded(
        {
            "workloads": [clean(each.name) for each in data.record.workloads],
            "variants": _variants(data),
            "metrics": [[key, metric_label(key)] for key in keys],
            "flags": [
                [flag_text(flag), flag_meaning(flag, data.record.protocol)] for flag in flags.texts
            ],
            "failures": [view for _whose, _where, view in failures],
            "cells": cells,
            "texts": list(texts.texts),
        }
    )


def _extent(repetitions: int, behind: Behind) -> str:
    """How much stands behind a cell, in words."""
    if behind.windows:
        return counted("{count} window", "{count} windows", behind.windows)
    return plural("{count} measured repetition", "{count} measured repetitions", repetitions)


def _figures(row: Detail, behind: Behind, texts: _Numbered) -> list[object]:
    of, values = behind.of(row.key)
    scaled = [None if value is None else _short(row.scale.of(value)) for value in values]
    known = [each for each in scaled if each is not None]
    samples: object = None
    if known:
        samples = known[0] if len(set(known)) == 1 and len(known) == len(scaled) else scaled
    return [
        *(row.median, row.interval, row.least, row.most, row.variation),
        row.repetitions,
        *(texts(each) for each in (row.source, row.reason, row.unit)),
        samples,
        of,
    ]


def _short(value: float) -> float | int:
    """A value with no more digits than are worth keeping."""
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def _failures(
    data: ReportData, folder: Path | None
) -> list[tuple[str, tuple[str, ...], dict[str, object]]]:
    return [
        (
            each.variant,
            each.where,
            {
                "what": clean(each.what),
                "message": clean(each.message),
                "count": each.count,
                "log": clean(each.log or ""),
                "href": log_link(data, each, folder),
                "tail": each.log_tail,
            },
        )
        for each in data.failures
    ]


def log_link(data: ReportData, failure: FailureView, folder: Path | None = None) -> str:
    """Where a failure's log lies, as a link from the page; empty where none can lead there.

    Only a relative path below the run's folder becomes one.

    Args:
        data: the report's data.
        failure: one of its failures.
        folder: where the page will lie; None where it is beside its run.
    """
    log = failure.log or ""
    if not log or log.startswith("/") or ":" in log or "\\" in log or ".." in log.split("/"):
        return ""
    place = run_folder(Path(data.part_of(failure.variant).path), folder)
    return quote(clean(f"{place}/{log}" if place else log))


def run_folder(run: Path, folder: Path | None) -> str:
    """A run's folder as seen from the page, with ``/`` between names; empty where it is its own."""
    if folder is None or run.resolve() == folder.resolve():
        return ""
    try:
        return Path(os.path.relpath(run.resolve(), folder.resolve())).as_posix()
    except ValueError:
        # On another drive: no relative path leads there.
        return run.resolve().as_posix()


def _variants(data: ReportData) -> list[dict[str, object]]:
    found = options(data)
    colours = framework_colours(data.record.variants)
    differing = dict(found.rows)
    return [
        {
            "name": clean(each.id),
            "engine": clean(engine_text(each)),
            "colour": colours[each.id],
            "file": clean(each.artifact.name) if each.artifact else "",
            "options": [
                [clean(name), clean(value)]
                for name, value in zip(found.differing, differing[each.id], strict=True)
            ],
        }
        for each in data.record.variants
    ]


def _embedded(value: object) -> str:
    """JSON that no text in it can end early, whatever it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
