"""Cells that fail now, or are not there any more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.harness.gate.model import Check
from edgebench.harness.gate.wording import count
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Pair, SideCell
    from edgebench.harness.gate.model import Kind, Severity, Status


def name_of(cell: SideCell) -> str:
    """Its name as patterns match it: ``VARIANT / WORKLOAD``."""
    return f"{cell.variant.id} / {cell.workload.name}"


def cell_check(pair: Pair, severity: Severity, *, confidence: float, least: int) -> Check | None:
    """Whether a cell still has a result; None where it has one and had one.

    A cell that fails in part on both sides is held against how often it failed: it is broken where
    it certainly fails more often, and where it fails more often and what is left of it is too
    little to compare.

    Args:
        pair: the cells.
        severity: of a failure.
        confidence: of "more often".
        least: how many repetitions a comparison takes at the very least.
    """
    before, now = pair.baseline.status, pair.candidate.status
    if now == "ok":
        if before == "ok":
            return None
        was = {"partial": "failed in part", "failed": "failed", "not_run": "was not run"}[before]
        return _check(pair.name, "failed", "pass", severity, f"has a result; the baseline {was}")
    status, message = _worded(pair, confidence, least)
    return _check(pair.name, "failed", status, severity, message, pair.candidate)


def _worded(pair: Pair, confidence: float, least: int) -> tuple[Status, str]:
    """What became of a cell that does not work, and what to say of it."""
    before, now = pair.baseline.status, pair.candidate.status
    why = _failure(pair.candidate)
    had_none = before in {"failed", "not_run"}
    if now == before == "partial" and (more := _fails_more(pair, confidence, least)):
        return "fail", f"{more}{why}"
    if now == before:
        words = {"partial": "fails in part", "failed": "fails", "not_run": "was not run"}[now]
        return "pass", f"{words}, as in the baseline{why}"
    if now == "partial" and had_none:
        return "pass", f"fails in part{why}; the baseline had no result"
    if had_none:
        return "pass", f"has no result{why}; nor had the baseline"
    words = {
        "partial": "fails in part now",
        "failed": "fails now",
        "not_run": "was not run now",
    }[now]
    return "fail", f"{words}{why}"


def vanished_check(cell: SideCell, severity: Severity) -> Check:
    """A cell of the baseline that the candidate does not have at all."""
    name = name_of(cell)
    if cell.status in {"failed", "not_run"}:
        message = "is in the baseline, without a result, and not in the candidate"
        return _check(name, "vanished", "pass", severity, message, cell)
    message = "is in the baseline and not in the candidate"
    return _check(name, "vanished", "fail", severity, message, cell)


def _fails_more(pair: Pair, confidence: float, least: int) -> str:
    """That the candidate fails more often, and how often; empty where it does not."""
    one, other = pair.baseline, pair.candidate
    tried = (one.n + one.n_failed, other.n + other.n_failed)
    if 0 in tried or other.n_failed * tried[0] <= one.n_failed * tried[1]:
        return ""
    counts = f"{other.n_failed} of {tried[1]} attempts, {one.n_failed} of {tried[0]} before"
    if chance_of_more(one.n_failed, tried[0], other.n_failed, tried[1]) <= 1 - confidence:
        return f"fails more often now, {counts}"
    if other.n < least:
        left = count(other.n, "repetition")
        return f"fails more often now, {counts}, which leaves {left}, too few to compare"
    return ""


def chance_of_more(before: int, tried: int, now: int, tried_now: int) -> float:
    """The chance of so many failures or more among the later attempts if both fail alike.

    Fisher's exact test, one-sided (R. A. Fisher, Statistical Methods for Research Workers, 5th
    edition, section 21.02).

    Args:
        before: failures of the baseline.
        tried: its attempts.
        now: failures of the candidate.
        tried_now: its attempts.
    """
    failures, attempts = before + now, tried + tried_now
    ways = sum(
        math.comb(tried_now, each) * math.comb(tried, failures - each)
        for each in range(now, min(failures, tried_now) + 1)
    )
    return ways / math.comb(attempts, failures)


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
