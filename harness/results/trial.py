"""The lines of ``trials.jsonl``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.measured import Failure, Measured, Scalar  # noqa: TC001
from edgebench.harness.results.power import MeterEnergy  # noqa: TC001
from edgebench.harness.results.quality import WindowRecord  # noqa: TC001
from edgebench.harness.results.record import SCHEMA_VERSION, Record
from edgebench.harness.results.sustained import SustainedRecord  # noqa: TC001

Phase = Literal["warmup", "measured"]
TrialKind = Literal["load", "generate", "sustained", "task_load", "task", "quality"]


class Tokens(Record):
    """The raw time stamps of one generation, in nanoseconds after the prompt was handed over."""

    prompt_tokens: int
    depth_tokens: int = 0
    generated_ids: list[int | None] = Field(
        description="Null for a token whose id the framework's output did not tell."
    )
    tokenized_ns: int | None = None
    prefilled_ns: int | None = None
    token_ns: list[int] = Field(description="When each generated token was available.")
    finish_reason: str


class TaskOutput(Record):
    """What a whole task made of its text."""

    text: str
    finished_ns: int = Field(
        description="When the whole result was there, in ns after the text was handed over."
    )


class Timeline(Record):
    """Samples over one trial; every list has the length of ``t_s``, null where not read."""

    t_s: list[float] = Field(
        description="Seconds after the prompt was handed over (or the load began)."
    )
    rss_bytes: list[int | None]
    anon_bytes: list[int | None]
    file_bytes: list[int | None]
    shared_bytes: list[int | None]


class Trial(Record):
    """One line of ``trials.jsonl``.

    That is one load of a model, one generation, one run of a task, or one text rated.
    """

    schema_version: int = SCHEMA_VERSION
    kind: TrialKind = Field(
        description="A task_load is the load of a process that runs nothing but tasks."
    )
    variant: str
    workload: str | None = Field(
        description="Null for a load, which serves all workloads of its block."
    )
    block: int
    repetition: int = Field(description="Counted from 0 within its block and phase.")
    phase: Phase
    status: Literal["ok", "failed"]
    started_at: str = Field(description="UTC, ISO 8601.")
    duration_s: float = Field(description="Wall time from the harness's point of view.")
    metrics: dict[str, Measured] = Field(default={})
    tokens: Tokens | None = None
    output: TaskOutput | None = Field(default=None, description="Of a task that was run.")
    windows: list[WindowRecord] = Field(
        default=[], description="Of a text that was rated, in the order of the text."
    )
    timeline: Timeline | None = None
    power: list[MeterEnergy] = Field(
        default=[], description="Of a generation, by meter; the metrics are those of the first."
    )
    sustained: SustainedRecord | None = Field(
        default=None, description="Of a sustained stretch of work."
    )
    effective_options: dict[str, Scalar] = Field(
        default={},
        description="What the framework says it really used; in the record of a load, or of a "
        "text that was rated.",
    )
    parameters: int | None = Field(
        default=None, description="Weights in the model as the framework counts them; of a load."
    )
    weight_bytes_per_token: int | None = Field(
        default=None,
        description="Bytes of weights that decoding one token reads, as the runner counts them; "
        "of a load, or of a text that was rated.",
    )
    engine: str | None = Field(
        default=None, description="What was loaded, where the runner may have several; of a load."
    )
    engine_version: str | None = None
    failure: Failure | None = None
