"""What the reference says at many positions, compactly, and how far others are from it.

Whole distributions over a vocabulary of 150,000 tokens would take 600 kB a position. Kept are the
likeliest tokens T that cover nearly all of the probability and, where they don't, samples of all
others, each drawn as often as it is likely. With p the reference, q the variant, ``rest`` and
``left`` what p and q leave for the others, the divergence is (the chain rule)

    sum over T of p ln(p / q) + rest * ln(rest / left) + rest * KL(others)

where KL(others) is the divergence among the others, with shares of ``rest`` and of ``left``. It is
the mean of ``r - 1 - ln r`` over samples, ``r = (q / left) / (p / rest)``. How exact that is:

- The first two terms are. The mean of the third over all samples that could have been drawn is its
  value, for any q: the estimate is unbiased. It is never negative, and exact where r is the same
  for all others. Its standard error is about ``rest`` times the deviation of ``r - 1 - ln r`` over
  the root of the number of samples; in a mean over positions that is divided by the root of their
  number. All variants have the same samples.
- Where there are none, the third term is missing and the figure too small by it. Where the logits
  of the others differ from the reference's by values within an interval of the width w, that is
  less than ``rest * w**2 / 8`` (Hoeffding's lemma).
- float32: a kept log-likelihood l is off by at most ``2**-24 * abs(l)``, that is 1e-6 for the
  unlikeliest that are kept. The rest is computed from the rounded values, so that they are a
  distribution again: where a variant says what the reference says, the divergence is off by the
  square of that over the rest, at most some 1e-10 nat; elsewhere by
  ``2**-24 * sum(p * abs(l) * abs(ln(p / q)))``, some 1e-7 of its own size.
- What q leaves, below 1e-5, is rounding of what it gives to T. There ``r - 1``, whose mean is 0, is
  left out: that needs the logarithms only.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

_LEAST = 1e-9
"""A share of the probability below which float32 can't tell it from none."""

_ROUNDED = 1e-5
"""A share of the probability that is no more than what float32 makes of hundreds of others."""

_NAMES = ("log_likelihoods", "counts", "samples", "ids", "candidate_log_likelihoods")


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What the reference says of the tokens at n positions, each given all tokens before it.

    Attributes:
        log_likelihoods: (n,), of the tokens that stand there; natural logarithms, at most 0.
        offsets: (n + 1,); ``[offsets[i] : offsets[i + 1]]`` are the candidates of position i.
        ids: the candidates: at least one of the likeliest tokens, likeliest first, the smaller id
            first where two are alike; then samples of all others, some of them repeatedly.
        candidate_log_likelihoods: theirs.
        samples: (n,), how many of each position's candidates are samples.
    """

    log_likelihoods: NDArray[np.float64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    candidate_log_likelihoods: NDArray[np.float32]
    samples: NDArray[np.uint32]

    def __len__(self) -> int:
        """How many positions."""
        return len(self.log_likelihoods)

    @property
    def top_ids(self) -> NDArray[np.uint32]:
        """(n,), the likeliest token of each position."""
        return self.ids[self.offsets[:-1]]

    @property
    def covered(self) -> NDArray[np.float64]:
        """(n,), the share of the probability that each position's likeliest tokens hold."""
        shares = np.exp(self.candidate_log_likelihoods, dtype=np.float64)
        return _sums(np.where(self.sampled, 0.0, shares), self.offsets)

    @property
    def sampled(self) -> NDArray[np.bool]:
        """Of each candidate, whether it is a sample."""
        counts = np.diff(self.offsets)
        # Counted from its position's end: 1 is the last one.
        back = np.repeat(self.offsets[1:], counts) - np.arange(len(self.ids))
        return back <= np.repeat(self.samples, counts)

    @property
    def nbytes(self) -> int:
        """What all of it takes in memory."""
        arrays = (self.log_likelihoods, self.offsets, self.samples)
        return sum(array.nbytes for array in (*arrays, self.ids, self.candidate_log_likelihoods))

    def candidates(self, position: int) -> list[int]:
        """The ids of one position's candidates, likeliest first, samples last."""
        first, last = self.offsets[position], self.offsets[position + 1]
        return [int(number) for number in self.ids[first:last]]

    def candidate_lists(self) -> list[list[int]]:
        """The ids of every position's candidates, as a request for scores wants them."""
        ids, bounds = self.ids.tolist(), self.offsets.tolist()
        return [ids[first:last] for first, last in pairwise(bounds)]

    def save(self, target: Path | BinaryIO) -> None:
        """Write them, as a compressed ``.npz`` of numpy without any pickle."""
        np.savez_compressed(
            target,
            log_likelihoods=self.log_likelihoods,
            counts=np.diff(self.offsets).astype(np.uint32),
            samples=self.samples,
            ids=self.ids,
            candidate_log_likelihoods=self.candidate_log_likelihoods,
        )

    @classmethod
    def load(cls, source: Path | BinaryIO) -> Ratings:
        """Read what `save` wrote.

        Raises:
            OSError: it can't be read.
            ValueError: it is cut off, damaged, or something else.
        """
        # Read here: numpy leaves files that are no archives open.
        data = source.read_bytes() if isinstance(source, Path) else source.read()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                own, counts, samples, ids, logs = (np.asarray(arrays[name]) for name in _NAMES)
        except Exception as error:  # zipfile has a dozen ways to say that a file is damaged
            msg = f"these are no ratings, or damaged ones ({error})"
            raise ValueError(msg) from error
        kinds = [array.dtype for array in (own, counts, samples, ids, logs)]
        offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        sound = (
            kinds == [np.float64, np.uint32, np.uint32, np.uint32, np.float32]
            and own.shape == counts.shape == samples.shape == (len(own),)
            and ids.shape == logs.shape == (offsets[-1],)
            and (counts > samples).all()
            and bool(np.isfinite(own).all() and np.isfinite(logs).all())
        )
        if not sound:
            msg = "these ratings are damaged: their parts don't fit together"
            raise ValueError(msg)
        return cls(own, offsets, ids, logs, samples)


