"""The result files' model: ``run.json`` and the lines of ``trials.jsonl``.

History of the format (``schema_version``), which is independent of the package's version:

1. the first.
"""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from edgebench.harness.results.device import (  # noqa: TC001 - pydantic reads them
    BandwidthRecord,
    DeviceRecord,
)
from edgebench.harness.results.power import MeterEnergy, MeterRecord  # noqa: TC001
from edgebench.harness.results.quality import (  # noqa: TC001 - pydantic reads them
    QualityRecord,
    WindowRecord,
)
from edgebench.harness.results.record import BY_MACHINES, Sha256
from edgebench.harness.results.sustained import SustainedRecord  # noqa: TC001

SCHEMA_VERSION = 1

Scalar = bool | int | float | str | None
Source = Literal["observed", "engine", "derived", "estimated"]
Phase = Literal["warmup", "measured"]
TrialKind = Literal["load", "generate", "sustained", "task_load", "task", "quality"]
Verdict = Literal["agrees", "differs", "not_judged", "failed"]


class Record(BaseModel):
    """Base of everything that is written by a machine: unknown fields are kept."""

    model_config = BY_MACHINES


class Measured(Record):
    """One value of one trial, or why there is none."""

    value: float | None = Field(description="A finite number, or null where it was not measured.")
    unit: str = Field(description="Unit, such as s, token/s, byte, J; 1 for a ratio or count.")
    source: Source = Field(description="Who said so: our clock, the framework, or a computation.")
    reason: str | None = Field(default=None, description="Why the value is null.")

    @model_validator(mode="after")
    def _null_has_a_reason(self) -> Self:
        if self.value is None and not self.reason:
            msg = "a null value needs a reason"
            raise ValueError(msg)
        if self.value is not None and not math.isfinite(self.value):
            msg = "a value must be finite"
            raise ValueError(msg)
        return self

    @classmethod
    def missing(cls, unit: str, reason: str, source: Source = "observed") -> Measured:
        """A null with its reason."""
        return cls(value=None, unit=unit, source=source, reason=reason)


class Failure(Record):
    """Why a trial or a cell has no result."""

    kind: str = Field(
        description="crash, timeout, protocol, invalid_result, unavailable, model; connection or "
        "board, where it was that of another machine, or that machine itself; or what the "
        "runner named: unsupported, invalid, out_of_memory, framework, internal."
    )
    message: str
    signal: str | None = None
    exit_code: int | None = None
    log: str | None = Field(default=None, description="The log, relative to the run's folder.")
    log_tail: str = ""


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
    metrics: dict[str, Measured] = {}
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
    flags: list[Flag] = []
    metrics: dict[str, Summary] = {}
    failure: Failure | None = None

    @property
    def left_out(self) -> bool:
        """Whether it was not run on purpose, which is no fault: its metrics say why."""
        return self.status == "not_run" and bool(self.metrics)


class Artifact(Record):
    """The file or folder that a framework loads."""

    name: str
    sha256: Sha256
    bytes: int
    parameters: int | None = None
    weight_bytes_per_token: int | None = Field(
        default=None, description="Bytes of weights that decoding one token reads."
    )
    made_by: str = Field(description="What made it, with its version: 'as published' for a source.")
    note: str | None = Field(
        default=None, description="What a reader must know, such as lossy sources."
    )
    synthetic: bool = Field(
        default=False, description="Its weights are random numbers, or made from such."
    )


class Parting(Record):
    """Where a variant's greedy text leaves the reference's."""

    token: int = Field(description="Of the generated tokens, the first of which is 0.")
    reference_id: int
    reference_text: str
    variant_id: int
    variant_text: str
    margin: float = Field(
        description="By how much the reference's logit of its own token is above that of the "
        "variant's; near 0 both were as likely."
    )


class PromptSameness(Record):
    """One variant on one workload's prompt."""

    workload: str
    prompt_tokens: int = Field(description="How many of the prompt's tokens were compared.")
    tokenizer: Literal["equal", "differs", "not_compared"] = Field(
        description="Whether the framework's own tokenizer makes the reference's ids of the text."
    )
    tokenizer_note: str = Field(default="", description="Where they differ, or why not compared.")
    generated_tokens: int = Field(
        description="How many tokens were generated, greedily, up to one whose id was not told."
    )
    untold_tokens: int = Field(
        default=0, description="How many were generated from that one on, and not compared."
    )
    common_tokens: int = Field(
        description="How many of them, from the first on, the reference makes too."
    )
    parting: Parting | None = Field(default=None, description="Null where all are in common.")
    metrics: dict[str, Measured] = Field(
        default={},
        description="Over the prompt's positions: top1_agreement, kl_divergence, "
        "kl_divergence_p99, log_likelihood_difference, log_likelihood_difference_max.",
    )


