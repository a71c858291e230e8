"""The words and figures that every output of a comparison or a gate shares. English only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.harness.gate.wording import percent, repetitions
from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.record import SYNTHETIC_WEIGHTS
from edgebench.reports.format import CHANGE, NOT_MEASURED, scale_of
from edgebench.reports.run_labels import machine_name
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.harness.compare.model import Answer, Compared, Differing, Matched, Side, Verdict
    from edgebench.harness.gate.model import Check, Gate, Result, Status
    from edgebench.harness.results.model import CommitRecord, MachineRecord

VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "same": "same",
    "cant_tell": "can't tell",
    "not_compared": "not compared",
}

STATUSES: dict[Status, str] = {
    "fail": "broken",
    "warn": "warning",
    "allowed": "allowed",
    "undecided": "undecided",
    "pass": "kept",
}
"""What became of a limit."""

RESULTS: dict[Result, str] = {
    "passed": "passed",
    "failed": "failed",
    "undecided": "could not decide",
}
"""What became of a gate."""

ESTIMATED = " (estimated)"
"""Behind the name of what is computed from a model of power, not measured."""

_MOST_DIGITS = 6
_SHORT_SHA = 10


def figures(row: Compared) -> tuple[str, str]:
    """The baseline's value and the candidate's, in one unit, a dash for none.

    Two values that differ are written with as many digits as show it, six at most.
    """
    values = (row.baseline, row.candidate)
    scale = scale_of(row.metric, row.unit, values)
    scaled = [None if each is None else scale.of(each) for each in values]
    known = [each for each in scaled if each is not None]
    decimals = max(map(scale.decimals, known), default=0)
    apart = max(known, default=0.0) - min(known, default=0.0)
    if apart:
        before = len(str(int(max(map(abs, known)))))
        decimals = max(decimals, min(-math.floor(math.log10(apart)), _MOST_DIGITS - before))
    texts = [NOT_MEASURED if each is None else scale.write(each, decimals) for each in scaled]
    first, second = (text if text == NOT_MEASURED else text + scale.suffix for text in texts)
    return first, second


def change(answer: Answer) -> str:
    """How the candidate differs from the baseline, such as ``-5.0 %``; a dash where unknown."""
    return _change(answer)[0]


def interval(answer: Answer) -> str:
    """The 95 % interval of `change`, in percent, such as ``[-5.6, -4.4]``; empty without one."""
    return _change(answer)[1]


def change_and_interval(answer: Answer) -> str:
    """Both: ``-5.0 % [-5.6, -4.4]``."""
    return " ".join(part for part in _change(answer) if part)


def _change(answer: Answer) -> tuple[str, str]:
    if answer.ratio is None:
        return NOT_MEASURED, ""
    value = CHANGE.of(answer.ratio)
    if answer.low is None or answer.high is None:
        return f"{CHANGE.write(value, CHANGE.decimals(value))} %", ""
    low, high = CHANGE.of(answer.low), CHANGE.of(answer.high)
    decimals = CHANGE.decimals(value, low, high)
    middle, first, last = (CHANGE.write(each, decimals) for each in (value, low, high))
    return f"{middle} %", f"[{first}, {last}]"


def limit(check: Check) -> str:
    """What a check asks for: ``at most 5 % worse``, ``at most 2 s``, ``has a result``."""
    if check.kind == "worse_by":
        return f"at most {percent(check.limit or 0.0)} worse"
    if check.kind in {"at_most", "at_least"}:
        bound = NOT_MEASURED if check.limit is None else _bound(check)
        return f"{check.kind.replace('_', ' ')} {bound}"
    return "has a result" if check.kind == "failed" else "is there"


def _bound(check: Check) -> str:
    """A bound with the digits that its author wrote, in the unit that fits it."""
    assert check.limit is not None
    scale = scale_of(check.metric, check.unit, [check.limit])
    return f"{scale.of(check.limit):.10g}{scale.suffix}"


def metric_name(key: str) -> str:
    """A metric's name for a table's column: ``decode``, ``TTFT``, as ``edgebench`` shows it."""
    return one_line(metric(key).short)


def row_name(row: Compared) -> str:
    """The same of what was compared; an estimate says that it is one."""
    return metric_name(row.metric) + (ESTIMATED if row.estimated else "")


def check_metric(check: Check) -> str:
    """What a limit is on, as `row_name`; empty where it is on the cell itself."""
    if not check.metric:
        return ""
    return metric_name(check.metric) + (ESTIMATED if check.estimated else "")


def metric_label(key: str) -> str:
    """A metric's name in a sentence or a heading: ``Decode rate``."""
    return one_line(metric(key).label)


