"""Times as pytest-benchmark's JSON, which `pytest-benchmark compare` reads."""

from __future__ import annotations

import statistics
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from edgebench.harness.compare.baseline_cells import run_record, slim_variant, slim_workload
from edgebench.harness.compare.baseline_format import BaselineModel
from edgebench.harness.compare.pytest_benchmark_format import (
    HEAD_VERSION,
    WRITTEN_AS,
    CellHead,
    ExportedCell,
    ExportedHead,
)
from edgebench.harness.errors import UsageError
from edgebench.harness.metrics.definitions import METRICS, metric
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.compare.model import Samples, Side, SideCell
    from edgebench.harness.results.model import MachineRecord

SECONDS = "s"


def export_pytest_benchmark(side: Side, patterns: Sequence[str] = ()) -> dict[str, object]:
    """A side as pytest-benchmark's JSON: one benchmark for each cell and time.

    Only times are exported, since pytest-benchmark's numbers are seconds, of which fewer are
    better.

    Args:
        side: what was measured.
        patterns: fnmatch patterns of metrics' keys; of none, all times.

    Returns:
        A document for `json.dump`, without NaN or infinities. What edgebench needs to read the
        cells back stands under ``edgebench`` and in each ``extra_info``.

    Raises:
        UsageError: there are no such times.
    """
    benchmarks = [
        _benchmark(side, cell, key)
        for key in _times(side, patterns)
        for cell in side.cells.values()
        if key in cell.metrics and cell.metrics[key].values
    ]
    return {
        "machine_info": _machine_info(side.machine),
        "commit_info": _commit_info(side),
        "benchmarks": benchmarks,
        "datetime": _with_offset(side.runs[-1].created_at),
        "version": WRITTEN_AS,
        "edgebench": _head(side).model_dump(mode="json", exclude_defaults=True),
    }


def _times(side: Side, patterns: Sequence[str]) -> list[str]:
    """The keys of all times that are asked for, in the order of the metrics."""
    measured = {
        key: samples.unit
        for cell in side.cells.values()
        for key, samples in cell.metrics.items()
        if samples.values
    }
    order = {key: place for place, key in enumerate(METRICS)}
    keys = sorted(measured, key=lambda key: (order.get(key, len(order)), key))
    times = [key for key in keys if measured[key] == SECONDS]
    if not times:
        msg = f"{side.label} holds no times, and pytest-benchmark's format holds nothing else."
        raise UsageError(msg)
    known = f"Its times: {', '.join(map(one_line, times))}."
    for pattern in patterns:
        if any(fnmatchcase(key, pattern) for key in times):
            continue
        others = [key for key in keys if fnmatchcase(key, pattern)]
        if others:
            msg = (
                f"{others[0]} is no time ({metric(others[0]).label.lower()}, in "
                f"{one_line(measured[others[0]])}), and pytest-benchmark's format holds nothing "
                "else."
            )
            inverse = " A rate's counterpart is tpot_s." if others[0] == "decode_rate" else ""
            raise UsageError(msg, remedy=known + inverse)
        msg = f"{side.label} holds no metric '{one_line(pattern)}'."
        raise UsageError(msg, remedy=known)
    if not patterns:
        return times
    return [key for key in times if any(fnmatchcase(key, each) for each in patterns)]


def _benchmark(side: Side, cell: SideCell, key: str) -> dict[str, object]:
    variant, workload = cell.key
    samples = cell.metrics[key]
    name = f"{variant}/{workload}[{key}]"
    own = ExportedCell(
        variant=variant,
        workload=workload,
        metric=key,
        unit=samples.unit,
        source=samples.source,
        machine=side.machine.fingerprint,
        blocks=list(samples.blocks),
    )
    return {
        "group": f"{workload}/{key}",
        "name": name,
        "fullname": f"{side.runs[-1].scenario_name}::{name}",
        "params": {"variant": variant, "workload": workload, "metric": key},
        "param": key,
        "extra_info": {"edgebench": own.model_dump(mode="json")},
        "options": {},
        "stats": {**_stats(samples), "data": list(samples.values), "iterations": 1},
    }


