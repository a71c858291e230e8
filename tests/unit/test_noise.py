"""What a run against itself tells of noise: figures from known samples, and what is suggested."""

from __future__ import annotations

import datetime as dt
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
from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy_file import parse_policy
from edgebench.harness.noise.figures import Asked, noticed, noticed_apart
from edgebench.harness.noise.model import Suggestion
from edgebench.harness.noise.report import noise_of
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


def test_drift_shows_in_lag_1_and_in_the_floor_and_not_in_the_pairs() -> None:
    """A pace that falls by 10 % over the run: its second half is 5 % worse, its pairs steady."""
    falling = [100 * (1 - 0.1 * block / 39) for block in range(40)]
    pair = [value * 1.0001 for value in falling]
    report = noise_of(twice({"decode_rate": falling}, {"decode_rate": pair}))
    (row,) = report.rows
    assert row.lag1 == pytest.approx(0.92, abs=0.03)
    assert row.pair_spread == pytest.approx(0.0, abs=1e-9)
    assert row.inflation > 3
    (drift,) = report.drifts
    assert (drift.metric, drift.worsening) == ("decode_rate", pytest.approx(0.05, abs=0.005))
    assert report.suggestion is not None
    assert report.suggestion.noise_floor == pytest.approx(0.055, abs=0.006)


def test_a_time_that_grows_is_worse_as_well() -> None:
    """A drift has the sign of the harm: positive where a time grew or a rate fell."""
    growing = [1.0 + 0.01 * block for block in range(20)]
    (drift,) = noise_of(twice({"ttft_s": growing}, {"ttft_s": growing})).drifts
    assert drift.worsening > 0.05


def test_independent_noise_is_no_drift() -> None:
    """Of runs whose blocks know nothing of each other, 1 in 100 shows one by chance."""
    found = [
        noise_of(
            twice(
                {"decode_rate": drawn(4 * seed, 20, 0.03), "ttft_s": drawn(4 * seed + 1, 20, 0.1)},
                {
                    "decode_rate": drawn(4 * seed + 2, 20, 0.03),
                    "ttft_s": drawn(4 * seed + 3, 20, 0.1),
                },
            )
        )
        for seed in range(25)
    ]
    drifted = sum(bool(report.drifts) for report in found)
    assert drifted <= stats.binom.isf(1e-3, len(found), 0.01)
    quiet = [each.suggestion for each in found if each.suggestion and not each.drifts]
    assert {each.noise_floor for each in quiet} == {0.01}


def test_cells_that_slow_together_count_once() -> None:
    """Eight cells with the same noise, block by block, are no eight witnesses of a drift."""
    drifted = 0
    for seed in range(15):
        noise = drawn(seed, 20, 0.03)
        cells = {f"v{at}": {"decode_rate": list(noise)} for at in range(8)}
        sides = [
            side(name, cells, interleaved=interleaved("s", which, other))  # type: ignore[arg-type]
            for name, which, other in (("a", "baseline", "b"), ("b", "candidate", "a"))
        ]
        drifted += bool(noise_of(match(*sides)).drifts)
    assert drifted <= stats.binom.isf(1e-3, 15, 0.01)


@pytest.mark.parametrize("count", [10, 20, 40])
def test_what_is_noticed_is_noticed_in_95_of_100_cases(count: int) -> None:
    """By the noncentral t distribution itself, of which the code has an approximation."""
    spread, asked = 0.02, Asked(questions=12, level=LEVEL, floor=0.01)
    found = noticed(spread, count, "lower", asked)
    assert found is not None
    limit = stats.t.isf(LEVEL / 12, count - 1)
    centre = math.log1p(found) / (spread / math.sqrt(count))
    assert stats.nct.sf(limit, count - 1, centre) == pytest.approx(0.95, abs=0.005)

    apart = noticed_apart(spread, count, "lower", asked, inflation=1.5)
    assert apart is not None
    limit = stats.t.isf(LEVEL / 12, 2 * count - 2)
    centre = (math.log1p(apart) - math.log1p(0.01)) / (1.5 * spread * math.sqrt(2 / count))
    assert stats.nct.sf(limit, 2 * count - 2, centre) == pytest.approx(0.95, abs=0.005)


def test_too_few_repetitions_can_never_be_certain() -> None:
    """Six pairs that all point one way happen by chance once in 64: more often than 1 in 100."""
    asked = Asked(questions=1, level=LEVEL, floor=0.01)
    assert noticed(0.001, 6, "lower", asked) is None
    assert noticed(0.001, 7, "lower", asked) is not None
    # Of four and four, one choice of 70.
    assert noticed_apart(0.001, 4, "lower", asked, inflation=1.0) is None
    assert noticed_apart(0.001, 5, "lower", asked, inflation=1.0) is not None


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
    asked = Asked(questions=1, level=LEVEL, floor=0.01)
    assert at[20] == pytest.approx(noticed(row.pair_spread, 10, "higher", asked))


def test_equal_sides_do_not_alarm_and_unequal_ones_are_told() -> None:
    """Where the sides do differ the report says so in capitals, and what to do."""
    one = {"decode_rate": drawn(1, 20, 0.01)}
    quiet = noise_of(twice(one, {"decode_rate": drawn(2, 20, 0.01)}))
    assert quiet.alarms == ()
    assert "A/A check passed at 99 %." in noise_text(quiet)
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


def test_a_limit_of_separate_runs_is_never_below_their_noise_floor() -> None:
    """A pace that falls by 8 % makes the floor 4.5 %: no limit of 1 % stands beside it."""
    falling = [100 * (1 - 0.08 * block / 39) for block in range(40)]
    found = noise_of(twice({"decode_rate": falling}, {"decode_rate": falling})).suggestion
    assert found is not None
    assert found.limits == {"decode_rate": 0.01}
    assert found.noise_floor > 0.03
    assert all(limit >= found.noise_floor for limit in found.separate.values())


def test_the_suggested_policy_is_one_that_a_gate_reads() -> None:
    """As written, with its comments; none where every metric is too noisy."""
    found = Suggestion(
        20, 0.015, {"decode_rate": 0.02, "ttft_s": 0.05}, {"ttft_s": 0.1}, ("peak_rss_bytes",)
    )
    text = found.policy()
    assert text is not None
    policy = parse_policy(text, filename="gate.yaml")
    assert (policy.confidence, policy.noise_floor) == (0.99, 0.015)
    assert {key: limit and limit.worse_by for key, limit in policy.limits.items()} == {
        "decode_rate": 0.02, "ttft_s": 0.05,
    }  # fmt: skip
    assert "# too noisy" in text
    assert Suggestion(40, 0.01, {}, {}, ("decode_rate",)).policy() is None


def test_a_gate_with_the_suggested_policy_passes_what_it_was_made_of() -> None:
    """The same thing twice is no regression, by the limits that its own noise suggests."""
    values = [
        {"decode_rate": drawn(seed, 20, 0.02), "ttft_s": drawn(seed + 10, 20, 0.05)}
        for seed in (1, 2)
    ]
    matched = twice(*values)
    found = noise_of(matched).suggestion
    assert found is not None
    text = found.policy()
    assert text is not None
    gate = evaluate(matched, parse_policy(text, filename="gate.yaml"), today=dt.date(2027, 1, 1))
    assert gate.passed


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
