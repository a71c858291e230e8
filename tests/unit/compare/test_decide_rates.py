"""How often answers are wrong, on simulated noise: counts against their binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import optimize, stats

from edgebench.harness.compare.decide import decide
from edgebench.harness.compare.model import Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.harness.compare.max_t import Floats

GATES = 100
CELLS = 10
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


def gate(values: Floats, generator: np.random.Generator, *, paired: bool) -> list[Question]:
    """Equal sides with 1 % of such noise, in one another's blocks or one after the other."""
    times = np.exp(0.01 * values)
    if paired:
        coins = generator.random(BLOCKS) < 0.5
        baseline = np.where(coins, times[:, 0::2], times[:, 1::2])
        candidate = np.where(coins, times[:, 1::2], times[:, 0::2])
    else:
        baseline, candidate = times[:, :BLOCKS], times[:, BLOCKS:]
    other = "a" if paired else "b"
    return [
        Question(
            {("a", block): float(value) for block, value in enumerate(one)},
            {(other, block): float(value) for block, value in enumerate(two)},
            "lower",
        )
        for one, two in zip(baseline, candidate, strict=True)
    ]


@pytest.mark.parametrize("noise", [white, heavy, wandering, bimodal])
def test_interleaved_gates_raise_few_false_alarms(
    noise: Callable[[np.random.Generator, int], Floats],
) -> None:
    """At 95 %, no more gates alarm than 5 % of them by chance would, whatever the noise."""
    generator = np.random.default_rng(11)
    alarms = 0
    for _ in range(GATES):
        questions = gate(noise(generator, 2 * BLOCKS), generator, paired=True)
        alarms += min(each.p_worse or 0 for each in decide(questions)) <= 0.05
    assert alarms <= stats.binom.ppf(0.999, GATES, 0.05)


@pytest.mark.parametrize("noise", [white, heavy, bimodal])
def test_separate_gates_of_steady_noise_raise_few_false_alarms(
    noise: Callable[[np.random.Generator, int], Floats],
) -> None:
    """At 95 % and without a noise floor, no more gates alarm than 5 % of them would."""
    generator = np.random.default_rng(12)
    alarms = 0
    for _ in range(GATES // 5):
        questions = gate(noise(generator, 2 * BLOCKS), generator, paired=False)
        answers = decide(questions, noise_floor=0.0)
        alarms += min(each.p_worse or 0 for each in answers) <= 0.05
    assert alarms <= stats.binom.ppf(0.999, GATES // 5, 0.05)


def test_what_is_said_to_be_noticeable_is_noticed() -> None:
    """The shift that a t test of 12 pairs has 95 % power for is told, and is noticed as often."""
    generator = np.random.default_rng(13)
    blocks = 12
    limit = stats.t.isf(0.01, blocks - 1)
    power = optimize.brentq(lambda shift: stats.nct.sf(limit, blocks - 1, shift) - 0.95, 1, 9)
    expected = power * 0.01 * np.sqrt(2 / blocks)
    told, noticed = [], 0
    for _ in range(GATES):
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
    assert noticed >= stats.binom.ppf(0.001, GATES, 0.95)
