"""A saved baseline as it lies on disk.

History of the format (``schema_version``), which is independent of the package's version:

1. the first.

What people read in a diff (medians with their intervals) stands beside what the statistics need
(every sample, compressed): the samples count, and the rest is computed from them. A cell has a
checksum over both, so that neither is changed alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, Strict

from edgebench.harness.results.measured import Failure, Source  # noqa: TC001 - pydantic reads it
from edgebench.harness.results.model import (  # noqa: TC001
    CommitRecord,
    MachineRecord,
    VariantRecord,
    WorkloadRecord,
)
from edgebench.harness.results.quality import WindowRecord  # noqa: TC001 - pydantic reads it
from edgebench.harness.results.record import Record
from edgebench.harness.scenario.schema import DIALECT, PlainSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
FORMAT = "edgebench baseline"

_LINE = 110
_CHECKSUM_DIGITS = 16


class BaselineRun(Record):
    """One run that the samples are of."""

    id: str
    session: str = Field(description="What the samples' blocks are called after.")
    created_at: str = Field(description="UTC, ISO 8601.")
    scenario_name: str
    edgebench_version: str
    commit: CommitRecord | None = None
    machine: MachineRecord
    interleaved: bool = Field(
        default=False, description="Whether it was measured in the same blocks as another run."
    )
    quick: bool = False
    difference: str = Field(
        default="", description="What the baseline was run with in place of the scenario's."
    )
    testing: bool = Field(default=False, description="Whether its figures were made up, for tests.")


class BaselineModel(Record):
    """The model that was run."""

    name: str
    source: str
    hashes: dict[str, str] = Field(
        default={}, description="All that tells which weights it is, by what it is the hash of."
    )


class MetricRecord(Record):
    """What holds of a metric in every cell that does not say otherwise."""

    unit: str
    source: Source = Field(description="Who said so: our clock, the framework, or a computation.")
    meter: str | None = Field(
        default=None,
        description="Of an energy or a power, what measured it, such as rapl:package; null where "
        "that is not known, as in baselines of an older edgebench.",
    )
    reason: str | None = Field(default=None, description="Why a cell has no value.")


class SummaryRecord(Record):
    """One metric of one cell, for people: rounded, and computed from the samples."""

    median: float | None = None
    low: float | None = Field(default=None, description="95 % bootstrap interval of the median.")
    high: float | None = None
    n: int = Field(ge=0, description="How many samples there are.")
    unit: str | None = Field(default=None, description="Where it is not that of `metrics`.")
    source: Source | None = Field(default=None, description="Where it is not that of `metrics`.")
    meter: str | None = Field(default=None, description="Where it is not that of `metrics`.")
    reason: str | None = Field(
        default=None, description="Why n is 0, where that is not the reason in `metrics`."
    )


class BaselineCell(Record):
    """A variant on a workload."""

    variant: str
    workload: str
    status: Literal["ok", "partial", "failed", "not_run"]
    flags: list[str] = Field(default=[], description="Such as noisy; as in run.json.")
    failure: Failure | None = None
    n: int = Field(default=0, ge=0, description="Measured repetitions that succeeded.")
    n_failed: int = Field(default=0, ge=0, description="Attempts that failed, loads included.")
    metrics: dict[str, SummaryRecord] = Field(default={}, description="By key.")
    own_variant: VariantRecord | None = Field(
        default=None, description="The variant's record, where it is not the one in `variants`."
    )
    own_workload: WorkloadRecord | None = Field(
        default=None, description="The workload's record, where it is not the one in `workloads`."
    )
    samples: str | None = Field(
        default=None, description="Every sample: JSON in UTF-8, compressed by zlib, in base64."
    )
    checksum: str = Field(
        description="First 16 hexadecimal digits of the SHA-256 of the rest of the cell, as JSON "
        "in ASCII with sorted keys and no spaces."
    )


class BaselineRecord(Record):
    """A saved baseline."""

    format: Literal["edgebench baseline"]
    schema_version: Annotated[int, Strict(), Field(ge=1)]
    name: str
    model: BaselineModel
    runs: list[BaselineRun] = Field(min_length=1, description="Oldest first, all of one machine.")
    notes: list[str] = Field(default=[], description="What a reader must know, a sentence each.")
    variants: list[VariantRecord]
    workloads: list[WorkloadRecord]
    metrics: dict[str, MetricRecord]
    cells: list[BaselineCell]


class SampleList(Record):
    """The samples of one metric of a cell."""

    blocks: int = Field(ge=0, description="Which of the lists of blocks is theirs.")
    values: list[float]


class CellSamples(Record):
    """What a cell's `samples` hold."""

    sessions: list[str] = Field(default=[], description="Of all blocks.")
    blocks: list[list[tuple[int, int]]] = Field(
        default=[],
        description="Lists of blocks, each a session's place in `sessions` and a number.",
    )
    metrics: dict[str, SampleList] = Field(default={}, description="By key.")
    windows: list[WindowRecord] = Field(default=[], description="Of a text that was rated.")


def baseline_schema() -> dict[str, object]:
    """The schema of a saved baseline, in JSON Schema 2020-12."""
    schema = BaselineRecord.model_json_schema(schema_generator=PlainSchema)
    return {"$schema": DIALECT, **schema, "title": "edgebench baseline"}


def checksum(cell: Mapping[str, object]) -> str:
    """The checksum of a cell as it stands in the file; the one that it holds does not count."""
    rest = {key: value for key, value in cell.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_CHECKSUM_DIGITS]


def written(value: object) -> bytes:
    """JSON whose diffs are local: what fits into a line stands in one, the rest is spread.

    The same value always gives the same bytes.
    """
    # Half of a surrogate pair can't be encoded; as an escape it is the same text in JSON.
    return (_spread(value, 0) + "\n").encode("utf-8", "backslashreplace")


def _spread(value: object, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if (depth and depth + len(line) <= _LINE) or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_spread(each, depth + 1)}"
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    else:
        parts = [_spread(each, depth + 1) for each in value]
        opening, closing = "[", "]"
    return opening + ",".join(f"\n{inner}{part}" for part in parts) + f"\n{' ' * depth}{closing}"
