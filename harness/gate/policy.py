"""A gate's policy as people write it.

History of the format (``schema_version``), which is independent of all others:

1. the first.
"""

from __future__ import annotations

import datetime as dt
import re
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from edgebench.harness.scenario.problems import quote, shown
from edgebench.harness.scenario.quantities import (
    AMOUNT_PATTERN,
    SHARE_PATTERN,
    is_amount,
    share,
)
from edgebench.harness.scenario.values import Label, format_version, refusal
from edgebench.harness.scenario.written import STRICT, refuse

if TYPE_CHECKING:
    from edgebench.harness.results.model import VariantRecord, WorkloadRecord

SCHEMA_VERSION: Final = 1

CONFIDENCE: Final = 0.99
NOISE_FLOOR: Final = 0.01
MOST_CONFIDENCE: Final = 0.999
"""Beyond it a test would need more draws than it makes."""

MOST_NOISE: Final = 0.5
"""Runs that differ by as much tell nothing."""

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_LEAST_CONFIDENCE: Final = 0.5


def _version(value: object) -> object:
    return format_version(value, SCHEMA_VERSION)


def _share(value: object) -> object:
    if isinstance(value, str):
        found = share(value)
        if found is not None:
            return found
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value < 1:
            return float(value)
        if value >= 1:
            message = f"must be a share: write {value:g}% or {value / 100:g}, got {value}"
            raise refusal(message)
    message = f"must be a share such as 5% or 0.05, 0 or more, got {shown(value)}"
    raise refusal(message)


def _confidence(value: object) -> object:
    found = _share(value)
    assert isinstance(found, float)
    if not _LEAST_CONFIDENCE < found <= MOST_CONFIDENCE:
        message = (
            "must be more than 50% and at most 99.9%, since the draws of the test can't tell more, "
            f"got {shown(value)}"
        )
        raise refusal(message)
    return found


def _noise(value: object) -> object:
    found = _share(value)
    assert isinstance(found, float)
    if found >= MOST_NOISE:
        message = f"must be less than 50%, got {shown(value)}"
        raise refusal(message)
    return found