def compact(
    ids: NDArray[np.int64],
    log_likelihoods: NDArray[np.float64],
    own: NDArray[np.float64],
    covered: float,
    drawn: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None,
) -> Ratings:
    """Ratings of the fewest of some likeliest tokens that hold a share of the probability.

    Args:
        ids: (n, kept), the likeliest tokens of each position, likeliest first.
        log_likelihoods: (n, kept), theirs.
        own: (n,), those of the tokens that stand there.
        covered: the share; where all of a position's hold less, all are taken.
        drawn: (n, draws) each, the ids of samples of all other tokens, negative where there are
            none, and their log-likelihoods.
    """
    kept = ids.shape[1]
    held = np.cumsum(np.exp(log_likelihoods), axis=1)
    counts = np.minimum(kept, 1 + np.count_nonzero(held < covered, axis=1))
    wanted = np.arange(kept) < counts[:, None]
    samples = np.zeros(len(ids), dtype=np.int64)
    if drawn is not None:
        ids = np.concatenate((ids, drawn[0]), axis=1)
        log_likelihoods = np.concatenate((log_likelihoods, drawn[1]), axis=1)
        wanted = np.concatenate((wanted, drawn[0] >= 0), axis=1)
        samples = np.count_nonzero(drawn[0] >= 0, axis=1)
    return Ratings(
        own.astype(np.float64),
        np.concatenate(([0], np.cumsum(counts + samples, dtype=np.int64))),
        ids[wanted].astype(np.uint32),
        log_likelihoods[wanted].astype(np.float32),
        samples.astype(np.uint32),
    )


def kl_divergences(
    ratings: Ratings, rated: Sequence[Sequence[float]] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """KL(reference || variant): of the likeliest tokens exactly, of all others estimated.

    Where there are samples the estimate is right on average over them; where there are none all
    others count as one token. See the module's head.

    Args:
        ratings: of the reference, n positions.
        rated: the variant's log-likelihoods of each position's candidates; or all of them, one
            position's after the other's, as one array.

    Returns:
        (n,), in nat, each at least 0.

    Raises:
        ValueError: there are not as many as candidates.
    """
    offsets = ratings.offsets
    if isinstance(rated, np.ndarray):
        theirs = rated.astype(np.float64)
        fits = theirs.shape == (offsets[-1],)
    else:
        counts = np.fromiter(map(len, rated), dtype=np.int64, count=len(rated))
        fits = np.array_equal(counts, np.diff(offsets))
        theirs = np.fromiter(chain.from_iterable(rated), dtype=np.float64)
    if not fits:
        msg = "there are not as many log-likelihoods as candidates"
        raise ValueError(msg)
    ours, sampled = ratings.candidate_log_likelihoods.astype(np.float64), ratings.sampled
    above = ours - theirs
    shares = np.where(sampled, 0.0, np.exp(ours))
    total = _sums(shares * above, offsets)
    rest = 1 - _sums(shares, offsets)
    left = 1 - _sums(np.where(sampled, 0.0, np.exp(theirs)), offsets)
    lumped = (rest > _LEAST) & (ratings.samples == 0)
    total[lumped] += rest[lumped] * np.log(rest[lumped] / np.maximum(_LEAST, left[lumped]))

    drawn = (rest > _LEAST) & (ratings.samples > 0)
    count = ratings.samples[drawn]
    total[drawn] += rest[drawn] * _sums(np.where(sampled, above, 0.0), offsets)[drawn] / count
    # The sums above are rest * mean(ln(p / q)), in which `left` cancels; here is mean(r) - 1.
    drawn &= left > _ROUNDED
    mean = _sums(np.where(sampled, np.exp(-above), 0.0), offsets)[drawn] / ratings.samples[drawn]
    total[drawn] += rest[drawn] * (mean * rest[drawn] / left[drawn] - 1)
    return np.maximum(0.0, total)


def _sums(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each position's values; none is without any."""
    if len(offsets) == 1:
        return np.empty(0)
    return np.add.reduceat(values, offsets[:-1])
