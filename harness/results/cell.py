"""What the repetitions of a variant on a workload come to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.measured import Failure, Source  # noqa: TC001
from edgebench.harness.results.record import Record


class Summary(Record):
    """One metric of one cell over its measured repetitions; of quality, over its windows."""

    median: float | None = Field(
        description="Of quality, the value over all windows, and the interval that of resampled "
        "windows."
    )
    ci_low: float | None = Field(default=None, description="95 % bootstrap interval of the median.")
    ci_high: float | None = None
    min: float | None = None
    max: float | None = None
    cv: float | None = Field(default=None, description="Standard deviation / mean.")
    n: int
    unit: str
    source: Source
    reason: str | None = Field(default=None, description="Why the median or the interval is null.")


Flag = Literal[
    "noisy",
    "contended",
    "unstable_warmup",
    "few_repetitions",
    "cut_by_budget",
    "quick",
    "above_bandwidth",
    "throttled",
]


class Cell(Record):
    """A variant on a workload."""

    variant: str
    workload: str
    status: Literal["ok", "partial", "failed", "not_run"]
    n: int = Field(description="Measured repetitions that succeeded.")
    n_warmup: int = 0
    n_failed: int = 0
    flags: list[Flag] = Field(default=[])
    metrics: dict[str, Summary] = Field(default={})
    failure: Failure | None = None

    @property
    def left_out(self) -> bool:
        """Whether it was not run on purpose, which is no fault: its metrics say why."""
        return self.status == "not_run" and bool(self.metrics)
