"""How likely given tokens are by a framework's logits, some positions at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure, Scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.base import ScoreRequest

    Floats = NDArray[np.float32]

LOGITS_BYTES = 64 << 20
"""Of the positions whose logits are made at once: 341 of a vocabulary of 49152."""

BLOCK_BYTES = 1 << 20
"""Of the logits that are worked on at once, so that they stay in the CPU's cache."""


def positions_at_once(vocabulary_size: int, most: int | None = None) -> int:
    """How many positions to score in one pass, at least one.

    Args:
        vocabulary_size: logits of a position, in float32.
        most: no more than so many, if not None.
    """
    count = max(1, LOGITS_BYTES // (4 * vocabulary_size))
    return count if most is None else max(1, min(count, most))


class RatedLogits:
    """Collects the scores of a request from the logits before each of its tokens.

    The logarithm of the sum over a vocabulary is made of differences to the highest logit and of
    exponentials in float32, added up in float64: within 1e-7 of all in float64, in a third of the
    time.

    Args:
        request: its start is at least 1, its ids and candidates are within the vocabulary.
        no_logit: what is as large as that, or larger, stands for what is no number.
    """

    def __init__(self, request: ScoreRequest, no_logit: float = math.inf) -> None:
        self._ids = [int(number) for number in request.ids]
        self._start = request.start
        self._wanted = request.candidates
        self._no_logit = no_logit
        self._likelihoods: list[float] = []
        self._top_ids: list[int] = []
        self._candidates: list[list[float]] = []
        self._fault: str | None = None

    def add(self, rows: Floats) -> None:
        """Take the logits before the next tokens, (tokens, vocabulary); they are not kept.

        What is no number is told by `scores`, not here: an exception would keep the framework's
        memory, which may not outlive its pass.
        """
        import numpy as np  # noqa: PLC0415 - only scoring needs it

        size = max(1, BLOCK_BYTES // (4 * rows.shape[1]))
        scratch = np.empty((min(size, len(rows)), rows.shape[1]), np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            for first in range(0, len(rows), size):
                if self._fault is None:
                    self._add_block(rows[first : first + size], scratch)

    def _add_block(self, rows: Floats, scratch: Floats) -> None:
        import numpy as np  # noqa: PLC0415

        rows = rows.astype(np.float32, copy=False)  # a library may give float16
        places = np.arange(len(rows))
        best, worst = rows.argmax(axis=1), rows.argmin(axis=1)  # of a NaN, if there is one
        highest, lowest = rows[places, best], rows[places, worst]
        differences = scratch[: len(rows)]
        np.subtract(rows, highest[:, np.newaxis], out=differences)
        np.exp(differences, out=differences)
        totals = highest + np.log(differences.sum(axis=1, dtype=np.float64))
        for place, row in enumerate(rows):
            at = len(self._top_ids)
            if not (-self._no_logit < lowest[place] and highest[place] < self._no_logit):
                token = (best if highest[place] >= self._no_logit else worst)[place]
                self._fault = f"the logit of token {token} as {row[token]:g}"
                return
            # The token itself is the first, so that one look-up serves both.
            named = [self._ids[self._start + at], *(self._wanted[at] if self._wanted else ())]
            rated, *others = (row[named].astype(np.float64) - totals[place]).tolist()
            self._likelihoods.append(rated)
            self._top_ids.append(int(best[place]))
            self._candidates.append(others)

    def scores(self, what: str, why: str) -> Scores:
        """Of all positions, once all logits were added.

        Args:
            what: that computed them, such as ``MNN``, for an error.
            why: what is likely to be wrong then.

        Raises:
            RunnerFailure: a logit is no number; the position of the first is named.
        """
        if self._fault is not None:
            position = self._start + len(self._top_ids)
            msg = (
                f"{what} computed {self._fault}, for position {position} of {len(self._ids)} "
                f"(counted from 0): {why}"
            )
            raise RunnerFailure(msg)
        return Scores(self._likelihoods, self._top_ids, self._candidates if self._wanted else None)
