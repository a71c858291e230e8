"""A few of the tokens that are not among the likeliest, drawn by how likely they are.

Which tokens are the likeliest, and what is left for all others, is known only when the output layer
was read to its end: drawing some of the others takes reading it once more.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models import reference_head
from edgebench.models.weights import Floats, row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from edgebench.models.reference_head import Likeliest
    from edgebench.models.weights import Tensor

NONE = -1
"""In the place of an id: nothing was drawn there."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Tokens that were drawn at each of some positions, with repetitions.

    Attributes:
        ids: (positions, draws), ascending, or `NONE` all along a position.
        log_likelihoods: (positions, draws), theirs; natural logarithms.
    """

    ids: NDArray[np.int64]
    log_likelihoods: NDArray[np.float64]


def chances(ids: Sequence[int]) -> NDArray[np.float64]:
    """For each token of a text a number in [0, 1), the same ones for the same text.

    They are as good as random, and don't depend on what else is rated, when, or by whom.
    """
    seed = hashlib.sha256(np.array(ids, dtype="<i8").tobytes()).digest()
    return np.random.default_rng(int.from_bytes(seed)).random(len(ids))


def draw(
    output: Tensor,
    hidden: Floats,
    found: Likeliest,
    chance: NDArray[np.float64],
    *,
    draws: int,
    covered: float,
    progress: Callable[[int, int], None],
) -> Samples:
    """Draw tokens where the likeliest hold too little.

    By systematic sampling: the others stand side by side, each as wide as it is likely, and `draws`
    marks in equal distances name the tokens that they fall on. So each token is named as often as
    its share of the others has it on average over all `chance`, and one that is more than a
    `draws`-th of them is named for certain.

    Args:
        output: (vocabulary, hidden), as for `likeliest`.
        hidden: (positions, hidden), as for `likeliest`.
        found: what that found.
        chance: (positions,), from 0 to below 1: where the first mark is.
        draws: how many tokens are drawn at a position.
        covered: the share that the likeliest must hold for a position to need no draws.
        progress: told of the rows done and of all rows.
    """
    count, vocabulary = len(hidden), output.shape[0]
    ids = np.full((count, draws), NONE, dtype=np.int64)
    logs = np.zeros((count, draws))
    rest = 1 - np.exp(found.log_likelihoods).sum(axis=1)
    needy = np.flatnonzero((rest > 1 - covered) & (found.ids.shape[1] < vocabulary))
    marks = (np.arange(draws) + chance[:, None]) / draws * rest[:, None]
    step = reference_head.POSITIONS
    parts = [
        (at, _Drawing(hidden[at], found.ids[at], found.totals[at], marks[at]))
        for at in (needy[start : start + step] for start in range(0, len(needy), step))
    ]
    first = 0
    for rows in row_blocks(output) if parts else ():
        progress(first, vocabulary)
        for _, part in parts:
            part.take(rows, first)
        first += len(rows)
    for at, part in parts:
        ids[at], logs[at] = part.result()
    return Samples(ids, logs)


class _Drawing:
    """Some positions, over the rows of the output layer seen so far."""

    def __init__(
        self,
        hidden: Floats,
        likeliest: NDArray[np.int64],
        totals: NDArray[np.float64],
        marks: NDArray[np.float64],
    ) -> None:
        self._hidden = hidden
        self._likeliest = likeliest
        self._totals = totals
        self._marks = marks
        self._ids = np.full(marks.shape, NONE, dtype=np.int64)
        self._logits = np.zeros(marks.shape)
        self._done = np.zeros(len(marks), dtype=np.int64)
        self._passed = np.zeros(len(marks))

    def take(self, rows: Floats, first: int) -> None:
        """Take the logits of the tokens ``[first : first + len(rows)]``."""
        logits = self._hidden @ rows.T
        for place, row in enumerate(logits):
            shares = np.exp(row - np.float32(self._totals[place]))
            taken = self._likeliest[place] - first
            shares[taken[(taken >= 0) & (taken < len(rows))]] = 0
            ends = self._passed[place] + np.cumsum(shares, dtype=np.float64)
            if ends[-1] == self._passed[place]:
                continue
            begin, stop = self._done[place], int(np.searchsorted(self._marks[place], ends[-1]))
            columns = np.searchsorted(ends, self._marks[place, begin:stop], side="right")
            self._put(place, slice(begin, stop), columns + first, row[columns])
            # Rounding may leave the last mark beyond the last token: it is that one's, until there
            # is another.
            last = int(np.searchsorted(ends, ends[-1]))
            self._put(place, slice(stop, None), last + first, row[last])
            self._done[place], self._passed[place] = stop, ends[-1]

    def _put(
        self, place: int, at: slice, ids: NDArray[np.int64] | int, logits: NDArray[np.float32]
    ) -> None:
        self._ids[place, at] = ids
        self._logits[place, at] = logits

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The ids and their log-likelihoods."""
        return self._ids, np.minimum(self._logits - self._totals[:, None], 0.0)
