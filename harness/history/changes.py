"""Where a series of runs changed, and whether it drifted.

The series is cut into stretches that stay on one level, or climb or fall steadily. Each cut and
each slope then has to prove itself, against all the others that could have been found by chance.
See docs/decisions/0021-history.md for the choice, docs/history.md for how often it is right.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history.drifts import with_lines
from edgebench.harness.history.findings import Change, Findings
from edgebench.harness.history.segments import SHORTEST, cuts, prepared
from edgebench.harness.history.stretches import Stretch, end_of, is_news, noise_around

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.history.segments import Noise, Prepared

CONFIDENCE = 0.99
FAMILY = 40
"""Series in a history, at least, over all of which a false alarm is as rare as `CONFIDENCE` says.
As a least one, so that a series by itself says what it says among others."""

MOST_RUNS = 200
"""The newest of a series, that are looked at."""

MOST_FAILED = 2
"""Numbers of levels in a row that may fail before no more are tried: a bump takes two cuts, of
which the first alone may prove nothing."""

_TRIES = 5
"""Steps and drift are two tries; and heavy tails make p's of steps up to four times too small."""


def find(
    values: Sequence[float], *, family: int = FAMILY, confidence: float = CONFIDENCE
) -> Findings:
    """Look for steps and drift in the medians of runs, oldest first.

    Args:
        values: one for each run, finite. At most the newest `MOST_RUNS` are looked at, and places
            count from the first of all.
        family: how many series are looked at together; taken as `FAMILY` at least.
        confidence: the share of histories of equals that show nothing at all.
    """
    if len(values) < 2 * SHORTEST:
        return Findings(reason=f"fewer than {2 * SHORTEST} runs")
    skipped = max(0, len(values) - MOST_RUNS)
    series = prepared(values[skipped:])
    tries = _TRIES * max(family, FAMILY)
    alpha = 1 - confidence
    edges = _proven(series, tries, alpha)
    stretches = [Stretch(*each) for each in pairwise(edges)]
    stretches, drifts = with_lines(series, stretches, tries, alpha)
    noise = noise_around(series, stretches)
    changes = []
    for place in range(len(stretches) - 1):
        change = _step(series, stretches[place], stretches[place + 1], noise, tries)
        if change.p <= alpha and is_news(series, change.before, change.after):
            changes.append(change)
    return Findings(
        tuple(each.later(skipped) for each in changes),
        tuple(each.later(skipped) for each in drifts),
        noise.one,
    )


def _proven(series: Prepared, tries: int, alpha: float) -> list[int]:
    """The most levels of which every one is told from its neighbours with certainty."""
    proven, failed = [0, len(series.y)], 0
    for edges in cuts(series):
        noise = series.noise(edges)
        if all(
            _chance(series, noise, *each) * (len(edges) - 1) * tries <= alpha
            for each in zip(edges, edges[1:], edges[2:], strict=False)
        ):
            proven, failed = edges, 0
        else:
            failed += 1
        if failed == MOST_FAILED:
            break
    return proven


def _chance(series: Prepared, noise: Noise, left: int, at: int, right: int) -> float:
    """The p of a step, for all places where these two neighbours could have been cut apart."""
    shift = series.mean(at, right) - series.mean(left, at)
    error = noise.of_difference(at - left, right - at)
    return noise.chance(shift / error) * _splits(left, right)


def _splits(left: int, right: int) -> int:
    """In how many places two neighbours could have been cut apart."""
    return max(1, right - left - 2 * SHORTEST + 1)


def _step(series: Prepared, left: Stretch, right: Stretch, noise: Noise, tries: int) -> Change:
    before, unsure = end_of(series, left, at_end=True)
    after, also = end_of(series, right, at_end=False)
    shift = after - before
    error = noise.slack(unsure + also)
    p = min(1.0, noise.chance(abs(shift) / error) * _splits(left.start, right.end) * tries)
    ratio = low = high = None
    if series.logarithmic:
        half = noise.quantile(0.975) * error
        ratio, low, high = (float(np.exp(each)) for each in (shift, shift - half, shift + half))
    earliest, latest = left.end, left.end
    if not left.sloped and not right.sloped:
        earliest, latest = series.places(left.start, left.end, right.end, noise)
    return Change(
        at=left.end,
        earliest=earliest,
        latest=latest,
        start=left.start,
        end=right.end,
        before=series.value(before),
        after=series.value(after),
        ratio=ratio,
        low=low,
        high=high,
        p=p,
    )
