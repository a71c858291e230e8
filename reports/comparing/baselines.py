"""Saved baselines on the terminal and as JSON. English only."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from edgebench.harness.compare.baseline_cells import summary_of
from edgebench.harness.metrics.definitions import METRICS
from edgebench.harness.results.cell import Summary
from edgebench.reports.comparing.words import commit, machine, metric_name
from edgebench.reports.format import NOT_MEASURED, Shown, scale_of, shown
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from edgebench.harness.compare.model import Samples, Side, SideCell
    from edgebench.harness.compare.wanted import Wanted
    from edgebench.reports.format import Scale

HERE = "*"
"""Marks the baseline of the machine that one is on."""

_SHORT_SHA = 10


def baselines_table(found: Sequence[tuple[str, Side]], fingerprint: str) -> RenderableType:
    """One row a baseline, readable at 80 columns.

    Args:
        found: the path and what it holds.
        fingerprint: of this machine, whose baselines are marked.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("baseline", overflow="fold")
    table.add_column("machine", overflow="fold")
    table.add_column("date", no_wrap=True)
    table.add_column("commit", no_wrap=True)
    table.add_column("cells", justify="right")
    table.add_column("reps", justify="right", no_wrap=True)
    for _, side in found:
        newest = side.runs[-1]
        sha = one_line(newest.commit.sha[:_SHORT_SHA]) if newest.commit else NOT_MEASURED
        table.add_row(
            HERE if side.machine.fingerprint == fingerprint else "",
            Text(one_line(side.label)),
            Text(machine(side.machine)),
            newest.created_at[:10],
            Text(sha),
            str(len(side.cells)),
            repetitions(side),
        )
    if any(side.machine.fingerprint == fingerprint for _, side in found):
        return Group(table, Text(f"{HERE} of this machine"))
    return Group(table, Text(f"None is of this machine ({fingerprint[:8]})."))


def repetitions(side: Side) -> str:
    """How many samples its cells have: ``20``, or ``6–20`` where they differ; a dash of none."""
    counts = fewest_and_most(side)
    if counts is None:
        return NOT_MEASURED
    least, most = counts
    return str(least) if least == most else f"{least}–{most}"


def fewest_and_most(side: Side) -> tuple[int, int] | None:
    """Of its cells that have samples the fewest and the most; None where none has."""
    counts = [most for cell in side.cells.values() if (most := _most(cell))]
    return (min(counts), max(counts)) if counts else None


