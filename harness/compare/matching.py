"""Which cell of the candidate is compared with which of the baseline, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from edgebench.harness.compare.differing import differing_runs, differing_variants
from edgebench.harness.compare.identity import TESTING_RUNNER, differing_workload
from edgebench.harness.compare.machines import differing_machines
from edgebench.harness.compare.model import Matched, Pair
from edgebench.harness.compare.models import differing_model, refuse_other_models
from edgebench.harness.compare.refusing import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from edgebench.harness.compare.model import Differing, Side, SideCell
    from edgebench.harness.results.measured import Scalar
    from edgebench.harness.results.model import MachineRecord, VariantRecord

    Variants: TypeAlias = Mapping[str, VariantRecord]

_CANNOT = "These can't be compared"


def match(baseline: Side, candidate: Side, *, across_machines: bool = False) -> Matched:
    """Find the cells that both sides have.

    Cells match by what was run: the runner, the quantisation, the options as they were asked for,
    and the workload. What is left is matched by its place in the scenario where the two were
    interleaved, then by the variant's name, then where it is the only one left of its runner and
    quantisation. What two matched cells did not run alike is named.

    Args:
        baseline: what is compared with.
        candidate: what is compared.
        across_machines: allow two machines; the result is labelled with both.

    Raises:
        NotComparableError: the two are of one run, of different machines or models, of different
            workloads of one name, or have nothing in common. It names both, what differs and what
            to do.
    """
    interleaved = _refuse_itself(baseline, candidate)
    _refuse_testing(baseline, candidate)
    _refuse_quick(baseline, candidate)
    across = _across(baseline, candidate, allowed=across_machines)
    everywhere = [*differing_machines(baseline.machine, candidate.machine)]
    on_purpose = interleaved and any(run.difference for run in (*baseline.runs, *candidate.runs))
    if on_purpose:
        model = differing_model(baseline, candidate)
        everywhere += [model] if model is not None else []
    else:
        refuse_other_models(_CANNOT, baseline, candidate)
    everywhere += differing_runs(baseline, candidate)
    _refuse_other_workloads(baseline, candidate)
    partner = _variants_matched(_variants(baseline), _variants(candidate), interleaved=interleaved)
    pairs, added = _pairs(baseline, candidate, partner)
    if not pairs:
        refuse(
            f"{_CANNOT}: they have no cell in common.",
            (baseline.label, _names(baseline)),
            (candidate.label, _names(candidate)),
            "Compare runs of the same scenario; a variant is found again by its runner, its "
            "quantisation and its options, or by its name.",
        )
    common = _common(pairs)
    taken = {pair.baseline.key for pair in pairs}
    return Matched(
        baseline=baseline,
        candidate=candidate,
        pairs=tuple(
            replace(pair, differing=tuple(each for each in pair.differing if each not in common))
            for pair in pairs
        ),
        vanished=tuple(cell for key, cell in baseline.cells.items() if key not in taken),
        added=tuple(added),
        differing=(*everywhere, *common),
        across_machines=across,
        interleaved=interleaved,
    )


def _refuse_itself(baseline: Side, candidate: Side) -> bool:
    """Raise where a run is on both sides; whether the two were interleaved with each other."""
    ours = {(run.id, run.created_at): run for run in baseline.runs}
    for run in candidate.runs:
        if (run.id, run.created_at) in ours:
            refuse(
                f"{_CANNOT}: the same run is on both sides.",
                (baseline.label, run.id),
                (candidate.label, run.id),
                "Name another run as the candidate. What a machine's noise looks like, `edgebench "
                "noise SCENARIO` shows.",
            )
    return bool({run.session for run in baseline.runs} & {run.session for run in candidate.runs})


def _refuse_testing(baseline: Side, candidate: Side) -> None:
    testing = [any(run.testing for run in side.runs) for side in (baseline, candidate)]
    if testing[0] != testing[1]:
        refuse(
            f"{_CANNOT}: the runner {TESTING_RUNNER!r} makes its figures up.",
            (baseline.label, _runners(baseline)),
            (candidate.label, _runners(candidate)),
            "Compare runs of frameworks with runs of frameworks.",
        )


def _refuse_quick(baseline: Side, candidate: Side) -> None:
    quick = [any(run.quick for run in side.runs) for side in (baseline, candidate)]
    if quick[0] != quick[1]:
        refuse(
            f"{_CANNOT}: one is a quick look, which is no measurement, and the other is not.",
            (baseline.label, "quick" if quick[0] else "in full"),
            (candidate.label, "quick" if quick[1] else "in full"),
            "Run the quick one again without --quick.",
        )


def _across(baseline: Side, candidate: Side, *, allowed: bool) -> str:
    """What to label everything with; raise where another machine was not asked for."""
    mine, theirs = baseline.machine, candidate.machine
    if mine.fingerprint == theirs.fingerprint:
        return ""
    if not allowed:
        found = differing_machines(mine, theirs)
        refuse(
            f"{_CANNOT}: they were measured on different machines, or on one that was set up "
            "otherwise.",
            (baseline.label, ", ".join(f"{each.what} {each.baseline}" for each in found)),
            (candidate.label, ", ".join(f"{each.what} {each.candidate}" for each in found)),
            "Compare runs of one machine; or give --across-machines, and read every difference as "
            "one of machines too.",
        )
    return f"across machines: {_machine(mine)} → {_machine(theirs)}"


def _machine(machine: MachineRecord) -> str:
    return f"{machine.cpu_model} ({machine.fingerprint[:8]})"


def _refuse_other_workloads(baseline: Side, candidate: Side) -> None:
    ours = {cell.workload.name: cell.workload for cell in baseline.cells.values()}
    for theirs in {cell.workload.name: cell.workload for cell in candidate.cells.values()}.values():
        mine = ours.get(theirs.name)
        for what, own, else_ in differing_workload(mine, theirs) if mine else ():
            refuse(
                f"{_CANNOT}: the workload {theirs.name!r} is another one in each: the two differ "
                f"in {what}.",
                (baseline.label, own),
                (candidate.label, else_),
                "Give one of the workloads another name, or run one of them again as the other is.",
            )


def _variants(side: Side) -> dict[str, VariantRecord]:
    return {cell.variant.id: cell.variant for cell in side.cells.values()}


def _variants_matched(
    baseline: Variants, candidate: Variants, *, interleaved: bool
) -> dict[str, str]:
    """Of the candidate's variants those of the baseline, by id; each at most once."""
    places = {
        id(each): place
        for side in (baseline, candidate)
        for place, each in enumerate(side.values())
    }
    steps: list[Callable[[VariantRecord], Hashable]] = [
        lambda each: (each.id, _asked(each)),
        _asked,
        lambda each: each.id,
        lambda each: (each.runner, each.quantization),
    ]
    if interleaved and len(baseline) == len(candidate):
        steps.insert(2, lambda each: places[id(each)])
    found: dict[str, str] = {}
    for step in steps:
        ours = [each for each in baseline.values() if each.id not in set(found.values())]
        theirs = [each for each in candidate.values() if each.id not in found]
        found |= _alike(ours, theirs, step)
    return found