def _stats(samples: Samples) -> dict[str, float | int | str]:
    """The statistics of the format, by its own definitions: quartiles included in odd halves."""
    ordered = sorted(samples.values)
    mean, total = statistics.mean(ordered), sum(samples.values)
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0
    first, third = _quartiles(ordered)
    spread = third - first
    low, high = first - 1.5 * spread, third + 1.5 * spread
    far = sum(abs(value - mean) > deviation for value in ordered)
    outside = sum(not low <= value <= high for value in ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": len(ordered),
        "median": statistics.median(ordered),
        "iqr": spread,
        "q1": first,
        "q3": third,
        "iqr_outliers": outside,
        "stddev_outliers": far,
        "outliers": f"{far};{outside}",
        "ld15iqr": next(value for value in ordered if value >= low),
        "hd15iqr": next(value for value in reversed(ordered) if value <= high),
        "ops": len(ordered) / total if total else 0,
        "total": total,
    }


def _quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    """Of an even number the medians of its halves; else between the two nearest, 3 to 1."""
    size = len(ordered)
    if size == 1:
        return ordered[0], ordered[0]
    if size % 2 == 0:
        half = size // 2
        return statistics.median(ordered[:half]), statistics.median(ordered[half:])
    fourth, rest = divmod(size, 4)
    if rest == 1:
        first = (ordered[fourth - 1], ordered[fourth], 0.25)
        third = (ordered[3 * fourth], ordered[3 * fourth + 1], 0.75)
    else:
        first = (ordered[fourth], ordered[fourth + 1], 0.75)
        third = (ordered[3 * fourth + 1], ordered[3 * fourth + 2], 0.25)
    low, high = (share * one + (1 - share) * other for one, other, share in (first, third))
    return low, high


def _machine_info(machine: MachineRecord) -> dict[str, object]:
    return {
        # What a machine is called is nobody's business; its fingerprint tells it from others.
        "node": machine.fingerprint,
        "processor": machine.cpu_model,
        "machine": machine.architecture,
        "python_compiler": "",
        "python_implementation": "CPython",
        "python_implementation_version": machine.python,
        "python_version": machine.python,
        "python_build": ["", ""],
        "release": machine.kernel,
        "system": machine.system,
        "cpu": {
            "brand_raw": machine.cpu_model,
            "count": machine.logical_cpus,
            "arch_string_raw": machine.architecture,
        },
    }


def _commit_info(side: Side) -> dict[str, object]:
    commit = side.runs[-1].commit
    return {
        "id": commit.sha if commit else "unversioned",
        "time": commit.committed_at if commit else None,
        "author_time": None,
        "dirty": bool(commit and commit.dirty),
        "project": side.runs[-1].scenario_name,
        "branch": (commit.branch if commit else None) or "(unknown)",
    }


def _head(side: Side) -> ExportedHead:
    variants = (slim_variant(cell.variant) for cell in side.cells.values())
    workloads = (slim_workload(cell.workload) for cell in side.cells.values())
    return ExportedHead(
        schema_version=HEAD_VERSION,
        name=side.runs[-1].scenario_name,
        model=BaselineModel(
            name=side.model_name, source=side.model_source, hashes=dict(side.hashes)
        ),
        runs=[run_record(each) for each in side.runs],
        notes=list(side.notes),
        variants=list({each.id: each for each in variants}.values()),
        workloads=list({each.name: each for each in workloads}.values()),
        cells=list(_cells(side)),
    )


def _cells(side: Side) -> Iterator[CellHead]:
    for (variant, workload), cell in side.cells.items():
        yield CellHead(
            variant=variant,
            workload=workload,
            status=cell.status,
            flags=list(cell.flags),
            failure=cell.failure,
        )


def _with_offset(text: str) -> str:
    """A time as pytest-benchmark writes it; any other text as it is."""
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        return text
