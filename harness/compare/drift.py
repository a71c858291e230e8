"""How far apart two runs of the same thing may lie, as far as the runs themselves tell.

A machine that warms up or fills its page cache is slower later in a run, and more so in the next
one. Blocks that follow each other then say the same twice. How much of a run's variation is slow is
seen in its first waves: its values' products with half a cosine, a whole one, one and a half. Each
is as large as any other wave where blocks are independent, and larger where they are not. How much
that adds to the distance of two runs was set by measurement: docs/gate-power.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from edgebench.harness.compare.paired import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.max_t import Floats

WAVES = 3
PER_EXCESS = 8.0
"""What one unit of the waves' excess adds to the variance between two runs. A random walk over both
runs adds 6; the rest is for how little of it one sees."""
OWN = 0.3
"""How much a question's own waves count beside those of all questions of the family."""
LEAST_RUNS = 2
BY_CHANCE = 0.1
"""How often runs that don't differ seem to differ by more than what is taken for chance."""
ONE_IN_TWENTY = 1.645


@dataclass(frozen=True, slots=True)
class Drift:
    """What two sides that were measured at different times may differ by.

    Attributes:
        inflation: of each question, by how much a standard error must grow that takes blocks for
            independent; at least 1.
        allowance: of each question, how far a trend that both sides show leads from one side to the
            other.
        likely: what both are in all but one of twenty repetitions of the same two runs, roughly.
    """

    inflation: Floats
    allowance: Floats
    likely: tuple[Floats, Floats]


def drift_of(baseline: Sequence[Floats], candidate: Sequence[Floats]) -> Drift:
    """Read the drift from both sides.

    Args:
        baseline: of each run its values, one row a block in the order of time, one column a
            question; NaN where there is none.
        candidate: the same, with the same columns.
    """
    runs = [run for run in (*baseline, *candidate) if len(run)]
    waves = [each for run in runs for each in _waves(run)]
    questions = runs[0].shape[1]
    excess = _shared(np.array(waves)) if waves else np.zeros(questions)
    unsure = ONE_IN_TWENTY * _error([_mean(wave) for wave in waves])
    between = np.ones(questions)
    if max(len(baseline), len(candidate)) >= LEAST_RUNS:
        between = _between_runs((baseline, candidate))
    inflation, likely = (
        np.sqrt(np.maximum(1.0 + PER_EXCESS * np.maximum(excess + more, 0.0), between))
        for more in (0.0, unsure)
    )
    trends, spreads = zip(*(_trend(run) for run in runs), strict=True)
    spread = np.mean(spreads, axis=0)
    common = [
        _mean(np.where(each > 0.0, trend, np.nan))
        for trend, each in zip(trends, spreads, strict=True)
    ]
    trend = abs(float(np.mean(common)))
    return Drift(
        inflation=inflation,
        allowance=trend * spread,
        likely=(likely, (trend + ONE_IN_TWENTY * _error(common)) * spread),
    )


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else 0.0


def _error(values: Sequence[float]) -> float:
    """The standard error of their mean, as far as they tell."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _centred(run: Floats) -> tuple[Floats, Floats]:
    """Values about their mean without far outliers, 0 where there is none; standard deviations."""
    known = ~np.isnan(run)
    counts = known.sum(axis=0)
    some = counts > 0
    middle = np.zeros(run.shape[1])
    middle[some] = np.nanmedian(run[:, some], axis=0)
    values = clip(run - middle)
    values = (values - values.sum(axis=0) / np.maximum(counts, 1)) * known
    spread = np.sqrt(np.sum(values**2, axis=0) / np.maximum(counts - 1, 1))
    return values, spread


def _waves(run: Floats) -> list[Floats]:
    """By how much the square of each wave exceeds that of independent values; NaN if constant."""
    values, spread = _centred(run)
    spread = np.where(spread > 0.0, spread, np.nan)
    blocks = len(run)
    phase = math.pi * (np.arange(blocks) + 0.5) / blocks
    scale = math.sqrt(2.0 / blocks)
    return [
        (scale * np.cos(wave * phase) @ values / spread) ** 2 - 1.0
        for wave in range(1, min(WAVES, blocks - 2) + 1)
    ]


def _shared(found: Floats) -> Floats:
    """The mean over waves of each question, drawn towards that of all questions."""
    known = ~np.isnan(found)
    if not np.any(known):
        return np.zeros(found.shape[1])
    counts = known.sum(axis=0)
    sums = np.where(known, found, 0.0).sum(axis=0)
    pooled = float(sums.sum() / counts.sum())
    own = np.where(counts > 0, sums / np.maximum(counts, 1), pooled)
    return own if len(own) == 1 else OWN * own + (1.0 - OWN) * pooled


def _trend(run: Floats) -> tuple[Floats, Floats]:
    """The rise over one run of each question in standard deviations, and these."""
    values, spread = _centred(run)
    times = np.arange(len(run)) - (len(run) - 1) / 2.0
    if len(run) <= LEAST_RUNS:
        return np.zeros(run.shape[1]), spread
    rise = times @ values / (times @ times) * len(run)
    return np.divide(rise, spread, out=np.zeros_like(rise), where=spread > 0.0), spread


def _between_runs(sides: Sequence[Sequence[Floats]]) -> Floats:
    """How much more the runs of a side vary than their blocks explain, for as few runs as it is.

    What chance may make of it counts as it is seen; what goes beyond is a true difference between
    runs, which so few runs tell badly, and counts by as much more.
    """
    questions = sides[0][0].shape[1]
    between, within, blocks_left = (np.zeros(questions) for _ in range(3))
    freedom = 0
    for runs in sides:
        for run in runs:
            left = np.maximum(np.sum(~np.isnan(run), axis=0) - 1, 0)
            within += left * _centred(run)[1] ** 2
            blocks_left += left
        if len(runs) < LEAST_RUNS:
            continue
        freedom += len(runs) - 1
        means = np.array([_middle(run) for run in runs])
        size = float(np.mean([len(run) for run in runs]))
        known = ~np.isnan(means)
        middle = np.where(known, means, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        between += size * np.sum(np.where(known, means - middle, 0.0) ** 2, axis=0)
    noise = np.divide(within, blocks_left, out=np.zeros(questions), where=blocks_left > 0)
    noise = np.where(noise > 0.0, noise, np.nan)
    excess = _shared((between / freedom / noise - 1.0)[None, :])
    few = stats.t.isf(0.01, freedom) / stats.norm.isf(0.01)
    chance = stats.f.isf(BY_CHANCE, freedom, max(float(np.median(blocks_left)), 1.0)) - 1.0
    true = few**2 * np.maximum(excess - chance, 0.0)
    return 1.0 + np.maximum(excess, 0.0) + true


def _middle(run: Floats) -> Floats:
    known = ~np.all(np.isnan(run), axis=0)
    found = np.full(run.shape[1], np.nan)
    found[known] = np.nanmean(run[:, known], axis=0)
    return found
