"""Sweeps: variants that differ in one option only, and which of its values is best."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.reports.answer import best_variants
from edgebench.reports.format import scale_for, shown
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import commas
from edgebench.reports.options import option_text
from edgebench.reports.sentences import Name, Sentence, fill

if TYPE_CHECKING:
    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.measured import Scalar
    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData

DECIDING = "decode_rate"
UNSET = N_("default")
_LEAST = 2


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One value of the option.

    Attributes:
        value: the option's value, as text.
        variant: the variant that has it.
        figure: the decode rate with its interval, without unit, or a dash.
        best: whether it is the best, or can't be told apart from it.
    """

    value: str
    variant: str
    figure: str
    best: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """One option swept on one workload.

    Attributes:
        option: the option's name.
        base: what the variants share, such as ``llama.cpp Q8_0``.
        workload: the workload's name.
        unit: the unit of the figures.
        points: in the order of the run.
        verdict: the best value, and how sure that is.
    """

    option: str
    base: str
    workload: str
    unit: str
    points: tuple[SweepPoint, ...]
    verdict: Sentence


def sweeps(data: ReportData) -> tuple[Sweep, ...]:
    """Every sweep of the run, on every workload."""
    # Not across runs: what differs there may be the machine.
    runs = (
        [each for each in data.record.variants if each.id in part.variants] for part in data.parts
    )
    return tuple(
        _sweep(data, option, group, workload)
        for variants in runs
        for option, group in _groups(variants)
        for workload in data.workload_names
    )


def _groups(variants: list[VariantRecord]) -> list[tuple[str, list[VariantRecord]]]:
    options = dict.fromkeys(key for variant in variants for key in variant.options)
    found: list[tuple[str, list[VariantRecord]]] = []
    for option in options:
        alike: dict[tuple[object, ...], list[VariantRecord]] = defaultdict(list)
        for variant in variants:
            others = frozenset((k, str(v)) for k, v in variant.options.items() if k != option)
            alike[
                variant.framework or variant.runner, variant.quantization, variant.python, others
            ].append(variant)
        for group in alike.values():
            values = {str(each.options.get(option, UNSET)) for each in group}
            if len(group) >= _LEAST and len(values) == len(group):
                found.append((option, group))
    return found


def _sweep(data: ReportData, option: str, group: list[VariantRecord], workload: str) -> Sweep:
    by_variant = data.summaries(workload, DECIDING)
    summaries = {each.id: by_variant[each.id] for each in group if each.id in by_variant}
    values = {each.id: _value(each, option) for each in group}
    best: tuple[str, ...] = ()
    known = True
    if summaries:
        best, known = best_variants(summaries, DECIDING)
    scale = scale_for(metric(DECIDING).unit, [])
    points = tuple(
        SweepPoint(
            value=values[each.id],
            variant=each.id,
            figure=str(shown(data.summary(workload, each.id, DECIDING), scale)),
            best=known and each.id in best,
        )
        for each in group
    )
    verdict = _verdict(option, [values[each] for each in best], known=known, compared=summaries)
    return Sweep(option, _base(group[0], option), workload, scale.unit, points, verdict)


def _value(variant: VariantRecord, option: str) -> str:
    if option not in variant.options:
        return _(UNSET)
    return option_text(variant.options[option])


def _base(variant: VariantRecord, option: str) -> str:
    others: list[tuple[str, Scalar]] = [(k, v) for k, v in variant.options.items() if k != option]
    options = "".join(f" {key}={option_text(value)}" for key, value in others)
    whose = f"{variant.framework}:" if variant.framework else variant.runner
    return f"{whose} {variant.quantization}{options}"


def _verdict(
    option: str, best: list[str], *, known: bool, compared: dict[str, Summary]
) -> Sentence:
    if len(compared) < _LEAST:
        return fill("Fewer than two values have a decode rate: nothing to compare.")
    first = Name(f"{option} = {best[0]}")
    if len(best) > 1:
        return fill(
            "Best by decode rate: {value}, but its 95 % interval overlaps with that of {others}: "
            "this run can't tell them apart.",
            value=first,
            others=commas(best[1:]),
        )
    if known:
        return fill("Best by decode rate: {value}.", value=first)
    return fill("Best by decode rate: {value}, with too few repetitions to be sure.", value=first)
