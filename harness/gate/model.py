"""A gate's policy as it is applied, and its outcome.

The policy as people write it is in `edgebench.harness.gate.policy`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import datetime as dt

    from edgebench.harness.compare.model import Compared, Comparison, SideCell

Severity = Literal["fail", "warn"]

Result = Literal["passed", "failed", "undecided"]
"""Of a gate. Undecided: no limit is broken, and no worsening whatever could have broken one that
asks about samples, such as of a single repetition."""

Status = Literal["fail", "warn", "allowed", "undecided", "pass"]
"""Of one check, worst first: a broken limit; one that only warns; one that an allowance covers;
one that the samples can't decide; one that is kept."""

Kind = Literal["worse_by", "at_most", "at_least", "failed", "vanished"]
"""What is checked: a change against the baseline; a bound on the candidate alone; whether the cell
still has a result; whether it is there at all."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A worsening that is known and borne for a while.

    Attributes:
        cell: an fnmatch pattern of `Pair.name`.
        metric: an fnmatch pattern of metrics' keys.
        worse_by: up to which worsening, as a share; None for any, a cell that fails included.
        until: the last day on which it holds.
        reason: why it is borne.
    """

    cell: str
    metric: str
    worse_by: float | None
    until: dt.date
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """One limit on one cell, and what came of it.

    Attributes:
        cell: `Pair.name`, or the same of a cell that vanished.
        metric: its key; empty where the cell itself is what failed or vanished.
        kind: what is checked.
        status: what came of it.
        limit: as stored: a share for `worse_by`, else in the metric's unit; None for a cell.
        value: what is held against the limit: the worsening, or the candidate's median.
        message: one sentence, without a full stop, that says what happened with its numbers.
        detail: what else a reader of a failure wants: certainty, the smallest change that would
            have been noticed, repetitions; the failure's last lines. May be empty.
        compared: behind it, where there is one.
        gone: the baseline's cell, where it vanished; the candidate's where it failed.
        allowance: that covers it, or that covered it until it expired.
        undecided: whether the samples can't decide it, whatever the policy makes of that.
        estimated: whether its value is computed from a model of power, not measured.
    """

    cell: str
    metric: str
    kind: Kind
    status: Status
    severity: Severity
    message: str
    limit: float | None = None
    value: float | None = None
    unit: str = ""
    confidence: float = 0.99
    detail: str = ""
    compared: Compared | None = None
    gone: SideCell | None = None
    allowance: Allowance | None = None
    undecided: bool = False
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate's outcome.

    Attributes:
        comparison: what it was decided on; its rows are the ones that limits ask about.
        checks: every limit on every cell, worst status first, then in the order of the cells.
        outcome: of the whole.
        policy: what it was decided by, in words: ``gate.yaml`` or ``the default policy``.
        headline: one sentence: how many limits were broken, or that none was, and how small a
            change would have been noticed.
        unused: allowances and patterns that met nothing, or have expired; a sentence each.
        remedy: of an undecided gate, what it would take, in sentences; else empty.
    """

    comparison: Comparison
    checks: tuple[Check, ...]
    outcome: Result
    policy: str
    headline: str
    unused: tuple[str, ...] = field(default=())
    remedy: str = ""

    @property
    def passed(self) -> bool:
        """Whether the exit status is 0."""
        return self.outcome == "passed"