class Sameness(Record):
    """One variant against the reference."""

    verdict: Verdict = Field(
        description="agrees or differs, of a variant in high precision; not_judged: its figures "
        "are shown; failed: it could not be compared."
    )
    not_judged_because: str | None = Field(
        default=None, description="What is not exact about the variant, such as int4 weights."
    )
    findings: list[str] = Field(default=[], description="Why it differs, a sentence each.")
    metrics: dict[str, Measured] = Field(
        default={}, description="As those of the prompts, over all positions of all prompts."
    )
    prompts: list[PromptSameness] = []
    failure: Failure | None = None


class ReferenceRecord(Record):
    """What the variants were compared with: the source's weights, run in float32 by numpy."""

    name: str = Field(description="The source's file or folder.")
    sha256: Sha256
    lossy_types: list[str] = Field(
        default=[],
        description="Quantised types that the source keeps weights in; the reference runs what "
        "they stand for.",
    )
    parameters: int
    prompt_positions: int = Field(description="Over all prompts; each was rated once.")
    candidates: int = Field(description="Tokens whose likelihood was compared, at all of them.")
    covered: float | None = Field(
        default=None, description="The mean share of the probability that they hold."
    )
    duration_s: float
    limits: dict[str, float] = Field(
        default={}, description="Within which a variant in high precision agrees."
    )


class TaskEngine(Record):
    """What runs a task of a variant; it need not be what makes the variant's tokens."""

    engine: str
    engine_version: str
    build: dict[str, str] = {}
    effective_options: dict[str, Scalar] = Field(
        default={}, description="What it says it used, at its last load."
    )


class VariantRecord(Record):
    """One column of the comparison: a framework, a quantisation, its options."""

    id: str
    runner: str
    quantization: str
    options: dict[str, Scalar] = {}
    python: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    framework: str | None = Field(
        default=None,
        description="Whose figures these are, where that is not what the runner is named after.",
    )
    artifact: Artifact | None = None
    context_tokens: int | None = None
    effective_options: dict[str, Scalar] = {}
    tasks: dict[str, TaskEngine] = Field(
        default={}, description="By task, for those tasks that it can run."
    )
    sameness: Sameness | None = Field(
        default=None, description="How it compares with the reference; null where not verified."
    )


class WorkloadRecord(Record):
    """One row of the comparison: a prompt and a length, a task, or a text to rate."""

    name: str
    description: str
    task: str | None = Field(
        default=None, description="The whole task that it is, of which no token is counted."
    )
    prompt_tokens: int | None = None
    generate_tokens: int | None = Field(description="Null for a task or a text to rate.")
    depth: int = 0
    sustained_s: float | None = Field(
        default=None,
        description="For how long it is generated from again and again; null for once a "
        "repetition. Its cells have the keys burst_rate, sustained_rate, sustained_ratio.",
    )
    text: str | None = Field(
        default=None, description="The text that it rates, as the scenario names it."
    )
    quality: QualityRecord | None = Field(
        default=None,
        description="The protocol, of a workload that rates a text; its cells have the keys "
        "perplexity, perplexity_ratio, bits_per_byte, kl_divergence, kl_divergence_p99, "
        "top1_agreement, scoring_rate.",
    )
    prompt_sha256: Sha256 | None = Field(
        default=None, description="Of the token ids, as decimal numbers joined by commas."
    )
    prompt_text: str | None = Field(default=None, description="Null where only ids were given.")

    @property
    def kind(self) -> Literal["prompt", "sustained", "task", "quality"]:
        """What it asks of a variant."""
        if self.text is not None:
            return "quality"
        if self.sustained_s is not None:
            return "sustained"
        return "prompt" if self.task is None else "task"