def differing(differences: Iterable[Differing]) -> list[str]:
    """What the sides did not run alike, each as ``threads: 2 → 1``; one line each, not escaped."""
    return [one_line(f"{each.what}: {each.baseline} → {each.candidate}") for each in differences]


def machine(record: MachineRecord) -> str:
    """A machine in a line: ``AMD EPYC 9B14, 2 CPUs, x86_64 (3f9c2a…)``."""
    cpus = f"{record.logical_cpus} CPU{'' if record.logical_cpus == 1 else 's'}"
    return one_line(
        f"{machine_name(record)}, {cpus}, {record.architecture} ({record.fingerprint[:8]})"
    )


def commit(record: CommitRecord | None) -> str:
    """A commit in a few words: ``3f9c2a1b22 on main, with uncommitted changes``; empty if none."""
    if record is None:
        return ""
    branch = f" on {record.branch}" if record.branch else ""
    dirty = ", with uncommitted changes" if record.dirty else ""
    return one_line(f"{record.sha[:_SHORT_SHA]}{branch}{dirty}")


def side(one: Side) -> str:
    """What a side is, in a line: its label, its date, its commit; made-up weights are named."""
    newest = one.runs[-1]
    made = f"{newest.created_at[:10]}"
    several = f"{len(one.runs)} runs, the newest of " if len(one.runs) > 1 else ""
    of = commit(newest.commit)
    made_up = f", {SYNTHETIC_WEIGHTS}" if one.synthetic else ""
    return one_line(f"{one.label} ({several}{made}{', commit ' + of if of else ''}{made_up})")


def made_up(matched: Matched) -> str:
    """That the compared figures are of made-up weights; empty where they are a model's own."""
    synthetic = matched.baseline.synthetic or matched.candidate.synthetic
    return SYNTHETIC_WEIGHTS if synthetic else ""


def unfinished(matched: Matched) -> list[str]:
    """A sentence for each run that broke off, whose missing repetitions nobody can see."""
    return [
        one_line(f"The {who}'s run {run.id} is not finished: it counts as far as it went")
        for who, side_ in (("baseline", matched.baseline), ("candidate", matched.candidate))
        for run in side_.runs
        if run.unfinished
    ]


def settled_by(row: Compared | None) -> str:
    """What would settle a limit, such as ``34 repetitions on each side``; empty if unknown."""
    if row is None or row.repetitions is None:
        return ""
    return f"{repetitions(row.repetitions)} repetitions on each side"


def decided(gate: Gate) -> str:
    """How a gate decided, in one sentence."""
    comparison = gate.comparison
    # Of runs made at different times a note says what that means.
    how = (
        "; repetitions of the same block were compared with each other"
        if comparison.matched.interleaved
        else ""
    )
    levels = sorted({each.confidence for each in gate.checks if each.kind == "worse_by"})
    certain = percent(levels[0] if len(levels) == 1 else comparison.confidence)
    if len(levels) > 1:
        certain = f"{percent(levels[0])} to {percent(levels[-1])}, as the limit says"
    return (
        "A change breaks its limit when it is at least as large as the limit and certain at "
        f"{certain}, over all cells and metrics together{how}."
    )
