"""A gate for GitLab's metrics report, which a merge request shows. English only."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from edgebench.reports.comparing.words import RESULTS, STATUSES, made_up, metric_label
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Compared
    from edgebench.harness.gate.model import Gate

_DIGITS = 4
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "#": "\N{FULLWIDTH NUMBER SIGN}"})
"""As OpenMetrics has them; and ``#``, at which GitLab ends a line even between quotes, after which
it could not read the whole file."""


def gate_metrics(gate: Gate) -> str:
    """The candidate's figures as OpenMetrics text, and how many limits came out how.

    A family for each metric, ``edgebench_KEY``, in the unit in which results are stored, with the
    labels `variant` and `workload`, and of an estimate `source`. Four digits, for GitLab compares
    values as text and lists each that changed. What was not measured is left out.
    """
    by_metric: dict[str, list[Compared]] = defaultdict(list)
    for row in gate.comparison.rows:
        if row.candidate is not None and math.isfinite(row.candidate):
            by_metric[row.metric].append(row)
    weights = made_up(gate.comparison.matched)
    lines = []
    for key, rows in by_metric.items():
        family = _name(key)
        estimated = ", estimated" if any(row.estimated for row in rows) else ""
        said = f"{metric_label(key)}{_unit(rows[0].unit)}{estimated}"
        lines += _head(family, f"{said}, {weights}" if weights else said)
        # Once each: two rows of equal names would be no OpenMetrics.
        values = {f"{family}{_labels(row)}": row.candidate for row in rows}
        lines += [f"{labelled} {value:.{_DIGITS}g}" for labelled, value in values.items()]
    counts = Counter(each.status for each in gate.checks)
    lines += _head("edgebench_gate_limits", "Limits of the gate, by what became of them")
    lines += [
        f'edgebench_gate_limits{{status="{said}"}} {counts[status]}'
        for status, said in STATUSES.items()
    ]
    lines += _head("edgebench_gate_result", "What came of the gate")
    lines += [
        f'edgebench_gate_result{{result="{each}"}} {int(each == gate.outcome)}' for each in RESULTS
    ]
    return "\n".join([*lines, "# EOF", ""])


def _head(family: str, told: str) -> list[str]:
    escaped = told.replace("\\", "\\\\").replace("\n", "\\n")
    return [f"# TYPE {family} gauge", f"# HELP {family} {escaped}"]


def _unit(unit: str) -> str:
    return f", in {unit}" if unit not in {"", "1"} else ""


def _name(key: str) -> str:
    letters = (each if each.isascii() and each.isalnum() else "_" for each in key)
    return f"edgebench_{''.join(letters)}"


def _labels(row: Compared) -> str:
    variant, workload = row.pair.candidate.variant.id, row.pair.candidate.workload.name
    source = ',source="estimated"' if row.estimated else ""
    return f'{{variant="{_label(variant)}",workload="{_label(workload)}"{source}}}'


def _label(text: str) -> str:
    return one_line(text).translate(_ESCAPES)
