"""Sides of handmade runs, for tests of what compares them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from sample_run import handmade

from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.results.model import VariantRecord
from edgebench.harness.results.run import Run

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Side


def run(name: str, values: dict[str, dict[str, list[float | None]]], **changes: object) -> Run:
    """A run of one workload, ``w``, with these values by variant and metric, one a block.

    Args:
        name: the run's id and its folder's name; later names are later runs.
        values: see `sample_run.handmade`.
        changes: see there.
    """
    # Later names, later dates.
    minute = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 60 if len(name) > 1 else 0
    day = 1 + (ord(name[0]) - ord("a")) % 28
    given = {"id": name, "created_at": f"2025-01-{day:02}T10:{minute:02}:00Z"} | changes
    record, trials = handmade(values, **given)
    return Run(Path(name), record, tuple(trials))


def side(name: str, values: dict[str, dict[str, list[float | None]]], **changes: object) -> Side:
    """A side of such a run."""
    return side_of_run(run(name, values, **changes))


def variants_side(
    name: str, *variants: VariantRecord, workload: str = "w", **changes: object
) -> Side:
    """A side of variants that each have three decode rates, 10, 11 and 12 tokens/s."""
    made = run(name, {each.id: {"decode_rate": [10.0, 11.0, 12.0]} for each in variants}, **changes)
    workloads = [made.record.workloads[0].model_copy(update={"name": workload})]
    record = made.record.model_copy(update={"variants": list(variants), "workloads": workloads})
    trials = tuple(each.model_copy(update={"workload": workload}) for each in made.trials)
    return side_of_run(Run(made.path, record, trials))


def variant(name: str, runner: str = "made-up", **changes: object) -> VariantRecord:
    """A variant by its name."""
    given = {"id": name, "runner": runner, "quantization": "source"}
    return VariantRecord.model_validate(given | changes)


def interleaved(session: str, which: str, partner: str, difference: str = "") -> dict[str, object]:
    """The record of a run that was interleaved with another."""
    return {"session": session, "side": which, "partner": partner, "difference": difference}
