"""What two cells did not run alike: options, versions, artifacts. Named, never averaged away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.identity import HASH_DIGITS
from edgebench.harness.compare.machines import ABSENT
from edgebench.harness.compare.model import Differing
from edgebench.harness.metrics.definitions import metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edgebench.harness.compare.model import Side, SideCell
    from edgebench.harness.results.measured import Scalar
    from edgebench.harness.results.model import Artifact, TaskEngine, VariantRecord

EDGEBENCH: Final = "edgebench"
THE_TOOL: Final = "the framework's own tool"


def option_text(value: Scalar) -> str:
    """An option's value as people write it in a scenario."""
    if value is None:
        return ABSENT
    return str(value).lower() if isinstance(value, bool) else str(value)


def differing_variants(baseline: SideCell, candidate: SideCell) -> Iterator[Differing]:
    """What the variants of two cells differ in, on these cells' workloads.

    Options count as they were in effect, so one that is asked for on one side only and is the
    other's default is no difference; where a framework did not say, as they were asked for.
    """
    mine, theirs = baseline.variant, candidate.variant
    for what, own, else_ in (
        ("runner", mine.runner, theirs.runner),
        ("quantization", mine.quantization, theirs.quantization),
    ):
        if own != else_:
            yield Differing(what, own, else_, "option")
    yield from _options(baseline, candidate)
    own_tokens, else_tokens = mine.context_tokens, theirs.context_tokens
    if own_tokens is not None and else_tokens is not None and own_tokens != else_tokens:
        yield Differing("context tokens", str(own_tokens), str(else_tokens), "option")
    yield from _engines(baseline, candidate)
    yield from _timed_by(baseline, candidate)
    if mine.framework != theirs.framework:
        own_text, else_text = mine.framework or ABSENT, theirs.framework or ABSENT
        yield Differing("whose figures these are", own_text, else_text, "version")
    if mine.python and theirs.python and mine.python != theirs.python:
        yield Differing("the interpreter", mine.python, theirs.python, "version")
    if mine.artifact and theirs.artifact and mine.artifact.sha256 != theirs.artifact.sha256:
        own_text, else_text = _artifact(mine.artifact), _artifact(theirs.artifact)
        yield Differing("the artifact", own_text, else_text, "artifact")


def differing_runs(baseline: Side, candidate: Side) -> Iterator[Differing]:
    """What all runs of one side have otherwise than those of the other."""
    mine = _several(run.edgebench_version for run in baseline.runs)
    theirs = _several(run.edgebench_version for run in candidate.runs)
    if mine != theirs:
        yield Differing("edgebench's version", mine, theirs, "version")
    mine = _several(run.machine.python for run in baseline.runs)
    theirs = _several(run.machine.python for run in candidate.runs)
    if mine != theirs:
        yield Differing("edgebench's Python", mine, theirs, "version")


def _several(values: Iterator[str]) -> str:
    return ", ".join(sorted(set(values)))


def _options(baseline: SideCell, candidate: SideCell) -> Iterator[Differing]:
    mine, theirs = _in_effect(baseline), _in_effect(candidate)
    if not (_effective(baseline) and _effective(candidate)):
        mine, theirs = baseline.variant.options, candidate.variant.options
    for name in dict.fromkeys([*theirs, *mine]):
        own, else_ = (option_text(each.get(name)) for each in (mine, theirs))
        if own != else_:
            yield Differing(name, own, else_, "option")


def _in_effect(cell: SideCell) -> Mapping[str, Scalar]:
    return {**cell.variant.options, **_effective(cell)}


def _effective(cell: SideCell) -> Mapping[str, Scalar]:
    task = _task(cell)
    return cell.variant.effective_options if task is None else task.effective_options


def _task(cell: SideCell) -> TaskEngine | None:
    """What runs the workload where that is a task, which has an engine of its own."""
    name = cell.workload.task
    return cell.variant.tasks.get(name) if name is not None else None


def _engines(baseline: SideCell, candidate: SideCell) -> Iterator[Differing]:
    mine, theirs = _engine(baseline), _engine(candidate)
    if None in mine or None in theirs:
        return  # What could not be prepared does not say what it is.
    if mine[0] != theirs[0]:
        yield Differing("the engine", str(mine[0]), str(theirs[0]), "version")
    if mine[1] != theirs[1]:
        what = f"{theirs[0]}'s version" if mine[0] == theirs[0] else "the engine's version"
        yield Differing(what, str(mine[1]), str(theirs[1]), "version")


def _engine(cell: SideCell) -> tuple[str | None, str | None]:
    task = _task(cell)
    if task is not None:
        return task.engine, task.engine_version
    variant: VariantRecord = cell.variant
    return variant.engine, variant.engine_version


def _timed_by(baseline: SideCell, candidate: SideCell) -> Iterator[Differing]:
    """Figures that a framework's own tool told on one side only: it may count otherwise."""
    told: dict[tuple[bool, bool], list[str]] = {}
    for key, mine in baseline.metrics.items():
        theirs = candidate.metrics.get(key)
        if theirs is not None and mine.values and theirs.values:
            who = (mine.source == "engine", theirs.source == "engine")
            told.setdefault(who, []).append(metric(key).label.lower())
    for who, names in told.items():
        if who[0] != who[1]:
            own, else_ = (THE_TOOL if each else EDGEBENCH for each in who)
            yield Differing(f"who measured {', '.join(names)}", own, else_, "version")


def _artifact(artifact: Artifact) -> str:
    return f"{artifact.name}, sha256 {artifact.sha256[:HASH_DIGITS]}"
