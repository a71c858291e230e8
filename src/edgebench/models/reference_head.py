"""The output layer, read some rows at a time: likeliest tokens and the sums of all others.

The logits of many positions over a large vocabulary are never whole in memory: what is kept of
them is each position's normaliser, its likeliest tokens and the logit of one named token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.weights import Floats, row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edgebench.models.weights import Tensor

POSITIONS = 128
"""Positions whose logits are computed at once."""

GROUP = 16
"""Tokens, at most, of which the largest logit is looked for first."""


@dataclass(frozen=True, slots=True)
class Likeliest:
    """What is known of the next token at each of some positions.

    Attributes:
        ids: (positions, kept), the likeliest tokens, likeliest first, the smaller id first where
            two are alike.
        log_likelihoods: (positions, kept), theirs; natural logarithms.
        named: (positions,), the log-likelihoods of the tokens that were named.
        totals: (positions,), what is to be taken from a logit for its log-likelihood.
    """

    ids: NDArray[np.int64]
    log_likelihoods: NDArray[np.float64]
    named: NDArray[np.float64]
    totals: NDArray[np.float64]


def likeliest(
    output: Tensor,
    hidden: Floats,
    named: NDArray[np.int64],
    keep: int,
    progress: Callable[[int, int], None],
) -> Likeliest:
    """Run the output layer.

    Args:
        output: (vocabulary, hidden): ``lm_head.weight``, or the embedding where it is tied.
        hidden: (positions, hidden): the last layer's output, normalised.
        named: (positions,), a token for each position, whose likelihood is wanted.
        keep: how many of the likeliest tokens are wanted, fewer where the vocabulary is smaller.
        progress: told of the rows done and of all rows.
    """
    count, vocabulary = len(hidden), output.shape[0]
    keep = min(keep, vocabulary)
    parts = [
        _Running(hidden[start : start + POSITIONS], named[start : start + POSITIONS], keep)
        for start in range(0, count, POSITIONS)
    ]
    first = 0
    for rows in row_blocks(output):
        progress(first, vocabulary)
        for part in parts:
            with np.errstate(invalid="ignore", over="ignore"):  # for the caller to see
                part.take(rows, first)
        first += len(rows)
    if not parts:
        empty = np.empty((0, keep))
        return Likeliest(empty.astype(np.int64), empty, np.empty(0), np.empty(0))
    done = [part.result() for part in parts]
    return Likeliest(
        ids=np.concatenate([part.ids for part in done]),
        log_likelihoods=np.concatenate([part.log_likelihoods for part in done]),
        named=np.concatenate([part.named for part in done]),
        totals=np.concatenate([part.totals for part in done]),
    )


class _Running:
    """Some positions, over the rows of the output layer seen so far."""

    def __init__(self, hidden: Floats, named: NDArray[np.int64], keep: int) -> None:
        count = len(hidden)
        self._hidden = hidden
        self._named = named
        self._keep = keep
        self._rows = np.arange(count)
        self._top = np.full(count, -np.inf)
        self._sum = np.zeros(count)
        self._logit = np.full(count, np.nan)
        self._best = np.empty((count, 0), dtype=np.float32)
        self._ids = np.empty((count, 0), dtype=np.int64)

    def take(self, rows: Floats, first: int) -> None:
        """Take the logits of the tokens ``[first : first + len(rows)]``."""
        logits = self._hidden @ rows.T
        here = (self._named >= first) & (self._named < first + len(rows))
        self._logit[here] = logits[self._rows[here], self._named[here] - first]
        top = np.maximum(self._top, logits.max(axis=1))
        # What is kept stays sorted, the smaller id first where two are alike: ids only grow.
        values, ids = _largest(logits, self._keep, self._best)
        best = np.concatenate((self._best, values), axis=1)
        order = np.argsort(-best, axis=1, kind="stable")[:, : self._keep]
        self._ids = np.take_along_axis(
            np.concatenate((self._ids, ids + first), axis=1), order, axis=1
        )
        self._best = np.take_along_axis(best, order, axis=1)
        # The rounding of the maximum to float32 is exact: it was a float32 logit.
        logits -= top[:, None].astype(np.float32)
        np.exp(logits, out=logits)
        self._sum = self._sum * np.exp(self._top - top) + logits.sum(axis=1, dtype=np.float64)
        self._top = top

    def result(self) -> Likeliest:
        """Normalised."""
        total = self._top + np.log(self._sum)
        return Likeliest(
            ids=self._ids,
            log_likelihoods=np.minimum(self._best.astype(np.float64) - total[:, None], 0.0),
            named=np.minimum(self._logit - total, 0.0),
            totals=total,
        )


def _largest(logits: Floats, keep: int, known: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The `keep` largest logits of each row and some more, or all that can count.

    Sorting or partitioning whole rows would take longer than computing them. Where k of some
    groups have a maximum that is not below a bound, at least k logits are not: the k-th largest
    of the maxima is a bound that few logits reach which are not among the k largest themselves.

    Args:
        logits: (rows, tokens).
        keep: how many are wanted.
        known: (rows, at most `keep`), the largest of other tokens, largest first: once they are
            `keep`, what is not above the last of them does not count.

    Returns:
        Logits, -inf where a row has fewer than others, and their columns, ascending.
    """
    count, width = logits.shape
    bound = np.full((count, 1), -np.inf, dtype=np.float32)
    if width > keep:
        size = min(max(1, width // (2 * keep)), GROUP)
        groups = width // size
        # Neighbours are in different groups: tokens whose ids are near are often alike.
        maxima = logits[:, : groups * size].reshape(count, size, groups).max(axis=1)
        bound = np.partition(maxima, groups - keep, axis=1)[:, groups - keep, None]
    reached = logits >= bound
    if known.shape[1] == keep:
        reached &= logits > known[:, -1:]
    places = np.flatnonzero(reached)
    rows, columns = np.divmod(places, width)
    counts = np.bincount(rows, minlength=count)
    starts = np.cumsum(counts) - counts
    slots = np.arange(len(places)) - starts[rows]
    shape = (count, int(counts.max(initial=0)))
    values = np.full(shape, -np.inf, dtype=np.float32)
    ids = np.zeros(shape, dtype=np.int64)
    values[rows, slots] = logits[rows, columns]
    ids[rows, slots] = columns
    return values, ids
