"""Ratings: what they hold, on disk and off it, and divergences from them, against scipy."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import entropy

from edgebench.models.ratings import Ratings, compact, kl_divergences

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def distributions(count: int, size: int, spread: float, seed: int = 0) -> NDArray[np.float64]:
    """(count, size), natural logarithms of random distributions, likeliest first."""
    logits = spread * np.random.default_rng(seed).standard_normal((count, size))
    found: NDArray[np.float64] = -np.sort(-log_softmax(logits, axis=1), axis=1)
    return found


def rated(logs: NDArray[np.float64], covered: float, keep: int) -> Ratings:
    ids = np.tile(np.arange(logs.shape[1]), (len(logs), 1))
    return compact(ids[:, :keep], logs[:, :keep], logs[:, 0], covered)


def drawn(
    logs: NDArray[np.float64], chance: NDArray[np.float64], draws: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Samples of all of some tokens by `draws` marks each, another way than the code under test.

    Token i is named as often as whole numbers lie between its ends, in marks.
    """
    ends = np.cumsum(np.exp(logs), axis=1)
    ends *= draws / ends[:, -1:]
    ends[:, -1] = draws
    times = np.diff(np.ceil(ends - chance[:, None]), prepend=0, axis=1).astype(np.int64)
    assert (times.sum(axis=1) == draws).all()
    places = np.stack([np.repeat(np.arange(logs.shape[1]), row) for row in times])
    return places, np.take_along_axis(logs, places, axis=1)


def with_samples(logs: NDArray[np.float64], covered: float, keep: int, draws: int) -> Ratings:
    """Ratings of which the positions whose `keep` likeliest hold too little have samples."""
    chance = np.random.default_rng(7).random(len(logs))
    ids, theirs = drawn(logs[:, keep:], chance, draws)
    needy = np.exp(logs[:, :keep]).sum(axis=1, keepdims=True) < covered
    every = np.tile(np.arange(keep), (len(logs), 1))
    places = np.where(needy, ids + keep, -1)
    return compact(every, logs[:, :keep], logs[:, 0], covered, (places, theirs))


def told(ratings: Ratings, logs: NDArray[np.float64]) -> list[list[float]]:
    """What a variant that says `logs` says of the candidates."""
    return [row[ids].tolist() for row, ids in zip(logs, ratings.candidate_lists(), strict=True)]


def test_the_fewest_candidates_that_cover_the_share_are_kept() -> None:
    """Of 0.5, 0.3, 0.1, 0.1: one for 0.4 and 0.5, two for 0.6, three for 0.85, two at most."""
    logs = np.log([[0.5, 0.3, 0.1, 0.1]])
    for covered, keep, expected in (
        (0.4, 4, [0]),
        (0.6, 4, [0, 1]),
        (0.85, 4, [0, 1, 2]),
        (0.99, 4, [0, 1, 2, 3]),
        (0.99, 2, [0, 1]),
    ):
        ratings = rated(logs, covered, keep)
        assert ratings.candidate_lists() == [expected]
        assert ratings.candidates(0) == expected
        assert ratings.covered == pytest.approx([sum([0.5, 0.3, 0.1, 0.1][: len(expected)])])


def test_positions_have_candidates_of_their_own_number() -> None:
    """A certain position keeps one, a flat one many, and each its own."""
    logs = np.log([[0.97, 0.01, 0.01, 0.01], [0.25] * 4, [0.6, 0.38, 0.01, 0.01]])
    ids = np.array([[7, 1, 2, 3], [0, 1, 2, 3], [9, 5, 0, 1]])
    ratings = compact(ids, logs, np.array([-1.0, -2.0, -3.0]), 0.96)
    assert len(ratings) == 3
    assert ratings.candidate_lists() == [[7], [0, 1, 2, 3], [9, 5]]
    assert ratings.top_ids.tolist() == [7, 0, 9]
    assert ratings.log_likelihoods.tolist() == [-1, -2, -3]
    assert ratings.covered == pytest.approx([0.97, 1, 0.98])
    # 3 own likelihoods, 4 offsets, 3 counts, 7 candidates with 4 bytes each of id and likelihood.
    assert ratings.nbytes == 3 * 8 + 4 * 8 + 3 * 4 + 7 * 8


