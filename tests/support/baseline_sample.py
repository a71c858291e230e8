"""Sides with made-up samples, as baselines hold them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sample_run import sample, sha256

from edgebench.harness.compare.model import Samples, Side, SideCell, SideRun
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.model import CommitRecord, MachineRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import CellKey
    from edgebench.harness.results.model import VariantRecord, WorkloadRecord

COMMIT = CommitRecord(
    sha="5d41402abc4b2a76b9719d911017c592aabbccdd",
    branch="main",
    committed_at="2025-01-13T20:00:00Z",
    dirty=False,
)
CRASH = Failure(kind="crash", message="The runner's process ended.", signal="SIGSEGV")


def samples(
    values: Sequence[float],
    unit: str = "s",
    *,
    session: str = "session-1",
    per_block: int = 2,
) -> Samples:
    """These values, so many of them in each block."""
    blocks = tuple((session, place // per_block) for place in range(len(values)))
    return Samples(tuple(values), blocks, unit, "observed")


def machine(**changes: object) -> MachineRecord:
    return sample().record().machine.model_copy(update=changes)


def side_run(**changes: object) -> SideRun:
    values: dict[str, object] = {
        "id": "20250114T101500Z-3f9c2a",
        "session": "session-1",
        "created_at": "2025-01-14T10:15:00Z",
        "scenario_name": "smollm2-135m",
        "edgebench_version": "0.1.0",
        "commit": COMMIT,
        "machine": machine(),
    }
    return SideRun(**{**values, **changes})  # type: ignore[arg-type]


def side(cells: Sequence[SideCell], **changes: object) -> Side:
    values: dict[str, object] = {
        "label": "smollm2-135m",
        "runs": (side_run(),),
        "model_name": "SmolLM2-135M-Instruct",
        "model_source": "path:model.gguf",
        "hashes": {"the source": sha256("model")},
        "cells": {each.key: each for each in cells},
    }
    return Side(**{**values, **changes})  # type: ignore[arg-type]


def variants() -> list[VariantRecord]:
    return sample().record().variants


def workloads() -> list[WorkloadRecord]:
    return sample().record().workloads


def small_side(**changes: object) -> Side:
    """Two cells: one that has a time, a rate, memory and a null; one that failed."""
    variant, other = variants()[:2]
    workload = workloads()[0]
    measured = SideCell(
        variant=variant,
        workload=workload,
        status="ok",
        metrics={
            "ttft_s": samples([0.1, 0.3, 0.2, 0.25, 0.15, 0.22, 0.21, 0.19, 0.18, 0.24]),
            "decode_rate": samples([1 / 3, 90.5, 91.0], "token/s", per_block=1),
            "load_s": samples([0.5, 0.25], per_block=1),
            "peak_rss_bytes": samples([104857600.0] * 10, "byte"),
            "energy_per_token_j": Samples((), (), "J/token", "observed", "no sensor is readable"),
        },
        flags=("noisy",),
    )
    failed = SideCell(variant=other, workload=workload, status="failed", metrics={}, failure=CRASH)
    return side([measured, failed], **changes)


def large_side(*, cells: int = 24, seed: int = 1) -> Side:
    """Of a run's usual size: so many cells of 20 repetitions, with all that a run measures."""
    chance = random.Random(seed)
    template = sample(blocks=10)
    trials = [each for each in template.trials() if each.phase == "measured"]
    found: dict[CellKey, SideCell] = {}
    kinds = [(each, workload) for each in template.record().variants for workload in workloads()]
    for number in range(cells):
        variant, workload = kinds[number % 8]
        own = [
            each for each in trials if (each.variant, each.workload) == (variant.id, workload.name)
        ]
        again = variant.model_copy(update={"id": f"{variant.id} {number}"})
        metrics = {}
        for key, first in own[0].metrics.items() if own else ():
            values = [each.metrics[key].value for each in own]
            if first.value is None:
                metrics[key] = Samples((), (), first.unit, first.source, first.reason)
                continue
            # Times are whole nanoseconds, bytes and counts are whole, rates have all digits.
            spread = 0.0 if first.unit in {"byte", "1"} else 0.01
            digits = 9 if first.unit == "s" else 99
            metrics[key] = Samples(
                tuple(
                    round(value * chance.uniform(1 - spread, 1 + spread), digits)
                    for value in values
                    if value is not None
                ),
                tuple(("20250114T101500Z-3f9c2a", each.block) for each in own),
                first.unit,
                first.source,
            )
        cell = SideCell(again, workload, "ok" if own else "failed", metrics)
        found[cell.key] = cell
    return side(list(found.values()))
