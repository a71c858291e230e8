"""Which variant stands for a framework on each machine, for all tables of frameworks.

It is the fastest of the framework's variants: the one with the highest geometric mean of the
median decode rates over all workloads with a prompt, of those that failed on none of them. Where
each failed somewhere, it is the one that has the most rates, and the table says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.colours import framework_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import Part, ReportData

RATE = "decode_rate"

NAMES = {
    "llama.cpp": "llama.cpp",
    "mnn": "MNN",
    "mediapipe": "MediaPipe (LiteRT-LM)",
    "mlc": "MLC LLM",
}
"""How frameworks write themselves. Other keys are names already, such as that of an engine that a
runner used in place of the framework that it is named after."""

NO_FRAMEWORK = "fake"
"""The runner that makes figures up, for tests of edgebench itself."""

_COMPUTES_AT = ("backend", "device")
_ON_CPU = frozenset({"", "cpu", "None"})


@dataclass(frozen=True, slots=True)
class Standing:
    """A framework on one machine.

    Attributes:
        key: of the framework; see `edgebench.reports.colours.framework_key`.
        runner: the runner's name.
        part: the run that it was part of.
        variants: all of its variants there, in the order of the run.
        chosen: the one that stands for it; None where none has a decode rate.
        rate: the geometric mean of its median decode rates, in tokens/s; None without.
        without: workloads on which it has no decode rate.
    """

    key: str
    runner: str
    part: Part
    variants: tuple[VariantRecord, ...]
    chosen: VariantRecord | None
    rate: float | None
    without: tuple[str, ...]

    @property
    def name(self) -> str:
        """The framework's name in words."""
        return framework_name(self.key)


def framework_name(key: str) -> str:
    """A framework's name as it writes it; the key itself where it is a name already."""
    return NAMES.get(key, key)


def standings(data: ReportData) -> tuple[Standing, ...]:
    """Every framework on every machine, in the order of the run."""
    found = []
    for part in data.parts:
        own = frozenset(part.variants)
        grouped: dict[tuple[str, str], list[VariantRecord]] = {}
        for variant in data.record.variants:
            if variant.id in own:
                key = (framework_key(variant), variant.runner)
                grouped.setdefault(key, []).append(variant)
        found += [
            _standing(data, part, key, runner, variants)
            for (key, runner), variants in grouped.items()
        ]
    return tuple(found)


def workloads_of(data: ReportData, variant: VariantRecord) -> tuple[str, ...]:
    """The workloads with a prompt that a variant was to run."""
    own = {each.name for each in data.part_of(variant.id).record.workloads}
    return tuple(each for each in data.workload_names if each in own)


def rates_of(data: ReportData, variant: VariantRecord) -> dict[str, Summary]:
    """A variant's decode rates, by workload, where it has one above 0 that can be right."""
    found = {each: data.summary(each, variant.id, RATE) for each in workloads_of(data, variant)}
    return {
        name: each
        for name, each in found.items()
        if each is not None and each.median and not data.is_broken(name, variant.id)
    }


def is_left_out(data: ReportData, variants: Sequence[VariantRecord]) -> bool:
    """Whether any of these variants has a broken cell, which stands for nothing."""
    return any(
        data.is_broken(name, each.id) for each in variants for name in workloads_of(data, each)
    )


def geometric_mean(values: Sequence[float]) -> float:
    """Of numbers above 0; the mean that does not let the largest workload decide alone."""
    return math.exp(sum(map(math.log, values)) / len(values))


def runs_on_gpu(variant: VariantRecord) -> bool:
    """Whether its options say that it computes elsewhere than on the CPU."""
    said = {**variant.options, **variant.effective_options}
    elsewhere = any(str(said.get(each, "cpu")) not in _ON_CPU for each in _COMPUTES_AT)
    return elsewhere or bool(said.get("gpu_layers"))


def failure_of(data: ReportData, variants: Sequence[VariantRecord]) -> str:
    """Why the first of these variants that failed did so; empty where none did."""
    for variant in variants:
        for name in workloads_of(data, variant):
            failure = data.cell(name, variant.id).failure
            if failure is not None:
                return failure.message
    return ""


def fastest(standing: Sequence[Standing]) -> Standing | None:
    """The framework with the highest rate; made-up figures only where there are no others."""
    rated = [each for each in standing if each.rate is not None]
    real = [each for each in rated if each.runner != NO_FRAMEWORK]
    return max(real or rated, key=lambda each: each.rate or 0.0, default=None)


def _standing(
    data: ReportData, part: Part, key: str, runner: str, variants: Sequence[VariantRecord]
) -> Standing:
    rates = {each.id: rates_of(data, each) for each in variants}
    chosen = max(
        (each for each in variants if rates[each.id]),
        key=lambda each: _merit(data, each, rates[each.id]),
        default=None,
    )
    if chosen is None:
        return Standing(key, runner, part, tuple(variants), None, None, ())
    own = rates[chosen.id]
    return Standing(
        key=key,
        runner=runner,
        part=part,
        variants=tuple(variants),
        chosen=chosen,
        rate=geometric_mean([each.median or 0.0 for each in own.values()]),
        without=tuple(each for each in workloads_of(data, chosen) if each not in own),
    )


def _merit(
    data: ReportData, variant: VariantRecord, rates: Mapping[str, Summary]
) -> tuple[int, bool, float]:
    whole = all(data.cell(each, variant.id).status == "ok" for each in rates)
    return len(rates), whole, geometric_mean([each.median or 0.0 for each in rates.values()])
