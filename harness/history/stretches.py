"""Parts of a series, each on one level or along a line, and the noise around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history import trend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.history.segments import Noise, Prepared

LEAST_CHANGE = 0.005
"""A share below which a change is no news, however certain."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs `start` to `end`, the end left out, on one level or along a line."""

    start: int
    end: int
    sloped: bool = False


def noise_around(series: Prepared, stretches: Sequence[Stretch]) -> Noise:
    """How runs vary around the levels and lines that a series is made of."""
    rest = np.concatenate(
        [
            trend.residuals(series.y[each.start : each.end])
            if each.sloped
            else series.y[each.start : each.end] - series.mean(each.start, each.end)
            for each in stretches
        ]
    )
    taken = sum(2 if each.sloped else 1 for each in stretches)
    return series.noise_of(rest, taken)


def end_of(series: Prepared, stretch: Stretch, *, at_end: bool) -> tuple[float, float]:
    """The level at a stretch's end, and its variance where that of one run is 1."""
    count = stretch.end - stretch.start
    if not stretch.sloped:
        return series.mean(stretch.start, stretch.end), 1 / count
    first, last = trend.ends(series.y[stretch.start : stretch.end])
    # Of a fitted line, the value at its end is four times as uncertain as the mean.
    return (last if at_end else first), 4 / count


def is_news(series: Prepared, before: float, after: float) -> bool:
    """Whether a change is large enough to be told."""
    size = max(abs(before), abs(after)) if not series.logarithmic else abs(before)
    return abs(after - before) >= LEAST_CHANGE * size > 0
