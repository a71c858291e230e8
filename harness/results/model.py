"""The run's own record, ``run.json``; its parts are in the modules beside."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgebench.harness.results.cell import Cell  # noqa: TC001 - pydantic reads them all
from edgebench.harness.results.device import BandwidthRecord, DeviceRecord  # noqa: TC001
from edgebench.harness.results.measured import Scalar  # noqa: TC001
from edgebench.harness.results.power import MeterRecord  # noqa: TC001
from edgebench.harness.results.quality import QualityRecord  # noqa: TC001
from edgebench.harness.results.record import SCHEMA_VERSION, Record, Sha256
from edgebench.harness.results.sameness import ReferenceRecord, Sameness  # noqa: TC001


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


class TaskEngine(Record):
    """What runs a task of a variant; it need not be what makes the variant's tokens."""

    engine: str
    engine_version: str
    build: dict[str, str] = Field(default={})
    effective_options: dict[str, Scalar] = Field(
        default={}, description="What it says it used, at its last load."
    )


class VariantRecord(Record):
    """One column of the comparison: a framework, a quantisation, its options."""

    id: str
    runner: str
    quantization: str
    options: dict[str, Scalar] = Field(default={})
    python: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    framework: str | None = Field(
        default=None,
        description="Whose figures these are, where that is not what the runner is named after.",
    )
    artifact: Artifact | None = None
    context_tokens: int | None = None
    effective_options: dict[str, Scalar] = Field(default={})
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
    load_average: list[float] = Field(default=[])


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
    command: list[str] = Field(default=[])
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
    cells: list[Cell] = Field(default=[])
    accounting: Accounting | None = None
    notes: list[str] = Field(default=[])
