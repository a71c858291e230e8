"""The test for two things that were measured at different times.

Blocks are exchanged between the sides, whole blocks for all questions at once. That answers whether
the blocks differ, not whether that is the candidate's doing: two runs of the same thing differ too.
So a difference counts from the noise floor on, and what varies slowly widens it: see `drift.py`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.compare.max_t import (
    CHUNK,
    SEED,
    Critical,
    Scale,
    StepDown,
    ceiling_of,
    draws_for,
)
from edgebench.harness.compare.noticeable import clip_apart, log_chance
from edgebench.harness.compare.paired import middle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.compare.max_t import Floats

ALL_UP_TO = 10_000
"""How many ways of choosing the candidate's blocks are all tried."""


@dataclass(frozen=True, slots=True)
class UnpairedTest:
    """What exchanging blocks says about a family.

    Attributes:
        worse, better: adjusted chances, of more than the noise floor.
        limits: what t would be called worse, once deflated; infinite where none is.
    """

    worse: Floats
    better: Floats
    limits: Floats


def unpaired_test(
    baseline: Floats, candidate: Floats, *, floors: Floats, inflation: Floats, level: float
) -> UnpairedTest:
    """Test many questions at once.

    Args:
        baseline: one row a block, one column a question, greater where it is worse; NaN where a
            question has no value in a block.
        candidate: the same.
        floors: of each question how much worse, or better, still counts as the same.
        inflation: of each question by how much its t is too great for values that are no
            independent draws.
        level: the accepted chance of calling any question worse where none is.

    Returns:
        P-values adjusted for all questions, and what would have been called worse.
    """
    known_b, known_c = ~np.isnan(baseline), ~np.isnan(candidate)
    least, most = known_b.sum(axis=0), known_c.sum(axis=0)
    rarest = np.array(
        [math.exp(log_chance(int(a), int(b))) for a, b in zip(least, most, strict=True)]
    )
    total = (least + most).astype(float)
    scale = Scale(np.maximum(total - 2.0, 0.0), ceiling_of(rarest))
    able = rarest <= level * (1 + 1e-9)
    known = np.vstack([known_b, known_c]).astype(float)
    labels = np.r_[np.zeros(len(baseline)), np.ones(len(candidate))][None, :]
    tests = []
    for sign in (1.0, -1.0):
        values = sign * np.vstack([baseline, candidate - sign * floors])
        exchange = _Exchange(clip_apart(values, least, most), known, len(candidate))
        correlations = _deflated(exchange.correlations(labels), inflation[:, None])
        tests.append((exchange, StepDown(scale.scores(correlations)[:, 0], able)))
    # What was observed is among the draws as it is: deflated it is never more than that.
    residuals = np.vstack([side - middle(side) for side in (baseline, candidate)])
    noise = _Exchange(clip_apart(residuals, least, most), known, len(candidate))
    critical = Critical(scale, able)
    for choices in _labels(len(baseline), len(candidate), draws_for(level)):
        for exchange, test in tests:
            test.add(scale.scores(exchange.correlations(choices)))
        critical.add(scale.scores(noise.correlations(choices)))
    every = _can_try_all(len(baseline), len(candidate))
    worse, better = (test.p(every=every) for _, test in tests)
    return UnpairedTest(worse, better, critical.t(level, every=every))


def _deflated(correlations: Floats, inflation: Floats) -> Floats:
    """The correlations whose t is smaller by a factor."""
    squares = np.minimum(correlations * correlations, 1.0 - 1e-12)
    odds = squares / (1.0 - squares) / (inflation * inflation)
    return np.copysign(np.sqrt(odds / (1.0 + odds)), correlations)


class _Exchange:
    """Correlations of values with sides, for any choice of the candidate's blocks."""

    def __init__(self, values: Floats, known: Floats, candidates: int) -> None:
        self._counts = known.sum(axis=0)[:, None]
        means = values.sum(axis=0) / known.sum(axis=0)
        centred = (values - means) * known
        sizes = np.sqrt(np.sum(centred**2, axis=0))
        self._values = np.ascontiguousarray((centred / np.where(sizes > 0.0, sizes, np.inf)).T)
        self._known = np.ascontiguousarray(known.T)
        self._whole = bool(np.all(known == 1.0))
        if self._whole:
            self._values /= math.sqrt(candidates * (len(values) - candidates) / len(values))

    def correlations(self, choices: Floats) -> Floats:
        """One row a question, one column a choice, which is a row of 1 for the candidate."""
        sums: Floats = self._values @ choices.T
        if self._whole:
            return sums
        chosen = self._known @ choices.T
        share = chosen * (self._counts - chosen) / self._counts
        # With a sum s over k of n centred values, the means differ by s n / (k (n - k)).
        np.divide(sums, np.sqrt(share), out=sums, where=share > 0.0)
        return np.where(share > 0.0, sums, 0.0)


def _can_try_all(baseline: int, candidate: int) -> bool:
    return -log_chance(baseline, candidate) <= math.log(ALL_UP_TO)


def _labels(baseline: int, candidate: int, draws: int) -> Iterator[Floats]:
    """Choices of the candidate's blocks, one a row; the observed one among them.

    Drawn ones are such that swapped sides get the same choices, mirrored.
    """
    blocks = baseline + candidate
    if _can_try_all(baseline, candidate):
        every = itertools.combinations(range(blocks - 1, -1, -1), candidate)
        while chunk := list(itertools.islice(every, CHUNK)):
            labels = np.zeros((len(chunk), blocks))
            np.put_along_axis(labels, np.array(chunk), 1.0, axis=1)
            yield labels
        return
    yield np.r_[np.zeros(baseline), np.ones(candidate)][None, :]
    generator = np.random.default_rng(SEED)
    fewer, more = sorted((baseline, candidate))
    left = draws // 2 - 1 if fewer == more else draws - 1
    while left > 0:
        size = min(CHUNK, left)
        # Far faster than shuffling each row, and the same: the least of random numbers are chosen.
        ranked = np.argpartition(generator.random((size, blocks)), fewer - 1, axis=1)
        labels = np.zeros((size, blocks))
        np.put_along_axis(labels, ranked[:, :fewer], 1.0, axis=1)
        # The fewer are chosen of rows in which the more come first.
        if candidate == fewer:
            yield labels
        if baseline == fewer:
            yield 1.0 - np.hstack([labels[:, more:], labels[:, :more]])
        left -= size
