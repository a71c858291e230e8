"""A comparison and a gate as JSON, for programs. English only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from edgebench import __version__

if TYPE_CHECKING:
    from edgebench.harness.compare.model import (
        Answer,
        Compared,
        Comparison,
        Differing,
        Side,
        SideCell,
        SideRun,
    )
    from edgebench.harness.gate.model import Allowance, Check, Gate

SCHEMA_VERSION: Final = 1
"""Of both objects, which is independent of the results' and of the package's version.

1. the first.
"""


def comparison_json(comparison: Comparison) -> dict[str, object]:
    """A comparison as values that `json.dumps` takes; docs/ci.md lists its keys.

    Figures are as stored, in the unit beside them; finite or None. Shares are fractions: 0.05 is
    5 %. Texts hold what names hold: whoever prints them makes them safe.
    """
    return tagged({"kind": "comparison", **_compared(comparison)})


def gate_json(gate: Gate) -> dict[str, object]:
    """A gate's outcome as values that `json.dumps` takes; docs/ci.md lists its keys."""
    counts = {"fail": 0, "warn": 0, "allowed": 0, "undecided": 0, "pass": 0}
    for each in gate.checks:
        counts[each.status] += 1
    return tagged(
        {
            "kind": "gate",
            "outcome": gate.outcome,
            "passed": gate.passed,
            "headline": gate.headline,
            "remedy": gate.remedy,
            "policy": gate.policy,
            "counts": counts,
            "checks": [_check(each) for each in gate.checks],
            "unused": list(gate.unused),
            "comparison": _compared(gate.comparison),
        }
    )


def tagged(fields: dict[str, object]) -> dict[str, object]:
    """These fields behind the version of the format, each as JSON can hold it."""
    head = {"schema_version": SCHEMA_VERSION, "edgebench_version": __version__}
    return {key: finite(value) for key, value in (head | fields).items()}


def finite(value: object) -> object:
    """The same with None in place of what no JSON holds, however deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        # Half of a surrogate pair, which a framework's log may hold, is no UTF-8.
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


def _compared(comparison: Comparison) -> dict[str, object]:
    matched = comparison.matched
    return {
        "confidence": comparison.confidence,
        "margin": comparison.margin,
        "noise_floor": comparison.noise_floor,
        "interleaved": matched.interleaved,
        "across_machines": matched.across_machines,
        "baseline": _side(matched.baseline),
        "candidate": _side(matched.candidate),
        "differing": [_differing(each) for each in matched.differing],
        "cells": [
            {
                "cell": pair.name,
                "baseline": _cell(pair.baseline),
                "candidate": _cell(pair.candidate),
                "differing": [_differing(each) for each in pair.differing],
            }
            for pair in matched.pairs
        ],
        "vanished": [_cell(each) for each in matched.vanished],
        "added": [_cell(each) for each in matched.added],
        "rows": [_row(each) for each in comparison.rows],
        "notes": list(comparison.notes),
    }


def _side(side: Side) -> dict[str, object]:
    return {
        "label": side.label,
        "model": side.model_name,
        "model_source": side.model_source,
        "hashes": dict(side.hashes),
        "machine": side.machine.model_dump(mode="json"),
        "runs": [_run(each) for each in side.runs],
        "notes": list(side.notes),
    }


def _run(run: SideRun) -> dict[str, object]:
    return {
        "id": run.id,
        "created_at": run.created_at,
        "scenario_name": run.scenario_name,
        "edgebench_version": run.edgebench_version,
        "commit": None if run.commit is None else run.commit.model_dump(mode="json"),
        "quick": run.quick,
        "unfinished": run.unfinished,
    }


def _cell(cell: SideCell) -> dict[str, object]:
    return {
        "variant": cell.variant.id,
        "workload": cell.workload.name,
        "status": cell.status,
        "flags": list(cell.flags),
        "n": cell.n,
        "n_failed": cell.n_failed,
        "failure": None if cell.failure is None else cell.failure.model_dump(mode="json"),
    }


def _differing(each: Differing) -> dict[str, object]:
    return {
        "what": each.what,
        "kind": each.kind,
        "baseline": each.baseline,
        "candidate": each.candidate,
    }


def _row(row: Compared) -> dict[str, object]:
    return {
        "cell": row.pair.name,
        "variant": row.pair.candidate.variant.id,
        "workload": row.pair.candidate.workload.name,
        "metric": row.metric,
        "unit": row.unit,
        "estimated": row.estimated,
        "better": row.better,
        "baseline": row.baseline,
        "candidate": row.candidate,
        "worsening": row.worsening,
        "verdict": row.verdict,
        "why": row.why,
        "repetitions_to_settle": row.repetitions,
        **_answer(row.answer),
    }


def _answer(answer: Answer) -> dict[str, object]:
    return {
        "ratio": answer.ratio,
        "ratio_low": answer.low,
        "ratio_high": answer.high,
        "no_interval": answer.no_interval,
        "paired": answer.paired,
        "n": answer.n,
        "p_worse": answer.p_worse,
        "p_better": answer.p_better,
        "noticeable": answer.noticeable,
        "reason": answer.reason,
    }


def _check(check: Check) -> dict[str, object]:
    return {
        "cell": check.cell,
        "metric": check.metric,
        "kind": check.kind,
        "status": check.status,
        "undecided": check.undecided,
        "estimated": check.estimated,
        "severity": check.severity,
        "limit": check.limit,
        "value": check.value,
        "unit": check.unit,
        "confidence": check.confidence,
        "message": check.message,
        "detail": check.detail,
        "allowance": None if check.allowance is None else _allowance(check.allowance),
        "result": None if check.compared is None else _row(check.compared),
        "gone": None if check.gone is None else _cell(check.gone),
    }


def _allowance(allowance: Allowance) -> dict[str, object]:
    return {
        "cell": allowance.cell,
        "metric": allowance.metric,
        "worse_by": allowance.worse_by,
        "until": allowance.until.isoformat(),
        "reason": allowance.reason,
    }