def _alike(
    baseline: Sequence[VariantRecord],
    candidate: Sequence[VariantRecord],
    what: Callable[[VariantRecord], Hashable],
) -> dict[str, str]:
    """Those that are the only ones of their kind on both sides; two that would share one don't."""
    ours = Counter(map(what, baseline))
    theirs = Counter(map(what, candidate))
    by_kind = {what(each): each.id for each in baseline}
    return {
        each.id: by_kind[what(each)]
        for each in candidate
        if ours[what(each)] == 1 and theirs[what(each)] == 1
    }


def _asked(variant: VariantRecord) -> Hashable:
    options = frozenset((name, _value(value)) for name, value in variant.options.items())
    return (variant.runner, variant.quantization, options)


def _value(value: Scalar) -> Hashable:
    """Equal for 2 and 2.0, not for 1 and true."""
    return (type(value) is bool, value)


def _pairs(
    baseline: Side, candidate: Side, partner: Mapping[str, str]
) -> tuple[list[Pair], list[SideCell]]:
    pairs: list[Pair] = []
    added: list[SideCell] = []
    for (variant, workload), cell in candidate.cells.items():
        other = partner.get(variant)
        ours = baseline.cells.get((other, workload)) if other is not None else None
        if ours is None:
            added.append(cell.counted())
        else:
            differing = tuple(differing_variants(ours, cell))
            pairs.append(Pair(ours.counted(), cell.counted(), differing))
    return pairs, added


def _common(pairs: Sequence[Pair]) -> tuple[Differing, ...]:
    """What differs alike in every pair."""
    first, *others = pairs
    return tuple(
        each for each in first.differing if all(each in other.differing for other in others)
    )


def _names(side: Side) -> str:
    most = 4
    names = [f"{variant} / {workload}" for variant, workload in side.cells]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "no cell"


def _runners(side: Side) -> str:
    return ", ".join(dict.fromkeys(cell.variant.runner for cell in side.cells.values()))
