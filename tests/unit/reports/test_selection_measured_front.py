"""What the choice by measurements rests on: resampling, and who dominates whom in many goals."""

from __future__ import annotations

import random

import numpy as np
import pytest

from edgebench.harness.metrics.statistics import median_interval
from edgebench.harness.results.cell import Summary
from edgebench.reports.dominance import without_circles
from edgebench.reports.selection.front import dominated_by
from edgebench.reports.selection.goals import Stand
from edgebench.reports.selection.samples import Samples, interval, resampled_medians

GOALS = {"decode_rate": 1, "ttft_s": -1, "peak_rss_bytes": -1}
"""With the sign that turns each into more is better."""


def stand(low, high):
    middle = (low + high) / 2
    summary = Summary(
        median=middle, ci_low=low, ci_high=high, n=5, unit="1", source="observed", reason=None
    )
    return Stand(summary, None)


def counted(blocks):
    return {block: block for block in range(blocks)}


def by_definition(ends):
    """Who is dominated, straight from the definition, in plain loops."""
    names = list(ends)

    def sign(goal, one, other):
        (low, high), (others_low, others_high) = ends[one][goal], ends[other][goal]
        if low <= others_high and others_low <= high:
            return 0
        return GOALS[goal] * (1 if low > others_high else -1)

    beats = {
        (one, other)
        for one in names
        for other in names
        if one != other
        and all(sign(goal, one, other) >= 0 for goal in GOALS)
        and any(sign(goal, one, other) > 0 for goal in GOALS)
    }
    reach = set(beats)
    for middle in names:
        for one in names:
            for other in names:
                if (one, middle) in reach and (middle, other) in reach:
                    reach.add((one, other))
    kept = {(one, other) for one, other in beats if (other, one) not in reach}
    return {other for _, other in kept}, kept


@pytest.mark.parametrize("seed", range(40))
def test_front_is_what_the_definition_says(seed):
    """For random intervals in three goals, who is dominated is what plain loops over pairs find."""
    chance = random.Random(seed)
    ends = {}
    for place in range(7):
        ends[f"v{place}"] = {}
        for goal in GOALS:
            low = chance.randrange(1, 12)
            ends[f"v{place}"][goal] = (float(low), float(low + chance.randrange(5)))
    by_goal = {goal: {name: stand(*own[goal]) for name, own in ends.items()} for goal in GOALS}
    found = dominated_by(list(ends), by_goal, dict.fromkeys(ends, 0.0))
    dominated, pairs = by_definition(ends)
    assert {name for name, by in found.items() if by} == dominated
    assert all((by, name) in pairs for name, by in found.items() if by)
    assert len(dominated) < len(ends)


def test_a_circle_leaves_somebody():
    """Of three that beat each other in turn, and one that they beat, only that one is beaten."""
    beats = np.zeros((4, 4), dtype=bool)
    for one, other in ((0, 1), (1, 2), (2, 0), (2, 3)):
        beats[one, other] = True
    kept = without_circles(beats)
    assert [tuple(map(int, each)) for each in np.argwhere(kept)] == [(2, 3)]


def test_the_named_one_is_dominated_by_none_and_scores_highest():
    """Of several that dominate a variant, the one is named that a reader should look at."""
    by_goal = {
        "decode_rate": {each: stand(float(at), float(at)) for at, each in enumerate("abcd", 1)}
    }
    found = dominated_by(list("abcd"), by_goal, {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4})
    assert found == {"a": "d", "b": "d", "c": "d", "d": ""}


@pytest.mark.parametrize("repetitions", [1, 3])
def test_resampling_is_that_of_every_other_interval(repetitions):
    """The interval of resampled medians is the very one that the run's own statistics give."""
    chance = random.Random(5)
    by_block = {block: [chance.gauss(50, 4) for _ in range(repetitions)] for block in range(7)}
    samples = Samples({("w", "v", "k"): by_block}, {"v": 0}, {0: counted(7)})
    values = [value for each in by_block.values() for value in each]
    blocks = [block for block, each in by_block.items() for _ in each]
    wanted = median_interval(values, blocks)
    assert interval(samples.drawn("w", "v", "k")) == pytest.approx((wanted.low, wanted.high))


def test_a_resample_without_the_variants_blocks_gives_its_median():
    """A variant that was measured in few blocks of many is never without a value."""
    ordered = np.array([1.0, 2.0, 9.0])
    weights = np.array([[0, 1], [0, 0], [0, 2]], dtype=np.int32)
    # First column: nothing was drawn. Second: 1, 9, 9.
    assert resampled_medians(ordered, weights).tolist() == [2.0, 9.0]


def test_ratio_is_paired_within_blocks_of_one_run():
    """Half of the other's value in each block is a ratio of exactly a half, whatever the drift."""
    one = {block: [10.0 * (block + 1)] for block in range(5)}
    other = {block: [20.0 * (block + 1)] for block in range(5)}
    values = {("w", "a", "k"): one, ("w", "b", "k"): other}
    together = Samples(values, {"a": 0, "b": 0}, {0: counted(5)})
    point, drawn = together.ratio(("w",), "a", "b", "k")
    assert (point, *interval(drawn)) == pytest.approx((0.5, 0.5, 0.5))
    apart = Samples(values, {"a": 0, "b": 1}, {0: counted(5), 1: counted(5)})
    point, drawn = apart.ratio(("w",), "a", "b", "k")
    low, high = interval(drawn)
    assert point == pytest.approx(0.5)
    assert low < 0.4
    assert high > 0.6


def test_ratio_over_workloads_is_their_geometric_mean():
    """Twice as fast on one workload and half as fast on another is as fast on the whole."""
    values = {
        ("x", "a", "k"): {block: [20.0] for block in range(5)},
        ("x", "b", "k"): {block: [10.0] for block in range(5)},
        ("y", "a", "k"): {block: [5.0] for block in range(5)},
        ("y", "b", "k"): {block: [10.0] for block in range(5)},
    }
    samples = Samples(values, {"a": 0, "b": 0}, {0: counted(5)})
    point, _ = samples.ratio(("x", "y"), "a", "b", "k")
    assert point == pytest.approx(1.0)
