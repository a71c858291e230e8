"""What pytest-benchmark's JSON files are made of, as far as edgebench reads them.

The format is that of `--benchmark-json`, and of the files that `--benchmark-save` and
`--benchmark-autosave` keep. Numbers are seconds. Unknown fields are kept, and none of the file's
statistics is read: they are computed from the samples again.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from edgebench.harness.compare.baseline_format import (  # noqa: TC001 - pydantic reads them
    BaselineModel,
    BaselineRun,
)
from edgebench.harness.results.measured import Failure, Source  # noqa: TC001 - pydantic reads it
from edgebench.harness.results.model import VariantRecord, WorkloadRecord  # noqa: TC001
from edgebench.harness.results.record import Record

WRITTEN_AS = "5.1.0"
"""The release of pytest-benchmark whose files an exported one is like."""

HEAD_VERSION = 1
"""Of what edgebench adds to a file; 1 is the first."""


class PytestStats(Record):
    """Of a benchmark's `stats` the samples."""

    data: list[Annotated[float, Strict()] | None] | None = Field(
        default=None, description="Seconds of one call, by round; not there where it wasn't saved."
    )
    rounds: int | None = None
    iterations: int = Field(
        default=1, description="Calls in a round; the samples are divided by it already."
    )


class ExportedCell(Record):
    """What edgebench adds to a benchmark's `extra_info`."""

    variant: str
    workload: str
    metric: str
    unit: str
    source: Source
    machine: str = Field(description="Its fingerprint.")
    blocks: list[tuple[str, int]] = Field(description="Of each sample the session and the block.")


class PytestExtra(Record):
    """A benchmark's `extra_info`, where it was exported by edgebench."""

    edgebench: ExportedCell


class PytestBenchmark(Record):
    """One benchmark."""

    name: str
    fullname: str = ""
    group: str | None = None
    stats: PytestStats
    extra_info: dict[str, object] = Field(default={}, description="What its test kept.")
    options: dict[str, object] = Field(default={}, description="Such as the timer.")


class PytestCpu(Record):
    """Of `machine_info` the processor, as py-cpuinfo names it."""

    brand_raw: str | None = None
    brand: str | None = Field(default=None, description="Its name in older releases.")
    count: int | None = None
    arch_string_raw: str | None = None


class PytestMachine(Record):
    """`machine_info`."""

    processor: str = ""
    machine: str = ""
    system: str = ""
    release: str = ""
    python_version: str = ""
    cpu: PytestCpu = PytestCpu()


class PytestCommit(Record):
    """`commit_info`."""

    id: str | None = None
    time: str | None = None
    dirty: bool | None = None
    branch: str | None = None
    project: str | None = None


class CellHead(Record):
    """What came of a cell, whether it has times or not."""

    variant: str
    workload: str
    status: Literal["ok", "partial", "failed", "not_run"]
    flags: list[str] = Field(default=[], description="As in run.json.")
    failure: Failure | None = None


class ExportedHead(Record):
    """What edgebench adds to a whole file, so that it can be read back."""

    schema_version: int
    name: str
    model: BaselineModel
    runs: list[BaselineRun] = Field(min_length=1)
    notes: list[str] = Field(default=[], description="A sentence each.")
    variants: list[VariantRecord]
    workloads: list[WorkloadRecord]
    cells: list[CellHead]


class PytestFile(Record):
    """A whole file."""

    machine_info: PytestMachine = PytestMachine()
    commit_info: PytestCommit = PytestCommit()
    benchmarks: list[PytestBenchmark]
    datetime: str = ""
    version: str = ""
    edgebench: ExportedHead | None = None
