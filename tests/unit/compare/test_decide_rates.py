"""How often answers are wrong, on simulated noise: counts against their binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import optimize, stats

from edgebench.harness.compare.decide import decide
from edgebench.harness.compare.model import Question
from edgebench.harness.compare.paired import paired_test
from edgebench.harness.compare.unpaired import unpaired_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.harness.compare.max_t import Floats

GATES = 1_000
"""So many that twice the accepted rate would be seen in 99 of 100 sets of them."""
POWER_GATES = 100
CELLS = 5
BLOCKS = 7


def heavy(generator: np.random.Generator, moments: int) -> Floats:
    return generator.standard_t(3, size=(CELLS, moments))


def wandering(generator: np.random.Generator, moments: int) -> Floats:
    return generator.normal(size=(CELLS, moments)).cumsum(axis=1)


def bimodal(generator: np.random.Generator, moments: int) -> Floats:
    return 5.0 * (generator.random((CELLS, moments)) < 0.3) + generator.normal(
        size=(CELLS, moments)
    )


def white(generator: np.random.Generator, moments: int) -> Floats:
    return generator.normal(size=(CELLS, moments))


NOISES: tuple[Callable[[np.random.Generator, int], Floats], ...] = (
    white,
    heavy,
    wandering,
    bimodal,
)


def few(alarms: int, rate: float) -> bool:
    """Whether they are no more than gates of that rate have in all but one of a thousand sets."""
    return alarms <= int(stats.binom.ppf(0.999, GATES, rate))


def interleaved(seed: int) -> Iterator[Floats]:
    """Differences of the two sides of equal gates, of every kind of noise in turn."""
    generator = np.random.default_rng(seed)
    for at in range(GATES):
        values = NOISES[at % len(NOISES)](generator, 2 * BLOCKS)
        coins = np.where(generator.random(BLOCKS) < 0.5, 1.0, -1.0)
        yield (coins * (values[:, 1::2] - values[:, 0::2])).T


def test_the_count_would_show_twice_the_rate() -> None:
    """Of gates that alarm twice as often as accepted, 99 of 100 sets are not few alarms."""
    for rate in (0.05, 0.1, 0.2):
        limit = int(stats.binom.ppf(0.999, GATES, rate))
        assert stats.binom.cdf(limit, GATES, 2 * rate) < 0.01


def test_interleaved_gates_raise_few_false_alarms() -> None:
    """At 80, 90 and 95 %, no more gates alarm than chance would, whatever the noise."""
    least = [paired_test(each, level=0.05).worse.min() for each in interleaved(11)]
    for rate in (0.05, 0.1, 0.2):
        assert few(sum(p <= rate for p in least), rate)


def test_both_directions_of_interleaved_gates_share_the_rate() -> None:
    """With half of 10 % for each direction, few gates say of any cell that it changed at all."""
    tests = [paired_test(each, level=0.05) for each in interleaved(12)]
    changed = [min(test.worse.min(), test.better.min()) <= 0.05 for test in tests]
    assert few(sum(changed), 0.1)
    assert sum(changed) > stats.binom.ppf(0.001, GATES, 0.05)


def test_what_truly_changed_makes_no_other_cell_alarm() -> None:
    """Beside a cell that is ten times its noise slower, the others alarm as rarely as alone."""
    alarms = 0
    for differences in interleaved(13):
        differences[:, 0] = 30.0 + np.clip(differences[:, 0], -3, 3)
        alarms += paired_test(differences, level=0.05).worse[1:].min() <= 0.05
    assert few(alarms, 0.05)


def test_exchanging_the_blocks_of_steady_runs_raises_few_false_alarms() -> None:
    """Without noise floor and inflation, of sides of unequal size, chance alone decides."""
    generator = np.random.default_rng(14)
    nothing = np.zeros(CELLS)
    steady = (white, heavy, bimodal)
    least = []
    for at in range(GATES):
        values = steady[at % len(steady)](generator, 10).T
        test = unpaired_test(
            values[:6], values[6:], floors=nothing, inflation=nothing + 1.0, level=0.05
        )
        least.append(test.worse.min())
    for rate in (0.05, 0.1):
        assert few(sum(p <= rate for p in least), rate)


def runs_of(generator: np.random.Generator, runs: int, apart: float, slower: float) -> Floats:
    """Logarithms: runs of ten blocks with 2 % of noise in each, and as far apart as that says."""
    values: Floats = 0.02 * generator.normal(size=(runs, 10))
    values += apart * generator.normal(size=(runs, 1)) + np.log1p(slower)
    return values


def side(runs: Floats, name: str) -> dict[tuple[str, int], float]:
    return {
        (f"{name}{run}", block): float(np.exp(value))
        for run, values in enumerate(runs)
        for block, value in enumerate(values)
    }


@pytest.mark.parametrize("baselines", [1, 3])
def test_more_baseline_runs_do_not_hide_a_slowdown(baselines: int) -> None:
    """10 % slower with 2 % of noise is certain in nearly every gate, by one run or by three."""
    generator = np.random.default_rng(15)
    noticed = 0
    for _ in range(30):
        slow = Question(
            side(runs_of(generator, baselines, 0.0, 0.0), "a"),
            side(runs_of(generator, 1, 0.0, 0.1), "b"),
            "lower",
        )
        noticed += (decide([slow], confidence=0.99)[0].p_worse or 0) <= 0.01
    assert noticed >= 26


def test_runs_that_differ_by_themselves_raise_few_false_alarms() -> None:
    """Three runs a side that lie apart as far as their blocks: hardly a gate of 40 alarms."""
    generator = np.random.default_rng(16)
    alarms = 0
    for _ in range(40):
        equal = Question(
            side(runs_of(generator, 3, 0.02, 0.0), "a"),
            side(runs_of(generator, 3, 0.02, 0.0), "b"),
            "lower",
        )
        alarms += (decide([equal], confidence=0.99)[0].p_worse or 0) <= 0.01
    assert alarms <= stats.binom.ppf(0.999, 40, 0.01)


def test_what_is_said_to_be_noticeable_is_noticed() -> None:
    """The shift that a t test of 12 pairs has 95 % power for is told, and is noticed as often."""
    generator = np.random.default_rng(13)
    blocks = 12
    limit = stats.t.isf(0.01, blocks - 1)
    power = optimize.brentq(lambda shift: stats.nct.sf(limit, blocks - 1, shift) - 0.95, 1, 9)
    expected = power * 0.01 * np.sqrt(2 / blocks)
    told, noticed = [], 0
    for _ in range(POWER_GATES):
        baseline, equal = np.exp(0.01 * generator.normal(size=(2, blocks)))
        (answer,) = decide(
            [
                Question(
                    {("a", block): float(value) for block, value in enumerate(baseline)},
                    {("a", block): float(value) for block, value in enumerate(equal)},
                    "lower",
                )
            ],
            confidence=0.99,
        )
        told.append(answer.noticeable or 0.0)
        slower = Question(
            {("a", block): float(value) for block, value in enumerate(baseline)},
            {("a", block): float(value) for block, value in enumerate(equal * (1 + expected))},
            "lower",
        )
        noticed += (decide([slower], confidence=0.99)[0].p_worse or 0) <= 0.01
    assert np.median(told) == pytest.approx(expected, rel=0.1)
    assert noticed >= stats.binom.ppf(0.001, POWER_GATES, 0.95)