def _bound(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and is_amount(value):
        return value
    message = f"must be a number, or one with its unit such as 2s or 1GiB, got {shown(value)}"
    raise refusal(message)


def _limit(value: object) -> object:
    # YAML 1.2 reads `off` as text.
    if value is False or value == "off":
        return None
    if isinstance(value, dict | Limit):
        return value
    message = f"must be a group of keys such as {{worse_by: 5%}}, or off, got {shown(value)}"
    raise refusal(message)


def _match(value: object) -> object:
    if isinstance(value, str):
        return {"cell": value}
    if isinstance(value, dict | Match):
        return value
    message = (
        "must be a pattern of 'VARIANT / WORKLOAD', or a group of the keys variant, workload, "
        f"runner, got {shown(value)}"
    )
    raise refusal(message)


def _date(value: object) -> object:
    if isinstance(value, dt.date):
        return value
    if isinstance(value, str) and re.fullmatch(_DATE, value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            message = f"there is no such day: {quote(value)}"
            raise refusal(message) from None
    message = f"must be a day such as 2027-01-31, got {shown(value)}"
    raise refusal(message)


def _either(*parts: dict[str, object]) -> dict[str, object]:
    return {"anyOf": list(parts)}


_SHARE_SCHEMA: Final = _either(
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    {"type": "string", "pattern": SHARE_PATTERN},
)
_BOUND_SCHEMA: Final = _either(
    {"type": "number", "minimum": 0}, {"type": "string", "pattern": AMOUNT_PATTERN}
)

FormatVersion = Annotated[Literal[1], BeforeValidator(_version)]
Share = Annotated[float, BeforeValidator(_share), WithJsonSchema(_SHARE_SCHEMA)]
"""``5%``, ``5 %`` or ``0.05``."""

Noise = Annotated[float, BeforeValidator(_noise), WithJsonSchema(_SHARE_SCHEMA)]
Confidence = Annotated[float, BeforeValidator(_confidence), WithJsonSchema(_SHARE_SCHEMA)]
Bound = Annotated[float | int | str, BeforeValidator(_bound), WithJsonSchema(_BOUND_SCHEMA)]
"""A number in the unit that results are stored in, or one with its unit."""

Day = Annotated[
    dt.date,
    BeforeValidator(_date),
    WithJsonSchema({"type": "string", "pattern": f"^{_DATE}$"}),
]
Severity = Literal["fail", "warn"]


class Limit(BaseModel):
    """What is asked of one metric."""

    model_config = STRICT

    worse_by: Share | None = Field(
        default=None,
        description="The worsening against the baseline from which on the limit is broken, where "
        "it is certain: 5%, or 0.05.",
    )
    confidence: Confidence | None = Field(
        default=None, description="Of worse_by, where it is not that of the whole gate: 99.9%."
    )
    at_most: Bound | None = Field(
        default=None,
        description="The most that the candidate's median may be, whatever the baseline: 2s, "
        "1GiB, or a number in the metric's own unit.",
    )
    at_least: Bound | None = Field(
        default=None, description="The least that the candidate's median may be."
    )
    severity: Severity | None = Field(
        default=None, description="fail, the default, or warn: told, and nothing fails."
    )


class Match(BaseModel):
    """Which cells; all that is given must fit."""

    model_config = STRICT

    cell: Label | None = Field(
        default=None, description="A pattern of VARIANT / WORKLOAD, such as mnn* / long-*."
    )
    variant: Label | None = Field(default=None, description="A pattern of the variant's name.")
    workload: Label | None = Field(default=None, description="A pattern of the workload's name.")
    runner: Label | None = Field(default=None, description="A pattern of the runner's name.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == type(self).model_construct():
            message = "must name a variant, a workload or a runner; '*' is every cell"
            raise refusal(message)
        return self

    def fits(self, variant: VariantRecord, workload: WorkloadRecord) -> bool:
        """Whether it means this cell."""
        pairs = [
            (f"{variant.id} / {workload.name}", self.cell),
            (variant.id, self.variant),
            (workload.name, self.workload),
            (variant.runner, self.runner),
        ]
        return all(pattern is None or fnmatchcase(name, pattern) for name, pattern in pairs)

    def __str__(self) -> str:
        """As it is named in messages."""
        given = [(key, getattr(self, key)) for key in type(self).model_fields]
        return ", ".join(
            str(value) if key == "cell" else f"{key}: {value}"
            for key, value in given
            if value is not None
        )


Limits = dict[Label, Annotated[Limit | None, BeforeValidator(_limit)]]
"""By metric, or by a pattern of metrics; None for off."""


class Cells(BaseModel):
    """Limits of some cells, over those of all."""

    model_config = STRICT

    match: Annotated[Match, BeforeValidator(_match)] = Field(
        description="Which cells: a pattern of VARIANT / WORKLOAD, or a group of the keys variant, "
        "workload, runner."
    )
    limits: Limits = Field(description="By metric; what is not given stays as it was; off for none")


class Allowed(BaseModel):
    """A worsening that is known and borne for a while."""

    model_config = STRICT

    cell: Label = Field(description="A pattern of VARIANT / WORKLOAD.")
    metric: Label = Field(default="*", description="A metric, or a pattern of metrics.")
    worse_by: Share | None = Field(
        default=None,
        description="Up to which worsening; without it any, bounds and failing cells included.",
    )
    until: Day = Field(description="The last day on which it holds, such as 2027-01-31.")
    reason: Label = Field(description="Why it is borne.")


class Policy(BaseModel):
    """What a gate asks."""

    model_config = STRICT

    schema_version: FormatVersion = Field(description="Version of this format: 1.")
    confidence: Confidence = Field(
        default=CONFIDENCE,
        description="Of the gate as a whole: 99% means that at most one gate in a hundred fails "
        "where nothing changed.",
    )
    noise_floor: Noise = Field(
        default=NOISE_FLOOR,
        description="How much two runs of the same thing may differ that were not interleaved.",
    )
    undecided: Literal["pass", "warn", "fail"] = Field(
        default="pass", description="What becomes of limits that the samples can't decide."
    )
    failures: Severity = Field(
        default="fail", description="What becomes of cells that vanished, or fail now."
    )
    limits: Limits = Field(
        description="What is asked of every cell, by metric or by a pattern of metrics."
    )
    cells: list[Cells] = Field(default=[], description="Of some cells; later ones stand above.")
    allow: list[Allowed] = Field(
        default=[], description="Worsenings that are known and borne for a while."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from edgebench.harness.gate.conflicts import policy_conflicts  # noqa: PLC0415 - a cycle

        refuse(policy_conflicts(self.model_dump()))
        return self


DEFAULT_LIMITS: Final = MappingProxyType(
    {
        "decode_rate": "2%",
        "ttft_s": "3%",
        "task_latency_s": "3%",
        "duration_s": "3%",
        "peak_rss_bytes": "2%",
        "model_bytes": "1%",
        "perplexity": "1%",
    }
)
"""What is asked without a policy: what users wait for, what must fit, and whether it is as good.
Few, since each further question blunts all others. Left out: what follows from these (time per
token, prefill rate, end-to-end rate), and what mostly tells of the system (load time, faults)."""


def default_policy() -> Policy:
    """The policy of a gate that is given none."""
    return Policy.model_validate(
        {
            "schema_version": SCHEMA_VERSION,
            "limits": {key: {"worse_by": by} for key, by in DEFAULT_LIMITS.items()},
        }
    )
