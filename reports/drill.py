"""What stands behind each figure of a page: statistics, raw samples, options, the end of a log.

The page holds it once, as compact JSON, and its script shows it when a reader asks.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import METRICS
from edgebench.reports.colours import framework_colours
from edgebench.reports.details import details
from edgebench.reports.engines import engine_text
from edgebench.reports.failures import LOADING
from edgebench.reports.metric_names import metric_label
from edgebench.reports.options import options
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgebench.reports.data import ReportData
    from edgebench.reports.details import Detail
    from edgebench.reports.table_model import Row, Where

DIGITS = 6
"""Significant digits of a raw sample: more than any clock here resolves."""

Cells = dict[tuple[str, str], list[tuple[int, int, dict[str, float]]]]


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


def drill_json(data: ReportData, found: Mapping[str, tuple[Detail, ...]] | None = None) -> str:
    """The data behind the figures as JSON that can stand inside of a script element.

    Args:
        data: the report's data.
        found: by workload what `details` says, where it was asked already.

    Returns:
        An object with ``workloads`` (names), ``variants`` (objects), ``metrics`` (key, label),
        ``texts`` (sources, reasons, units, figures: everything that repeats, by number),
        ``flags`` (text, meaning), ``failures``, and ``cells``: by ``workload.variant`` an object
        with n, f (flags), x (failures), b (blocks), r (repetitions) and m: by metric
        ``[median, interval, min, max, sd/mean, n, source, reason, unit, samples]``, of which the
        samples are in that unit, one a repetition, or one number where all are equal.
    """
    texts, flags, failures = _Numbered(), _Numbered(), _failures(data)
    keys = [*(key for key in METRICS if key in data.metric_keys)]
    keys += sorted(data.metric_keys - set(keys))
    places = {key: at for at, key in enumerate(keys)}
    samples = _samples(data)
    cells: dict[str, object] = {}
    for w, workload in enumerate(data.record.workloads):
        rows = details(data, workload.name) if found is None else found[workload.name]
        by_variant: dict[str, list[Detail]] = defaultdict(list)
        for row in rows:
            by_variant[row.variant].append(row)
        for v, variant in enumerate(data.variant_ids):
            cell = data.cell(workload.name, variant)
            taken = samples.get((workload.name, variant), [])
            cells[f"{w}.{v}"] = {
                "n": cell.n,
                "s": cell.status,
                "f": [flags(flag) for flag in cell.flags],
                "x": [
                    at
                    for at, (whose, where, _view) in enumerate(failures)
                    if whose == variant and (workload.name in where or LOADING in where)
                ],
                "b": [block for block, _repetition, _values in taken],
                "r": [repetition for _block, repetition, _values in taken],
                "m": {places[row.key]: _figures(row, taken, texts) for row in by_variant[variant]},
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


def _figures(
    row: Detail, taken: Iterable[tuple[int, int, dict[str, float]]], texts: _Numbered
) -> list[object]:
    scaled = [
        None if (value := values.get(row.key)) is None else _short(row.scale.of(value))
        for _block, _repetition, values in taken
    ]
    known = [each for each in scaled if each is not None]
    samples: object = None
    if known:
        samples = known[0] if len(set(known)) == 1 and len(known) == len(scaled) else scaled
    return [
        *(row.median, row.interval, row.least, row.most, row.variation),
        row.repetitions,
        *(texts(each) for each in (row.source, row.reason, row.unit)),
        samples,
    ]


def _short(value: float) -> float | int:
    """A value with no more digits than are worth keeping."""
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def _samples(data: ReportData) -> Cells:
    """Block, repetition and values of each measured repetition that succeeded, by cell."""
    found: Cells = defaultdict(list)
    for trial in data.run.trials:
        if trial.phase != "measured" or trial.status != "ok" or trial.workload is None:
            continue
        values = {key: each.value for key, each in trial.metrics.items() if each.value is not None}
        found[trial.workload, trial.variant].append((trial.block, trial.repetition, values))
    return found


def _failures(data: ReportData) -> list[tuple[str, tuple[str, ...], dict[str, object]]]:
    return [
        (
            each.variant,
            each.where,
            {
                "what": clean(each.what),
                "message": clean(each.message),
                "count": each.count,
                "log": _link(each.log),
                "tail": each.log_tail,
            },
        )
        for each in data.failures
    ]


def _link(log: str | None) -> str:
    """The log's path where it is relative, so that a link can lead there; else empty."""
    if not log or log.startswith("/") or ":" in log or "\\" in log:
        return ""
    return clean(log)


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
