"""What a run against itself tells of noise: figures from known samples, and what is suggested."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from statistics import mean, stdev
from typing import TYPE_CHECKING

import pytest
from scipy import stats
from side_sample import interleaved, run, side

from edgebench.harness.compare.matching import match
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.gate.policy_file import parse_policy
from edgebench.harness.noise import Suggestion, noise_of, noticed, noticed_apart
from edgebench.harness.results.run import Run
from edgebench.reports.comparing.noise_terminal import noise_text

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Matched

LEVEL = 0.01


def twice(baseline: dict[str, list[float]], candidate: dict[str, list[float]]) -> Matched:
    """One cell's values by metric, of the same blocks."""
    mine = side("a", {"v": baseline}, interleaved=interleaved("s", "baseline", "b"))  # type: ignore[dict-item]
    theirs = side("b", {"v": candidate}, interleaved=interleaved("s", "candidate", "a"))  # type: ignore[dict-item]
    return match(mine, theirs)


def drawn(seed: int, count: int, share: float, *, value: float = 100.0) -> list[float]:
    chance = random.Random(seed)
    return [value * math.exp(chance.gauss(0, share)) for _ in range(count)]


def test_the_figures_are_those_of_the_samples() -> None:
    """The variation of a repetition and of a pair, by the textbook; lag 1 by the textbook too."""
    one, other = drawn(1, 40, 0.01), drawn(2, 40, 0.01)
    (row,) = noise_of(twice({"decode_rate": one}, {"decode_rate": other})).rows
    assert (row.cell, row.metric, row.pairs, row.per_block) == ("v / w", "decode_rate", 40, 1)
    assert row.repetition_cv == pytest.approx(stdev(one + other) / mean(one + other))
    ratios = [math.log(b / a) for a, b in zip(one, other, strict=True)]
    # Robust, so that it need not be the same; of normal noise it is about that.
    assert row.pair_spread == pytest.approx(stdev(ratios), rel=0.1)
    products = squares = 0.0
    for values in (one, other):
        logs = [math.log(value) for value in values]
        centred = [value - mean(logs) for value in logs]
        squares += sum(value * value for value in centred)
        products += sum(a * b for a, b in pairwise(centred))
    assert row.lag1 == pytest.approx(products / squares)
    assert abs(row.lag1) < 0.25


def test_drift_shows_in_lag_1_and_in_the_halves_and_not_in_the_pairs() -> None:
    """A pace that falls by 10 % over the run: its second half is 5 % worse, its pairs steady."""
    falling = [100 * (1 - 0.1 * block / 39) for block in range(40)]
    pair = [value * 1.0001 for value in falling]
    report = noise_of(twice({"decode_rate": falling}, {"decode_rate": pair}))
    (row,) = report.rows
    assert row.lag1 == pytest.approx(0.92, abs=0.03)
    assert row.halves == pytest.approx(0.05, abs=0.005)
    assert row.pair_spread == pytest.approx(0.0, abs=1e-9)
    assert row.inflation > 3
    assert report.suggestion is not None
    assert report.suggestion.noise_floor == pytest.approx(0.055, abs=0.006)


def test_a_time_that_grows_is_worse_as_well() -> None:
    """The halves have the sign of the harm: positive where a time grew or a rate fell."""
    growing = [1.0 + 0.01 * block for block in range(20)]
    (row,) = noise_of(twice({"ttft_s": growing}, {"ttft_s": growing})).rows
    assert row.halves is not None
    assert row.halves > 0.05


@pytest.mark.parametrize("count", [10, 20, 40])
def test_what_is_noticed_is_noticed_in_95_of_100_cases(count: int) -> None:
    """By the noncentral t distribution itself, of which the code has an approximation."""
    spread = 0.02
    found = noticed(spread, count, "lower", questions=12, level=LEVEL)
    assert found is not None
    limit = stats.t.isf(LEVEL / 12, count - 1)
    centre = math.log1p(found) / (spread / math.sqrt(count))
    assert stats.nct.sf(limit, count - 1, centre) == pytest.approx(0.95, abs=0.005)

    apart = noticed_apart(
        spread, count, "lower", floor=0.01, inflation=1.5, questions=12, level=LEVEL
    )
    assert apart is not None
    limit = stats.t.isf(LEVEL / 12, 2 * count - 2)
    centre = (math.log1p(apart) - math.log1p(0.01)) / (1.5 * spread * math.sqrt(2 / count))
    assert stats.nct.sf(limit, 2 * count - 2, centre) == pytest.approx(0.95, abs=0.005)


