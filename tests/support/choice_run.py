"""Made-up runs with exactly given values, for tests of how the measurements choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sample_run import handmade

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial
from edgebench.reports.data import build_report_data

if TYPE_CHECKING:
    from edgebench.reports.data import ReportData

RATE, TTFT, MEMORY, ENERGY = "decode_rate", "ttft_s", "peak_rss_bytes", "energy_per_token_j"
BLOCKS = 6

Values = dict[str, list[float | None]]


def steady(**values: float) -> Values:
    """The same value in each of six blocks, by metric: an interval without any width."""
    return {key: [value] * BLOCKS for key, value in values.items()}


def choice_run(
    variants: dict[str, Values | dict[str, Values]],
    *,
    runners: dict[str, str] | None = None,
    frameworks: dict[str, str] | None = None,
    failed: dict[str, str] | None = None,
    **changes: object,
) -> Run:
    """A run with exactly these values.

    Args:
        variants: by variant the values of each metric, one a block; or those by workload.
        runners: of variants that have another one than their own name.
        frameworks: of variants whose figures are of another one than the runner is named after.
        failed: the message with which a variant crashed on every workload.
        changes: fields of the run's record.
    """
    by_workload: dict[str, dict[str, Values]] = {}
    for name, values in variants.items():
        nested = (
            values if all(isinstance(each, dict) for each in values.values()) else {"w": values}
        )
        for workload, own in nested.items():
            by_workload.setdefault(workload, {})[name] = own
    trials: list[Trial] = []
    record, _ = handmade({name: {RATE: [1.0]} for name in variants}, **changes)
    for workload, values in by_workload.items():
        _, made = handmade(values, units={ENERGY: "J/token"})
        trials += [each.model_copy(update={"workload": workload}) for each in made]
    workloads = [
        record.workloads[0].model_copy(update={"name": each}) for each in by_workload or ["w"]
    ]
    for name, message in (failed or {}).items():
        trials = [each for each in trials if each.variant != name]
        trials += [crashed(name, each.name, message) for each in workloads]
    given = [
        each.model_copy(
            update={
                "runner": (runners or {}).get(each.id, each.id),
                "framework": (frameworks or {}).get(each.id),
            }
        )
        for each in record.variants
    ]
    record = record.model_copy(update={"variants": given, "workloads": workloads})
    return Run(Path("made-up"), record, tuple(trials))


def choice_data(variants: dict[str, Values | dict[str, Values]], **given: object) -> ReportData:
    """The report's data of `choice_run`."""
    return build_report_data(choice_run(variants, **given))


def crashed(variant: str, workload: str, message: str) -> Trial:
    """A trial that ended in a crash."""
    return Trial(
        kind="generate",
        variant=variant,
        workload=workload,
        block=0,
        repetition=0,
        phase="measured",
        status="failed",
        started_at="2025-01-14T10:17:00Z",
        duration_s=1.0,
        failure=Failure(kind="crash", message=message),
    )