def test_samples_stand_behind_the_likeliest() -> None:
    """Where some were drawn: asked for like others, and no part of what is covered."""
    logs = np.log([[0.5, 0.2, 0.1, 0.1, 0.1], [0.5, 0.49, 0.003, 0.003, 0.004]])
    ids = np.tile(np.arange(5), (2, 1))
    drawn = (np.array([[3, 4, 4], [-1, -1, -1]]), np.log([[0.1] * 3, [1.0] * 3]))
    ratings = compact(ids[:, :2], logs[:, :2], np.array([-1.0, -2.0]), 0.9, drawn)
    assert ratings.candidate_lists() == [[0, 1, 3, 4, 4], [0, 1]]
    assert ratings.candidates(0) == [0, 1, 3, 4, 4]
    assert np.exp(ratings.candidate_log_likelihoods[2:5]) == pytest.approx(0.1)
    assert ratings.samples.tolist() == [3, 0]
    assert ratings.sampled.tolist() == [False, False, True, True, True, False, False]
    assert ratings.top_ids.tolist() == [0, 0]
    assert ratings.covered == pytest.approx([0.7, 0.99])


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    """To the bit, from a path; and no pickle is in it."""
    ratings = with_samples(distributions(9, 60, 1.0), 0.9, 20, draws=5)
    assert np.count_nonzero(ratings.samples) > 0
    ratings.save(tmp_path / "kept.npz")
    again = Ratings.load(tmp_path / "kept.npz")
    for name in ("log_likelihoods", "offsets", "ids", "candidate_log_likelihoods", "samples"):
        one, other = getattr(ratings, name), getattr(again, name)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def test_no_positions_can_be_saved() -> None:
    """Nothing is something, too."""
    file = io.BytesIO()
    rated(distributions(0, 5, 1.0), 0.9, 5).save(file)
    file.seek(0)
    again = Ratings.load(file)
    assert (len(again), again.candidate_lists(), again.covered.tolist()) == (0, [], [])
    assert kl_divergences(again, []).tolist() == []


def test_a_damaged_file_is_noticed_wherever_it_is_damaged() -> None:
    """Cut off anywhere, or with any byte changed, it is refused or as it was."""
    file = io.BytesIO()
    ratings = rated(distributions(3, 20, 2.0), 0.9, 20)
    ratings.save(file)
    data = file.getvalue()
    refused = 0
    for place in range(len(data)):
        for bad in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
            try:
                again = Ratings.load(io.BytesIO(bad))
            except ValueError:
                refused += 1
            else:
                assert again.ids.tolist() == ratings.ids.tolist()
                assert again.candidate_log_likelihoods == pytest.approx(
                    ratings.candidate_log_likelihoods, abs=0
                )
    assert refused > len(data)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": np.array([2, 2], np.uint32)},
        {"counts": np.array([3, 0], np.uint32)},
        {"samples": np.array([1, 0], np.uint32)},
        {"samples": np.array([0], np.uint32)},
        {"samples": np.array([0, 0])},
        {"ids": np.array([1, 2, 3], np.int64)},
        {"log_likelihoods": np.array([-1.0, np.nan])},
    ],
    ids=[
        "too few candidates",
        "a position without any",
        "nothing but samples",
        "too few counts of samples",
        "counts of another type",
        "another type",
        "no number",
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, NDArray[np.generic]]) -> None:
    """A sound file of something else is no ratings."""
    parts: dict[str, NDArray[np.generic]] = {
        "log_likelihoods": np.array([-1.0, -2.0]),
        "counts": np.array([1, 2], np.uint32),
        "samples": np.array([0, 1], np.uint32),
        "ids": np.array([1, 2, 3], np.uint32),
        "candidate_log_likelihoods": np.array([-0.1, -1, -1], np.float32),
    }
    for content, sound in ((parts, True), (parts | change, False)):
        file = io.BytesIO()
        np.savez(file, **content)  # type: ignore[arg-type]
        file.seek(0)
        if sound:
            assert Ratings.load(file).candidate_lists() == [[1], [2, 3]]
        else:
            with pytest.raises(ValueError, match="damaged"):
                Ratings.load(file)


def test_a_divergence_is_scipys_over_all_tokens_and_less_over_some() -> None:
    """And what is lost is the rest's share times the divergence among the rest."""
    ours = distributions(40, 200, 2.0)
    theirs = log_softmax(ours + np.random.default_rng(1).standard_normal(ours.shape), axis=1)
    real = entropy(np.exp(ours), np.exp(theirs), axis=1)
    whole = kl_divergences(rated(ours, 1.1, 200), theirs.tolist())
    assert whole == pytest.approx(real, rel=1e-6, abs=1e-7)

    some = rated(ours, 1.1, 30)
    found = kl_divergences(some, theirs[:, :30].tolist())
    rest = np.exp(ours[:, 30:]).sum(axis=1)
    among = entropy(np.exp(ours[:, 30:]), np.exp(theirs[:, 30:]), axis=1)
    assert found + rest * among == pytest.approx(real, rel=1e-6, abs=1e-7)
    assert (rest * among).max() > 0.01, "nothing was lost that a fault could hide in"
    width = np.ptp((theirs - ours)[:, 30:], axis=1)
    assert (rest * among <= rest * width**2 / 8).all()
    flat = kl_divergences(some, np.ascontiguousarray(theirs[:, :30]).reshape(-1))
    assert flat.tolist() == found.tolist()