def moment(text: str) -> str:
    """A recorded time for people: ``2025-01-14 10:15 UTC``; a text that is none as it is."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError):
        return one_line(text)


def baseline_view(side: Side, path: str, wanted: Wanted) -> RenderableType:
    """All cells with medians and 95 % intervals, readable at 80 columns."""
    return Group(*_facts(side, path), *_cells(side, wanted))


def baseline_json(side: Side, path: str) -> dict[str, object]:
    """A baseline for programs: without its samples, with every metric."""
    return {
        "name": side.label,
        "path": path,
        "machine": side.machine.model_dump(mode="json"),
        "model": {"name": side.model_name, "source": side.model_source, "hashes": {**side.hashes}},
        "runs": [
            {
                "id": run.id,
                "created_at": run.created_at,
                "scenario_name": run.scenario_name,
                "edgebench_version": run.edgebench_version,
                "commit": run.commit.model_dump(mode="json") if run.commit else None,
                "interleaved": run.interleaved,
            }
            for run in side.runs
        ],
        "notes": list(side.notes),
        "cells": [_cell_json(cell) for cell in side.cells.values()],
    }


def _facts(side: Side, path: str) -> Iterator[Text]:
    newest = side.runs[-1]
    facts = {
        "baseline": side.label,
        "file": path,
        "machine": machine(side.machine),
        "model": side.model_name,
        "measured": ", ".join(moment(each.created_at) for each in side.runs),
        "commit": commit(newest.commit) or "not known",
        "meter": ", ".join(_meters(side)),
    }
    for name, value in facts.items():
        if name in {"model", "meter"} and not value:
            continue  # What another tool measured is of none.
        yield Text(f"{name:<10}{one_line(value)}")
    for note in side.notes:
        yield Text(f"{'note':<10}{one_line(note)}")


def _meters(side: Side) -> list[str]:
    """What its energies are of, each once."""
    found = (each.meter for cell in side.cells.values() for each in cell.metrics.values())
    return list(dict.fromkeys(each for each in found if each is not None))


def _cells(side: Side, wanted: Wanted) -> Iterator[RenderableType]:
    order = {key: place for place, key in enumerate(METRICS)}
    for cell in side.cells.values():
        name = " / ".join(cell.key)
        flags = ", ".join(flag.replace("_", " ") for flag in cell.flags)
        yield Text(f"\n{one_line(name)}{f'  ({one_line(flags)})' if flags else ''}", "bold")
        keys = sorted(
            (key for key, each in cell.metrics.items() if each.values and wanted(name, key)),
            key=lambda key: (order.get(key, len(order)), key),
        )
        if keys:
            yield _metrics(cell, keys)
        elif cell.failure is not None:
            yield Text(f"  {cell.status}: {one_line(cell.failure.message)}")
        else:
            yield Text(f"  {_nothing(cell)}")


def _nothing(cell: SideCell) -> str:
    """Why a cell has no row."""
    if any(each.values for each in cell.metrics.values()):
        return "none of the metrics that are shown; --metric '*' shows all"
    reasons = dict.fromkeys(each.reason for each in cell.metrics.values() if each.reason)
    return one_line(next(iter(reasons), "it was not run"))


def _metrics(cell: SideCell, keys: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=16)
    table.add_column(justify="right", min_width=14)
    table.add_column(min_width=20)
    table.add_column(justify="right")
    for key in keys:
        samples = cell.metrics[key]
        value = _summary(samples)
        scale = scale_of(key, samples.unit, [value.median])
        written = _written(value, scale)
        table.add_row(
            Text(f"  {metric_name(key)}{' (estimated)' if value.source == 'estimated' else ''}"),
            Text(f"{written.value}{scale.suffix}"),
            Text(written.interval),
            f"n={value.n}",
        )
    return table


def _written(value: Summary, scale: Scale) -> Shown:
    """As everywhere, but with a digit of a lower end that is not 0."""
    low, high = value.ci_low, value.ci_high
    if value.median is None or low is None or high is None or low <= 0 or low == high:
        return shown(value, scale)
    least = scale.of(low)
    decimals = scale.decimals(scale.of(value.median), least, scale.of(high))
    if float(f"{least:.{decimals}f}"):
        return shown(value, scale)
    decimals = -math.floor(math.log10(least))
    middle, first, last = (
        scale.write(scale.of(each), decimals) for each in (value.median, low, high)
    )
    return Shown(middle, f"[{first}, {last}]")


def _summary(samples: Samples) -> Summary:
    found = summary_of(samples)
    return Summary(
        median=found.median,
        ci_low=found.low,
        ci_high=found.high,
        n=found.n,
        unit=samples.unit,
        source=samples.source,
    )


def _cell_json(cell: SideCell) -> dict[str, object]:
    metrics: dict[str, object] = {}
    for key, samples in cell.metrics.items():
        found = summary_of(samples)
        metrics[key] = {
            "median": found.median,
            "ci_low": found.low,
            "ci_high": found.high,
            "n": found.n,
            "unit": samples.unit,
            "source": samples.source,
            "reason": samples.reason,
        }
    return {
        "variant": cell.variant.id,
        "workload": cell.workload.name,
        "status": cell.status,
        "flags": list(cell.flags),
        "failure": cell.failure.model_dump(mode="json") if cell.failure else None,
        "metrics": metrics,
    }


def _most(cell: SideCell) -> int:
    return max((len(each.values) for each in cell.metrics.values()), default=0)
