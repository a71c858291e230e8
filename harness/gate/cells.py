"""Cells that fail now, or are not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.gate.model import Check
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Pair, SideCell
    from edgebench.harness.gate.model import Kind, Severity, Status


def name_of(cell: SideCell) -> str:
    """Its name as patterns match it: ``VARIANT / WORKLOAD``."""
    return f"{cell.variant.id} / {cell.workload.name}"


def cell_check(pair: Pair, severity: Severity) -> Check | None:
    """Whether a cell still has a result; None where it has one and had one."""
    before, now = pair.baseline.status, pair.candidate.status
    if now == "ok":
        if before == "ok":
            return None
        was = {"partial": "failed in part", "failed": "failed", "not_run": "was not run"}[before]
        return _check(pair.name, "failed", "pass", severity, f"has a result; the baseline {was}")
    why = _failure(pair.candidate)
    if now == before:
        words = {"partial": "fails in part", "failed": "fails", "not_run": "was not run"}[now]
        message = f"{words}, as in the baseline{why}"
        return _check(pair.name, "failed", "pass", severity, message, pair.candidate)
    if now == "partial" and before in {"failed", "not_run"}:
        message = f"fails in part{why}; the baseline had no result"
        return _check(pair.name, "failed", "pass", severity, message, pair.candidate)
    if before in {"failed", "not_run"}:
        message = f"has no result{why}; nor had the baseline"
        return _check(pair.name, "failed", "pass", severity, message, pair.candidate)
    words = {
        "partial": "fails in part now",
        "failed": "fails now",
        "not_run": "was not run now",
    }[now]
    return _check(pair.name, "failed", "fail", severity, f"{words}{why}", pair.candidate)


def vanished_check(cell: SideCell, severity: Severity) -> Check:
    """A cell of the baseline that the candidate does not have at all."""
    name = name_of(cell)
    if cell.status in {"failed", "not_run"}:
        message = "is in the baseline, without a result, and not in the candidate"
        return _check(name, "vanished", "pass", severity, message, cell)
    message = "is in the baseline and not in the candidate"
    return _check(name, "vanished", "fail", severity, message, cell)


def _failure(cell: SideCell) -> str:
    if cell.failure is None:
        return ""
    lines = cell.failure.message.strip().splitlines()
    return f": {one_line(lines[0]).rstrip('.')}" if lines else ""


def _check(
    cell: str,
    kind: Kind,
    status: Status,
    severity: Severity,
    message: str,
    gone: SideCell | None = None,
) -> Check:
    tail = "" if gone is None or gone.failure is None else gone.failure.log_tail
    return Check(
        cell=cell,
        metric="",
        kind=kind,
        status=status,
        severity=severity,
        message=message,
        detail=tail if status == "fail" else "",
        gone=gone,
    )
