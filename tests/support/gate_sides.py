"""Sides with made-up samples for gates: each metric's values on both sides, a block each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gate_sample

from edgebench.harness.compare.model import Matched, Pair, Samples, SideCell
from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.quality import WindowRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.model import WorkloadRecord

NOISE = (0.3, -0.8, 0.1, 0.9, -0.4, 0.6, -1.0, 0.2, -0.1, 0.7, -0.6, 0.4)
"""Without a pattern; in percent of what it is put on."""


def samples(values: Sequence[float], key: str = "decode_rate", *, session: str = "s") -> Samples:
    """These values, each in a block of its own."""
    blocks = tuple((session, place) for place in range(len(values)))
    return Samples(tuple(values), blocks, metric(key).unit, "observed")


def lacking(key: str, reason: str = "no sensor is readable") -> Samples:
    """A metric that the run speaks of, without a value."""
    return Samples((), (), metric(key).unit, "observed", reason)


def around(value: float, *, count: int = 12, noise: float = 1.0, turned: int = 0) -> list[float]:
    """So many values, each at most `noise` percent off; `turned` changes which is how far."""
    return [
        value * (1 + noise / 100 * NOISE[(place + turned) % len(NOISE)]) for place in range(count)
    ]


def cell(name: str = "mnn int4 / chat", status: str = "ok", **changes: Any) -> SideCell:
    """A cell by its name; `metrics` may be plain values by key."""
    variant, _, workload = name.partition(" / ")
    made = gate_sample.cell(variant, workload, status)
    record = made.variant.model_copy(update={"runner": variant.split()[0]})
    return replace(made, variant=record, **changes)


def both(
    name: str = "mnn int4 / chat",
    *,
    apart: bool = False,
    workload: WorkloadRecord | None = None,
    **values: tuple[Sequence[float], Sequence[float]],
) -> Pair:
    """A cell on both sides.

    Args:
        name: the cell's.
        apart: whether the two were measured at different times, so that nothing is a pair.
        workload: in place of a plain one.
        values: by metric the baseline's and the candidate's.
    """
    one, other = cell(name), cell(name)
    if workload is not None:
        one, other = replace(one, workload=workload), replace(other, workload=workload)
    mine = {key: samples(each[0], key) for key, each in values.items()}
    theirs = {
        key: samples(each[1], key, session="t" if apart else "s") for key, each in values.items()
    }
    return Pair(replace(one, metrics=mine), replace(other, metrics=theirs))


def matched(*pairs: Pair, **changes: Any) -> Matched:
    """Two sides of these cells."""
    made = Matched(
        gate_sample.side("baseline", (each.baseline for each in pairs)),
        gate_sample.side("candidate", (each.candidate for each in pairs)),
        pairs,
        interleaved=True,
    )
    return replace(made, **changes)


def windows(logs: Sequence[float]) -> tuple[WindowRecord, ...]:
    """Windows of ten scored tokens, of these mean log-likelihoods."""
    return tuple(
        WindowRecord(tokens=10, log_likelihood=10 * each, bytes=40, duration_s=0.1) for each in logs
    )


def metrics(values: Mapping[str, Sequence[float]]) -> dict[str, Samples]:
    """Samples by metric."""
    return {key: samples(each, key) for key, each in values.items()}
