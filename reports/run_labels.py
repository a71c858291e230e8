"""What a report of several runs calls each of them, and the variants that they share."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from edgebench.reports.format import quantity
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.harness.results.model import MachineRecord, RunRecord

AT = " @ "
"""Between a variant's id and its run's label."""

_DAY, _MINUTE = "%Y-%m-%d", "%H:%M"
_NOISE = re.compile(
    r"\((?:R|TM|C)\)|\s@\s.*|\b(?:CPU|Processor|\d+-Core|with Radeon.*)\b", re.IGNORECASE
)


def machine_name(machine: MachineRecord) -> str:
    """A machine in a few words: its processor, without what tells nothing, such as ``(R)``."""
    return one_line(_NOISE.sub(" ", machine.cpu_model)) or one_line(machine.cpu_model)


def run_labels(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """A short name for each run, all of them different.

    The machine where there are several, the date where one machine has several runs; where all of
    those are of one day, the time in UTC. No more than it takes to tell them apart: to the minute,
    to the second, else by the run's id.
    """
    machines = _machine_names([each.machine for each in records])
    several = len(set(machines)) > 1
    alike = Counter(machines)
    dated = [not several or alike[each] > 1 for each in machines]
    labels: tuple[str, ...] = ()
    days = {_said(each, _DAY) for each, date in zip(records, dated, strict=True) if date}
    # What all have tells nothing.
    day = "" if len(days) == 1 else f"{_DAY} "
    for when in (
        partial(_said, form=_DAY),
        partial(_said, form=f"{day}{_MINUTE}"),
        partial(_said, form=f"{day}{_MINUTE}:%S"),
        _id,
    ):
        labels = tuple(
            ", ".join(
                part for part in (machine if several else "", when(record) if date else "") if part
            )
            for machine, record, date in zip(machines, records, dated, strict=True)
        )
        if len(set(labels)) == len(labels):
            return labels
    return tuple(f"{label} ({place})" for place, label in enumerate(labels, 1))


def variant_names(
    records: Sequence[RunRecord], labels: Sequence[str]
) -> tuple[dict[str, str], ...]:
    """By run, new names for its variants, so that no two in a report are called the same.

    Where the runs are of several machines, every variant says which; else only those do that
    several runs have.
    """
    several = len({each.machine.fingerprint for each in records}) > 1
    ids = [[each.id for each in (*record.variants, *record.proofs)] for record in records]
    taken = Counter(each for run in ids for each in dict.fromkeys(run))
    return tuple(
        {each: f"{each}{AT}{label}" for each in run if several or taken[each] > 1}
        for run, label in zip(ids, labels, strict=True)
    )


def _machine_names(machines: Sequence[MachineRecord]) -> list[str]:
    """Their names; of several that are called the same, with what tells them apart."""
    names = [machine_name(each) for each in machines]
    tellers: tuple[Callable[[MachineRecord], str], ...] = (
        lambda each: quantity(each.memory_bytes, "byte"),
        lambda each: f"{each.logical_cpus} CPUs",
        lambda each: one_line(each.kernel),
        lambda each: each.fingerprint[:6],
    )
    for name in set(names):
        same = [machine for own, machine in zip(names, machines, strict=True) if own == name]
        kinds = len({each.fingerprint for each in same})
        if kinds == 1:
            continue
        tell = next(
            (
                each
                for each in tellers
                if len({(each(one), one.fingerprint) for one in same}) == kinds
                and len({each(one) for one in same}) == kinds
            ),
            tellers[-1],
        )
        names = [
            f"{own}, {tell(machine)}" if own == name else own
            for own, machine in zip(names, machines, strict=True)
        ]
    return names


def _when(record: RunRecord) -> datetime | None:
    try:
        when = datetime.fromisoformat(record.created_at)
    except ValueError:
        return None
    return when.astimezone(UTC) if when.tzinfo is not None else when


def _said(record: RunRecord, form: str) -> str:
    when = _when(record)
    return when.strftime(form) if when else one_line(record.created_at)


def _id(record: RunRecord) -> str:
    return one_line(record.id)