def test_rounding_to_float32_is_lost_beside_what_is_measured() -> None:
    """The same distribution in float64 is 1e-12 nat away at most; a near one as far as it is."""
    ours = distributions(50, 500, 3.0)
    ratings = rated(ours, 0.999, 240)
    counts = np.diff(ratings.offsets)
    same = [row[:count].tolist() for row, count in zip(ours, counts, strict=True)]
    assert kl_divergences(ratings, same).max() < 1e-12

    logits = ours + 1e-3 * np.random.default_rng(2).standard_normal(ours.shape)
    near = log_softmax(logits, axis=1)
    rows = [row[:count].tolist() for row, count in zip(near, counts, strict=True)]
    found = kl_divergences(ratings, rows)
    real = entropy(np.exp(ours), np.exp(near), axis=1)
    assert real.min() > 1e-8
    assert real.max() < 1e-5
    assert found == pytest.approx(real, rel=0.01)


@pytest.mark.parametrize("difference", [1e-3, 0.3, 2.0])
def test_on_average_over_samples_a_divergence_is_the_whole(difference: float) -> None:
    """Of 12 likeliest and 6 samples of 60 tokens: within 4 standard errors of scipy's value."""
    chance = np.random.default_rng(int(1000 * difference))
    ours = distributions(6, 60, 1.0, seed=11)
    theirs = log_softmax(ours + difference * chance.standard_normal(ours.shape), axis=1)
    real = entropy(np.exp(ours), np.exp(theirs), axis=1)
    tops = np.tile(np.arange(12), (6, 1))
    found = []
    for _ in range(2000):
        ids, logs = drawn(ours[:, 12:], chance.random(6), 6)
        ratings = compact(tops, ours[:, :12], ours[:, 0], 0.999, (ids + 12, logs))
        found.append(kl_divergences(ratings, told(ratings, theirs)))
    lumped = kl_divergences(rated(ours, 0.999, 12), theirs[:, :12].tolist())
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    lost = real - lumped
    assert (lost > 20 * error).all(), "nothing was lost that a fault could hide in"
    assert (np.abs(np.mean(found, axis=0) - real) < 4 * error + 1e-9).all()
    # Not only on average: each estimate is of the exact part and something that is at least 0.
    assert (np.array(found) >= lumped - 1e-9).all()


def test_samples_that_all_differ_alike_make_it_exact() -> None:
    """0.5 and ten of 0.05 against 0.9 and ten of 0.01, with only two of the ten drawn."""
    ours, theirs = np.log([[0.5, *[0.05] * 10]]), np.log([[0.9, *[0.01] * 10]])
    ids, logs = drawn(ours[:, 1:], np.array([0.3]), 2)
    ratings = compact(np.array([[0]]), ours[:, :1], ours[:, 0], 0.9, (ids + 1, logs))
    expected = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.05 / 0.01)
    assert kl_divergences(ratings, told(ratings, theirs)) == pytest.approx([expected], rel=1e-6)


def test_the_same_distribution_is_no_divergence_away_with_samples() -> None:
    """In float64 and in float32, where the rest is large and where it is small."""
    for spread in (0.1, 1.0, 3.0):
        ours = distributions(50, 3000, spread)
        ratings = with_samples(ours, 0.999, 160, draws=80)
        assert ratings.samples.max() == 80
        for same in (ours, ours.astype(np.float32)):
            assert kl_divergences(ratings, told(ratings, same)).max() < 1e-9


def test_a_variant_that_leaves_nothing_for_the_others_is_as_far_as_it_is() -> None:
    """A rest of 1e-7, 1e-12 or, by rounding, less than none: the logarithms tell it all."""
    ours = distributions(20, 400, 1.0, seed=5)
    ratings = with_samples(ours, 0.999, 100, draws=50)
    assert (ratings.samples == 50).all()
    for left in (1e-7, 1e-12, 1e-40):
        shares = np.exp(ours)
        shares[:, :100] *= (1 - left) / shares[:, :100].sum(axis=1, keepdims=True)
        shares[:, 100:] *= left / shares[:, 100:].sum(axis=1, keepdims=True)
        real = entropy(np.exp(ours), shares, axis=1)
        for above in (0, 1e-7, -1e-7):
            rows = told(ratings, np.log(shares) + above)
            assert kl_divergences(ratings, rows) == pytest.approx(real, rel=1e-4)


@pytest.mark.parametrize("theirs", [[[-1.0]], [[-1.0, -2.0], []], [[-1.0, -2.0, -3.0]]])
def test_other_counts_than_candidates_are_refused(theirs: list[list[float]]) -> None:
    """Nothing is compared with another token's likelihood."""
    ratings = rated(np.log([[0.6, 0.4]]), 0.99, 2)
    with pytest.raises(ValueError, match="as many"):
        kl_divergences(ratings, theirs)
    with pytest.raises(ValueError, match="as many"):
        kl_divergences(ratings, np.zeros(3))