def test_too_few_repetitions_can_never_be_certain() -> None:
    """Six pairs that all point one way happen by chance once in 64: more often than 1 in 100."""
    assert noticed(0.001, 6, "lower", questions=1, level=LEVEL) is None
    assert noticed(0.001, 7, "lower", questions=1, level=LEVEL) is not None
    # Of four and four, one choice of 70.
    given = {"floor": 0.01, "inflation": 1.0, "questions": 1, "level": LEVEL}
    assert noticed_apart(0.001, 4, "lower", **given) is None  # type: ignore[arg-type]
    assert noticed_apart(0.001, 5, "lower", **given) is not None  # type: ignore[arg-type]


def test_repetitions_of_one_block_count_once() -> None:
    """20 repetitions, two a block, are 10 pairs; what is noticed is told by repetitions."""

    def doubled(name: str, which: str, seed: int) -> Run:
        values = {"v": {"decode_rate": drawn(seed, 10, 0.01)}}
        made = run(name, values, interleaved=interleaved("s", which, "x"))  # type: ignore[arg-type]
        return Run(made.path, made.record, tuple(t for t in made.trials for _ in range(2)))

    sides = (side_of_run(doubled("a", "baseline", 1)), side_of_run(doubled("b", "candidate", 2)))
    (row,) = noise_of(match(*sides)).rows
    assert (row.pairs, row.per_block) == (10, 2)
    at = {each.repetitions: each.interleaved for each in row.noticed}
    assert at[10] is None  # five pairs
    assert at[20] == pytest.approx(noticed(row.pair_spread, 10, "higher", questions=1, level=LEVEL))


def test_equal_sides_do_not_alarm_and_unequal_ones_are_told() -> None:
    """Where the sides do differ the report says so in capitals, and what to do."""
    one = {"decode_rate": drawn(1, 20, 0.01)}
    quiet = noise_of(twice(one, {"decode_rate": drawn(2, 20, 0.01)}))
    assert quiet.alarms == ()
    assert "there is none." in noise_text(quiet)
    loud = noise_of(twice(one, {"decode_rate": drawn(2, 20, 0.01, value=90.0)}))
    assert [(row.cell, row.metric) for row in loud.alarms] == [("v / w", "decode_rate")]
    assert "FALSE ALARM" in noise_text(loud)


def test_a_quiet_machine_is_asked_for_few_repetitions_and_a_noisy_one_for_many() -> None:
    """The limits are the next step above what is noticed; beyond hope there is none."""

    def suggested(share: float) -> Suggestion:
        values = [{"decode_rate": drawn(seed, 20, share)} for seed in (1, 2)]
        found = noise_of(twice(*values)).suggestion
        assert found is not None
        return found

    quiet, noisy, wild = suggested(0.002), suggested(0.06), suggested(1.5)
    assert (quiet.repetitions, quiet.limits) == (10, {"decode_rate": 0.01})
    assert noisy.repetitions == 40
    assert 0.03 <= noisy.limits["decode_rate"] <= 0.1
    assert wild.hopeless == ("decode_rate",)


def test_the_suggested_policy_is_one_that_a_gate_reads() -> None:
    """As written, with its comments."""
    found = Suggestion(20, 0.015, {"decode_rate": 0.02, "ttft_s": 0.05}, ("peak_rss_bytes",))
    policy = parse_policy(found.policy(), filename="gate.yaml")
    assert (policy.confidence, policy.noise_floor) == (0.99, 0.015)
    assert {key: limit and limit.worse_by for key, limit in policy.limits.items()} == {
        "decode_rate": 0.02, "ttft_s": 0.05,
    }  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [[5.0] * 12, [5.0] * 6 + [6.0] * 6, [5.0, 6.0], [1e-9, 1e9] * 6, [0.0] * 12, [5.0]],
)
def test_samples_that_say_little_make_a_report_without_a_hitch(values: list[float]) -> None:
    """Constant, few, far apart, zero, one: no division, no infinite figure, 80 columns."""
    text = noise_text(noise_of(twice({"ttft_s": values}, {"ttft_s": values})))
    assert "nan" not in text.split()
    assert "inf" not in text.split()
    assert max(map(len, text.splitlines())) <= 80
