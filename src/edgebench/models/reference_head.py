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


@dataclass(frozen=True, slots=True)
class Likeliest:
    """What is known of the next token at each of some positions.

    Attributes:
        ids: (positions, kept), the likeliest tokens, likeliest first, the smaller id first where
            two are alike.
        log_likelihoods: (positions, kept), theirs; natural logarithms.
        named: (positions,), the log-likelihoods of the tokens that were named.
    """

    ids: NDArray[np.int64]
    log_likelihoods: NDArray[np.float64]
    named: NDArray[np.float64]


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
            part.take(rows, first)
        first += len(rows)
    if not parts:
        empty = np.empty((0, keep))
        return Likeliest(empty.astype(np.int64), empty, np.empty(0))
    done = [part.result() for part in parts]
    return Likeliest(
        ids=np.concatenate([part.ids for part in done]),
        log_likelihoods=np.concatenate([part.log_likelihoods for part in done]),
        named=np.concatenate([part.named for part in done]),
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
        grown = np.exp(logits - top[:, None].astype(np.float32)).sum(axis=1, dtype=np.float64)
        # The rounding of the maximum to float32 is exact: it was a float32 logit.
        self._sum = self._sum * np.exp(self._top - top) + grown
        self._top = top
        found = self._best_of(logits)
        ids = np.concatenate((self._ids, found + first), axis=1)
        best = np.concatenate((self._best, np.take_along_axis(logits, found, axis=1)), axis=1)
        kept = self._best_of(best)
        self._ids = np.take_along_axis(ids, kept, axis=1)
        self._best = np.take_along_axis(best, kept, axis=1)

    def result(self) -> Likeliest:
        """Sorted and normalised."""
        total = self._top + np.log(self._sum)
        order = np.lexsort((self._ids, -self._best), axis=1)
        best = np.take_along_axis(self._best, order, axis=1).astype(np.float64)
        return Likeliest(
            ids=np.take_along_axis(self._ids, order, axis=1),
            log_likelihoods=np.minimum(best - total[:, None], 0.0),
            named=np.minimum(self._logit - total, 0.0),
        )

    def _best_of(self, values: Floats) -> NDArray[np.int64]:
        if values.shape[1] <= self._keep:
            return np.broadcast_to(np.arange(values.shape[1]), values.shape)
        return np.argpartition(-values, self._keep - 1, axis=1)[:, : self._keep]
