"""Lines in place of stairs: a slow drift is cut into stairs by whoever looks for steps alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history import trend
from edgebench.harness.history.findings import Drift
from edgebench.harness.history.segments import SHORTEST
from edgebench.harness.history.stretches import Stretch, is_news, noise_around

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.history.segments import Prepared


def with_lines(
    series: Prepared, stretches: Sequence[Stretch], tries: int, alpha: float
) -> tuple[list[Stretch], list[Drift]]:
    """Put a line in place of neighbouring levels that look like its stairs, as long as that helps.

    Args:
        series: all of it.
        stretches: its levels, which may be one.
        tries: by which a p is multiplied, besides by the spans that a line could be over.
        alpha: the p of a drift, at most.

    Returns:
        The stretches with the lines, and the drifts that these are, both oldest first.
    """
    drifts: list[Drift] = []
    stretches = list(stretches)
    # Ends: each round leaves fewer levels, and no line is replaced.
    while True:
        spans = len(stretches) * (len(stretches) + 1) // 2
        chosen = _best(series, stretches, tries * spans, alpha)
        if chosen is None:
            return stretches, sorted(drifts, key=lambda each: each.start)
        first, last, drift = chosen
        before, after = stretches[:first], stretches[last + 1 :]
        # Its ends were those of stairs, which are not where a line begins.
        start, end = _ends(series, before[-1:], drift, after[:1])
        drift = _certain(series, start, end, tries * spans, alpha) or drift
        drifts.append(drift)
        line = Stretch(drift.start, drift.last + 1, sloped=True)
        stretches = [
            *before[:-1],
            *(replace(each, end=line.start) for each in before[-1:]),
            line,
            *(replace(each, start=line.end) for each in after[:1]),
            *after[1:],
        ]


def _best(
    series: Prepared, stretches: Sequence[Stretch], tries: int, alpha: float
) -> tuple[int, int, Drift] | None:
    """The line that explains most, in place of the stretches from one to another."""
    noise = noise_around(series, stretches)
    gains: list[tuple[float, int, int]] = []
    for first in range(len(stretches)):
        for last in range(first, len(stretches)):
            part = stretches[first : last + 1]
            if not any(each.sloped for each in part):
                edges = [*(each.start for each in part), part[-1].end]
                gains.append((trend.gain(series, edges, noise.one), first, last))
    for gain, first, last in sorted(gains, key=lambda each: each[0], reverse=True):
        if gain <= 0:
            return None
        start, end = stretches[first].start, stretches[last].end
        drift = _certain(series, start, end, tries, alpha)
        if drift is not None:
            return first, last, drift
    return None


def _certain(series: Prepared, start: int, end: int, tries: int, alpha: float) -> Drift | None:
    """The drift of these runs, where it is certain and large enough to be told."""
    line = trend.line(series, start, end)
    if line is None:
        return None
    p = min(1.0, line.chance * tries)
    before, after = series.value(line.first), series.value(line.last)
    if p > alpha or not is_news(series, before, after):
        return None
    ratio = low = high = None
    if series.logarithmic:
        ratio, low, high = (float(np.exp(each)) for each in (line.total, line.low, line.high))
    return Drift(start, end - 1, before, after, ratio, low, high, p)


def _ends(
    series: Prepared, before: Sequence[Stretch], drift: Drift, after: Sequence[Stretch]
) -> tuple[int, int]:
    """Where a drift begins and ends, for the least squares with the levels beside it."""
    start, end = drift.start, drift.last + 1
    for left in before:
        if not left.sloped:
            places = range(left.start + SHORTEST, end - trend.SHORTEST_DRIFT + 1)
            start = min(
                places,
                key=lambda place: series.squares(left.start, place) + _off(series, place, end),
                default=start,
            )
    for right in after:
        if not right.sloped:
            places = range(start + trend.SHORTEST_DRIFT, right.end - SHORTEST + 1)
            end = min(
                places,
                key=lambda place: _off(series, start, place) + series.squares(place, right.end),
                default=end,
            )
    return start, end


def _off(series: Prepared, start: int, end: int) -> float:
    """The sum of squares around the line of least squares."""
    rest = trend.residuals(series.y[start:end])
    return float(rest @ rest)
