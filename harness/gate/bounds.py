"""Limits on the candidate alone: a ceiling or a floor for its median."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from edgebench.harness.compare.model import FACTS
from edgebench.harness.gate.model import Check
from edgebench.harness.gate.wording import amounts
from edgebench.harness.metrics.definitions import metric
from edgebench.harness.metrics.statistics import Interval, median, median_interval

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Samples, SideCell
    from edgebench.harness.gate.limits import Asked
    from edgebench.harness.gate.model import Status

QUALITY: Final = frozenset(
    {
        "perplexity",
        "perplexity_ratio",
        "bits_per_byte",
        "kl_divergence",
        "kl_divergence_p99",
        "top1_agreement",
    }
)
"""Exact on their text: a bound on one is on this text, and nothing is left to chance."""

Side = Literal["at_most", "at_least"]


def bound_check(name: str, cell: SideCell, key: str, asked: Asked, kind: Side) -> Check:
    """Hold the candidate's median against a bound.

    The bound is broken where the median is beyond it and the 95 % interval of the median does not
    reach back to it; undecided where the interval holds the bound. Without an interval (few
    blocks), the median alone decides.

    Args:
        name: the cell's.
        cell: the candidate's.
        key: the metric's.
        asked: with such a bound.
        kind: which one.
    """
    bound = asked.at_most if kind == "at_most" else asked.at_least
    assert bound is not None
    samples = cell.metrics[key]
    unit, label = metric(key).unit or samples.unit, metric(key).label
    estimated = samples.source == "estimated" and bool(samples.values)
    if estimated:
        label += " (estimated)"
    value: float | None = None
    detail = ""
    status: Status = "undecided"
    if not samples.values:
        message = f"{label} is not measured: {samples.reason or 'no repetition has it'}"
    elif samples.unit != unit:
        message = f"{label} is in {samples.unit}, and the bound in {unit}"
    else:
        value = median(samples.values)
        status, detail = _held(samples, value, bound, kind, exact=key in FACTS | QUALITY)
        shown, limit = amounts((value, bound), unit)
        message = f"{label} is {shown}, {_words(kind)} {limit}"
        if status == "undecided":
            message += "; its interval holds both sides"
    return Check(
        cell=name,
        metric=key,
        kind=kind,
        status=status,
        severity=asked.severity,
        message=message,
        limit=bound,
        value=value,
        unit=unit,
        confidence=asked.confidence,
        detail=detail,
        estimated=estimated,
    )


def _words(kind: Side) -> str:
    return "and may be at most" if kind == "at_most" else "and must be at least"


def _held(
    samples: Samples, value: float, bound: float, kind: Side, *, exact: bool
) -> tuple[Status, str]:
    beyond = value > bound if kind == "at_most" else value < bound
    if exact:
        return ("fail" if beyond else "pass"), ""
    interval = _interval(samples)
    if interval.low is None or interval.high is None:
        detail = f"the median decides by itself: {interval.reason}"
        return ("fail" if beyond else "pass"), detail
    low, high = amounts((interval.low, interval.high), samples.unit)
    detail = f"95 % interval of the median {low} to {high}"
    # On the bound is within it, so only the other end may cross.
    crosses = interval.low <= bound if kind == "at_most" else interval.high >= bound
    reaches = interval.high > bound if kind == "at_most" else interval.low < bound
    if crosses and reaches:
        return "undecided", detail
    return ("fail" if beyond else "pass"), detail


def _interval(samples: Samples) -> Interval:
    names = {block: number for number, block in enumerate(dict.fromkeys(samples.blocks))}
    return median_interval(samples.values, [names[block] for block in samples.blocks])
