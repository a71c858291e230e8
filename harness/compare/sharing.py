"""What several workloads of one variant share: it was measured once, and is asked and told once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.model import FACTS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from edgebench.harness.compare.model import Pair

OF_LOADS: Final = frozenset({"load_s", "load_cold_s", "task_load_s", "baseline_rss_bytes"})
"""Metrics of a variant's loads, which belong to each of its workloads."""


def shared_key(pair: Pair, metric: str) -> Hashable | None:
    """What two pairs have alike where they share one metric's samples.

    None of a metric that each workload has of its own, and where a side has no value. Two workloads
    of which only one was in an older run do not share their loads: their samples differ.
    """
    if metric not in OF_LOADS and metric not in FACTS:
        return None
    mine, theirs = pair.baseline.metrics.get(metric), pair.candidate.metrics.get(metric)
    if mine is None or theirs is None or not mine.values or not theirs.values:
        return None
    variants = (pair.baseline.variant.id, pair.candidate.variant.id)
    return (*variants, metric, mine.blocks, mine.values, theirs.blocks, theirs.values)
