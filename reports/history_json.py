"""The history for scripts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.history.findings import Findings
    from edgebench.harness.history.index import Contents
    from edgebench.harness.history.model import Point, Series

SCHEMA_VERSION = 1


def history_json(contents: Contents, found: Sequence[tuple[Series, Findings]]) -> dict[str, object]:
    """The series with their runs and findings, ready for `json.dumps`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "runs": contents.runs,
        "left_out": contents.left_out,
        "skipped": [asdict(each) for each in contents.skipped],
        "notes": list(contents.notes),
        "series": [_series(series, findings) for series, findings in found],
    }


def _series(series: Series, found: Findings) -> dict[str, object]:
    subject = {key: value for key, value in asdict(series.subject).items() if key != "identity"}
    return {
        **subject,
        "meter": series.subject.meter or None,
        "apart": series.apart or None,
        "cpu_model": series.cpu_model,
        "spread": found.spread,
        "reason": found.reason,
        "points": [_point(each) for each in series.points],
        "changes": [
            {
                **asdict(each),
                **_between(series, each.earliest - 1, each.latest),
                "first_run": series.points[each.at].run.id,
            }
            for each in found.changes
        ],
        "drifts": [
            {**asdict(each), **_between(series, each.start, each.last)} for each in found.drifts
        ],
    }


def _point(point: Point) -> dict[str, object]:
    run = point.run
    return {
        "run": run.id,
        "path": run.path,
        "created_at": run.created_at,
        "commit": run.sha,
        "branch": run.branch,
        "committed_at": run.committed_at,
        "dirty": run.dirty,
        "edgebench_version": run.version,
        "engine": point.setup.engine or None,
        "median": point.median,
        "ci_low": point.low,
        "ci_high": point.high,
        "n": point.n,
    }


def _between(series: Series, last: int, first: int) -> dict[str, object]:
    return {
        "last_commit_before": series.points[last].run.sha,
        "first_commit_after": series.points[first].run.sha,
        "last_run_before": series.points[last].run.id,
        "first_run_after": series.points[first].run.id,
    }
