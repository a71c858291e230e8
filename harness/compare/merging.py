"""Several runs of the same thing as one side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.compare.differing import differing_variants
from edgebench.harness.compare.identity import differing_workload
from edgebench.harness.compare.machines import differing_machines
from edgebench.harness.compare.model import FACTS, Samples, Side, SideCell
from edgebench.harness.compare.models import refuse_other_models
from edgebench.harness.compare.refusing import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import CellKey

_APART = "Name runs of one and the same thing as a side, or compare them with each other."


def merged(sides: Sequence[Side], label: str) -> Side:
    """One side of several; the samples of each keep their blocks.

    Args:
        sides: at least one, in any order.
        label: what people call all of them together.

    Raises:
        NotComparableError: two of them are of one run, of the same blocks, or differ in the
            machine, the model, a workload, a variant, or in being a quick look. It names the two.
    """
    if len(sides) == 1:
        return replace(sides[0], label=label)
    ordered = sorted(sides, key=lambda each: each.runs[-1].created_at)
    newest = ordered[-1]
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            _refuse_twice(one, other)
    for other in reversed(ordered[:-1]):
        _refuse_unlike(newest, other)
    hashes: dict[str, str] = {}
    for side in ordered:
        hashes.update(side.hashes)
    return Side(
        label=label,
        runs=tuple(
            sorted((run for side in ordered for run in side.runs), key=lambda run: run.created_at)
        ),
        model_name=newest.model_name,
        model_source=newest.model_source,
        hashes=hashes,
        cells=_cells(ordered),
        notes=tuple(dict.fromkeys(_note(each, note) for each in ordered for note in each.notes)),
    )


def _note(side: Side, note: str) -> str:
    # A baseline goes into git, where nobody has this machine's folders.
    return f"{Path(side.label).name or side.label}: {note}"


def _refuse_twice(one: Side, other: Side) -> None:
    for mine in one.runs:
        for theirs in other.runs:
            if (mine.id, mine.created_at) == (theirs.id, theirs.created_at):
                refuse(
                    "These can't be one side: they are the same run, whose repetitions would "
                    "count twice.",
                    (one.label, mine.id),
                    (other.label, theirs.id),
                    "Name each run once.",
                )
            if mine.session == theirs.session:
                refuse(
                    "These can't be one side: they were interleaved with each other, so one is "
                    "the baseline of the other.",
                    (one.label, mine.id),
                    (other.label, theirs.id),
                    "Name one of them as the baseline and the other as the candidate.",
                )


def _refuse_unlike(newest: Side, other: Side) -> None:
    if newest.machine.fingerprint != other.machine.fingerprint:
        found = differing_machines(newest.machine, other.machine)
        refuse(
            "These can't be one side: they were measured on different machines.",
            (newest.label, ", ".join(f"{each.what} {each.baseline}" for each in found)),
            (other.label, ", ".join(f"{each.what} {each.candidate}" for each in found)),
            "Name runs of one machine; runs of several are compared with --across-machines.",
        )
    quick = [each.runs[-1].quick for each in (newest, other)]
    if quick[0] != quick[1]:
        refuse(
            "These can't be one side: one is a quick look, which is no measurement.",
            (newest.label, "quick" if quick[0] else "in full"),
            (other.label, "quick" if quick[1] else "in full"),
            "Leave the quick one out.",
        )
    refuse_other_models("These can't be one side", newest, other)
    workloads = {cell.workload.name: cell.workload for cell in other.cells.values()}
    for mine in {cell.workload.name: cell.workload for cell in newest.cells.values()}.values():
        theirs = workloads.get(mine.name)
        for what, own, else_ in differing_workload(mine, theirs) if theirs else ():
            refuse(
                f"These can't be one side: the workload {mine.name!r} differs in {what}.",
                (newest.label, own),
                (other.label, else_),
                _APART,
            )
    for key in newest.cells.keys() & other.cells.keys():
        for difference in differing_variants(newest.cells[key], other.cells[key]):
            refuse(
                f"These can't be one side: {key[0]!r} was not run alike in both, and what differs "
                f"is not averaged away: {difference.what}.",
                (newest.label, difference.baseline),
                (other.label, difference.candidate),
                _APART,
            )


def _cells(ordered: Sequence[Side]) -> dict[CellKey, SideCell]:
    """In the order of the newest; what only older ones have comes last."""
    keys = dict.fromkeys(key for side in reversed(ordered) for key in side.cells)
    return {key: _cell([side.cells[key] for side in ordered if key in side.cells]) for key in keys}


def _cell(cells: Sequence[SideCell]) -> SideCell:
    """One cell of several, the newest last."""
    newest = cells[-1]
    statuses = {each.status for each in cells}
    measured = [each for each in cells if each.metrics]
    failures = [each.failure for each in cells if each.failure is not None]
    keys = dict.fromkeys(key for each in reversed(cells) for key in each.metrics)
    return SideCell(
        variant=newest.variant,
        workload=newest.workload,
        status="ok"
        if statuses == {"ok"}
        else "partial"
        if measured
        else "failed"
        if failures
        else "not_run",
        metrics={
            key: _samples(key, newest, [each.metrics[key] for each in cells if key in each.metrics])
            for key in keys
        },
        windows=next((each.windows for each in reversed(cells) if each.windows), ()),
        flags=tuple(dict.fromkeys(flag for each in cells for flag in each.flags)),
        failure=failures[-1] if failures else None,
        n=sum(each.n for each in cells),
        n_failed=sum(each.n_failed for each in cells),
    )


def _samples(key: str, cell: SideCell, found: Sequence[Samples]) -> Samples:
    present = [each for each in found if each.values]
    if not present:
        return found[-1]
    newest = present[-1]
    # What is known, not sampled, is the same in all of them; a text's windows are the newest's.
    if key in FACTS or cell.workload.kind == "quality":
        return newest
    odd = next((each for each in present if each.unit != newest.unit), None)
    if odd is not None:
        reason = f"its runs are in different units, {odd.unit} and {newest.unit}"
        return Samples((), (), newest.unit, newest.source, reason)
    if len({each.source == "estimated" for each in present}) > 1:
        reason = "it is estimated in some of its runs and measured in others"
        return Samples((), (), newest.unit, newest.source, reason)
    meters = list(dict.fromkeys(each.meter for each in present))
    named = [each for each in meters if each is not None]
    if len(named) > 1:
        reason = f"its runs are of different meters, {' and '.join(named)}"
        return Samples((), (), newest.unit, newest.source, reason)
    return Samples(
        values=tuple(value for each in present for value in each.values),
        blocks=tuple(block for each in present for block in each.blocks),
        unit=newest.unit,
        source=newest.source,
        # Where one of them does not tell, it is not known of all.
        meter=meters[0] if len(meters) == 1 else None,
    )