class MachineRecord(Record):
    """Where it ran. Nothing is compared across fingerprints without saying so."""

    fingerprint: str
    cpu_model: str
    cpu_microarchitecture: str | None = None
    logical_cpus: int
    physical_cpus: int | None = None
    affinity: list[int]
    memory_bytes: int
    kernel: str
    system: str
    architecture: str
    python: str
    governor: str | None = None
    turbo: bool | None = None
    virtualization: str | None = None
    boot_id: str | None = None
    load_average: list[float] = []


class ProtocolRecord(Record):
    """How it was measured, as far as the statistics need it."""

    warmup_min: int
    warmup_max: int
    warmup_stable_within: float
    min_repetitions: int
    max_repetitions: int
    ci_half_width: float = Field(description="Of the median, at which repetitions end.")
    max_cv: float = Field(description="Above it a cell is flagged noisy.")
    per_block: int = Field(description="Measured repetitions of a workload in one process.")
    interleave: bool
    cooldown_s: float
    cooldown_within_celsius: float | None = Field(
        default=None,
        description="Before each block it was waited until the temperature was within so many "
        "degrees of that before the first one; null where that was not asked for.",
    )
    cooldown_at_most_s: float | None = Field(
        default=None, description="And at most so long, in seconds."
    )
    time_budget_s: float
    timeout_s: float
    cold_load: bool


class Accounting(Record):
    """Where the wall time went, in seconds."""

    wall_s: float
    prepare_s: float
    start_s: float = Field(description="Starting processes and importing frameworks.")
    load_s: float
    warmup_s: float
    measured_s: float
    cooldown_s: float
    quality_s: float = Field(default=0.0, description="Rating texts, with all that it needs.")
    overhead_s: float = Field(description="All of the run after preparing that is none of these.")


class CommitRecord(Record):
    """The revision of what was measured: of the folder that the run was started in."""

    sha: str = Field(description="As git names it, in full; or what EDGEBENCH_COMMIT said.")
    branch: str | None = None
    committed_at: str | None = Field(default=None, description="UTC, ISO 8601.")
    dirty: bool | None = Field(
        default=None, description="Whether tracked files were changed; null where not known."
    )


class Interleaved(Record):
    """That a run was measured in the same blocks as another one, in random order.

    Blocks of one number in both are pairs.
    """

    session: str = Field(description="The same in both runs, and in no other.")
    side: Literal["baseline", "candidate"]
    partner: str = Field(description="The other run's folder, relative to the one above this one.")
    difference: str = Field(
        default="", description="What the baseline was run with in place of the scenario's."
    )


class RunRecord(Record):
    """``run.json``."""

    schema_version: int = SCHEMA_VERSION
    id: str
    scenario_name: str
    edgebench_version: str
    created_at: str
    finished_at: str | None = None
    status: Literal["running", "finished", "interrupted"]
    quick: bool = False
    command: list[str] = []
    scenario_path: str | None = None
    commit: CommitRecord | None = Field(
        default=None, description="What was measured; null where no repository was at hand."
    )
    interleaved: Interleaved | None = Field(
        default=None, description="The run that it was interleaved with; null where it was alone."
    )
    seed: int
    scenario: dict[str, object] = Field(description="The scenario as resolved.")
    scenario_sha256: Sha256
    protocol: ProtocolRecord
    stopped_by_budget: bool = False
    machine: MachineRecord
    device: DeviceRecord | None = Field(
        default=None, description="How the machine was reached; null in older results."
    )
    meters: list[MeterRecord] = Field(default=[], description="Energy meters that were read.")
    no_meter_reasons: list[str] = Field(
        default=[], description="A sentence for each meter that could not be used, and why."
    )
    bandwidth: list[BandwidthRecord] = Field(
        default=[], description="Of the machine's memory, by threads; empty where not measured."
    )
    synthetic: str | None = Field(
        default=None,
        description="The architecture whose random weights were run; null for a real model.",
    )
    runners: dict[str, dict[str, object]] = Field(
        default={}, description="Each runner's own description."
    )
    reference: ReferenceRecord | None = Field(
        default=None, description="What the variants were compared with; null where they were not."
    )
    variants: list[VariantRecord]
    proofs: list[VariantRecord] = Field(
        default=[],
        description="Each framework's most exact artifact, where the scenario asked for it: "
        "compared with the reference, not measured.",
    )
    workloads: list[WorkloadRecord]
    cells: list[Cell] = []
    accounting: Accounting | None = None
    notes: list[str] = []
