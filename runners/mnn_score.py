"""How likely given tokens are, by MNN's logits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from edgebench.runners.base import Scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.base import ScoreRequest
    from edgebench.runners.mnn_engine import Engine

SCORE_BATCH = 128
"""Positions scored at once: their logits take 4 bytes x vocabulary each, twice."""


def score(engine: Engine, request: ScoreRequest) -> Scores:
    """Rate ``ids[start:]`` in passes of at most `SCORE_BATCH` positions, the cache kept between.

    Args:
        engine: with a vocabulary that holds all ids of the request.
        request: its start is at least 1 and below the number of its ids.
    """
    ids = [int(number) for number in request.ids]
    engine.restart()
    engine.fill(ids[: request.start - 1])
    rated = _Rated(request)
    # A folder may limit the tokens of a pass; of more than that many, MNN gives the last logits.
    step = min(SCORE_BATCH, json.loads(engine.settings()).get("chunk") or SCORE_BATCH)
    engine.configure({"all_logits": True})
    try:
        for first in range(request.start - 1, len(ids) - 1, step):
            last = min(first + step, len(ids) - 1)
            rows = engine.all_logits(ids[first:last])
            for row, position in zip(rows, range(first, last), strict=True):
                rated.add(row, ids[position + 1])
    finally:
        engine.configure({"all_logits": False})
    return rated.scores()


class _Rated:
    """Collects the figures of one position after the other."""

    def __init__(self, request: ScoreRequest) -> None:
        self._candidates = request.candidates
        self._log_likelihoods: list[float] = []
        self._top_ids: list[int] = []
        self._rated: list[list[float]] = []

    def add(self, row: NDArray[np.float32], token: int) -> None:
        """Take the logits before `token`, (vocabulary,)."""
        import numpy as np  # noqa: PLC0415 - MNN needs it too

        logits = row.astype(np.float64)
        top = logits.max()
        total = top + np.log(np.exp(logits - top).sum())
        if self._candidates:
            ids = list(self._candidates[len(self._top_ids)])
            self._rated.append([float(value) for value in logits[ids] - total])
        self._log_likelihoods.append(float(logits[token] - total))
        self._top_ids.append(int(row.argmax()))

    def scores(self) -> Scores:
        """Of all positions."""
        rated = self._rated if self._candidates else None
        return Scores(self._log_likelihoods, self._top_ids, rated)
