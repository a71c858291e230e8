"""Where a series of runs changed, and whether it drifted.

The series is cut into stretches that stay on one level, or climb or fall steadily. Each cut and
each slope then has to prove itself, against all the others that could have been found by chance.
See docs/decisions/0021-history.md for the choice, docs/history.md for how often it is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history import trend
from edgebench.harness.history.segments import SHORTEST, Noise, cuts, prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.history.segments import Prepared

CONFIDENCE = 0.99
FAMILY = 40
"""Series in a history, at least, over all of which a false alarm is as rare as `CONFIDENCE` says.
As a least one, so that a series by itself says what it says among others."""

MOST_RUNS = 200
"""The newest of a series, that are looked at."""

LEAST_CHANGE = 0.005
"""A share below which a change is no news, however certain."""

MOST_FAILED = 2
"""Numbers of levels in a row that may fail before no more are tried: a bump takes two cuts, of
which the first alone may prove nothing."""

_TRIES = 5
"""Steps and drift are two tries; and heavy tails make p's of steps up to four times too small."""


@dataclass(frozen=True, slots=True)
class Change:
    """A step: from one run on, the values are on another level.

    Attributes:
        at: the run, by its place in the series, that is most likely the first after the change.
        earliest, latest: between which that run is with 95 % certainty.
        start, end: the runs before the change are `start` to `at`, those after it `at` to `end`,
            the end left out.
        before, after: the levels: means of logarithms, outliers clipped, as values.
        ratio, low, high: after / before with its 95 % interval; None where a value is not above 0.
        p: the chance that a history of equals would show such a step anywhere.
    """

    at: int
    earliest: int
    latest: int
    start: int
    end: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow climb or fall, of which no single step stands out.

    Attributes:
        start, last: the first and the last run of it, by their places in the series.
        before, after: the line's values there.
        ratio, low, high, p: as those of a `Change`, over the whole span.
    """

    start: int
    last: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What a series says.

    Attributes:
        changes, drifts: oldest first.
        spread: how much one run differs from the next where nothing changed, as a share: the
            standard deviation of the logarithms; None where there are too few runs.
        reason: why nothing could be looked for; None where it could.
    """

    changes: tuple[Change, ...] = ()
    drifts: tuple[Drift, ...] = ()
    spread: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Runs `start` to `end`, the end left out, on one level or along a line."""

    start: int
    end: int
    sloped: bool = False


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
    stretches = [_Stretch(*each) for each in pairwise(edges)]
    stretches, drifts = _sloped(series, stretches, tries, alpha)
    noise = _noise(series, stretches)
    changes = []
    for place in range(len(stretches) - 1):
        change = _step(series, stretches[place], stretches[place + 1], noise, tries)
        if change.p <= alpha and _told(series, change.before, change.after):
            changes.append(change)
    return _placed(changes, drifts, noise.one, skipped)


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


def _sloped(
    series: Prepared, stretches: list[_Stretch], tries: int, alpha: float
) -> tuple[list[_Stretch], list[Drift]]:
    """Put a line in place of neighbours that look like the stairs of one, as long as that helps.

    A slow drift is cut into stairs by whoever looks for steps alone.
    """
    drifts: list[Drift] = []
    taken: set[tuple[int, int]] = set()
    while True:
        best: tuple[float, int, int, Drift] | None = None
        spans = len(stretches) * (len(stretches) + 1) // 2
        noise = _noise(series, stretches)
        for first in range(len(stretches)):
            for last in range(first, len(stretches)):
                part = stretches[first : last + 1]
                span = (part[0].start, part[-1].end)
                if any(each.sloped for each in part) or span in taken:
                    continue
                gain = trend.gain(series, [each.start for each in part] + [span[1]], noise.one)
                if gain <= 0 or (best is not None and gain <= best[0]):
                    continue
                drift = _drift(series, *span, tries * spans)
                if drift is not None and drift.p <= alpha:
                    best = (gain, first, last, drift)
        if best is None:
            return stretches, sorted(drifts, key=lambda each: each.start)
        _gain, first, last, drift = best
        taken.add((drift.start, drift.last + 1))
        before, after = stretches[:first], stretches[last + 1 :]
        # Its ends were those of stairs, which are not where a line begins.
        start, end = _refined(series, before[-1:], drift, after[:1])
        moved = _drift(series, start, end, tries * spans)
        if moved is not None and moved.p <= alpha:
            drift = moved
            before = [
                *before[:-1],
                *(_Stretch(each.start, start, each.sloped) for each in before[-1:]),
            ]
            after = [*(_Stretch(end, each.end, each.sloped) for each in after[:1]), *after[1:]]
        drifts.append(drift)
        line = _Stretch(drift.start, drift.last + 1, sloped=True)
        stretches = [*before, line, *after]


def _refined(
    series: Prepared, before: Sequence[_Stretch], drift: Drift, after: Sequence[_Stretch]
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
    rest = trend.residuals(series.y[start:end])
    return float(rest @ rest)


def _noise(series: Prepared, stretches: Sequence[_Stretch]) -> Noise:
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


def _drift(series: Prepared, start: int, end: int, tries: int) -> Drift | None:
    line = trend.line(series, start, end)
    if line is None:
        return None
    before, after = series.value(line.first), series.value(line.last)
    if not _told(series, before, after):
        return None
    ratio = low = high = None
    if series.logarithmic:
        ratio, low, high = (float(np.exp(each)) for each in (line.total, line.low, line.high))
    p = min(1.0, line.chance * tries)
    return Drift(start, end - 1, before, after, ratio, low, high, p)


def _step(series: Prepared, left: _Stretch, right: _Stretch, noise: Noise, tries: int) -> Change:
    before, unsure = _end_of(series, left, at_end=True)
    after, also = _end_of(series, right, at_end=False)
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


def _end_of(series: Prepared, stretch: _Stretch, *, at_end: bool) -> tuple[float, float]:
    """The level at a stretch's end, and its variance where that of one run is 1."""
    count = stretch.end - stretch.start
    if not stretch.sloped:
        return series.mean(stretch.start, stretch.end), 1 / count
    first, last = trend.ends(series.y[stretch.start : stretch.end])
    # Of a fitted line, the value at its end is four times as uncertain as the mean.
    return (last if at_end else first), 4 / count


def _told(series: Prepared, before: float, after: float) -> bool:
    """Whether a change is large enough to be news."""
    size = max(abs(before), abs(after)) if not series.logarithmic else abs(before)
    return abs(after - before) >= LEAST_CHANGE * size > 0


def _placed(
    changes: Sequence[Change], drifts: Sequence[Drift], spread: float, skipped: int
) -> Findings:
    """With places counted from the first of all runs."""
    return Findings(
        tuple(
            Change(
                each.at + skipped,
                each.earliest + skipped,
                each.latest + skipped,
                each.start + skipped,
                each.end + skipped,
                each.before,
                each.after,
                each.ratio,
                each.low,
                each.high,
                each.p,
            )
            for each in changes
        ),
        tuple(
            Drift(
                each.start + skipped,
                each.last + skipped,
                each.before,
                each.after,
                each.ratio,
                each.low,
                each.high,
                each.p,
            )
            for each in drifts
        ),
        spread,
    )
