"""How likely given tokens are, by MNN's logits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from edgebench.runners.mnn_engine import BAD, NO_LOGIT
from edgebench.runners.rated_logits import RatedLogits, positions_at_once

if TYPE_CHECKING:
    from edgebench.runners.base import ScoreRequest, Scores
    from edgebench.runners.mnn_engine import Engine


def score(engine: Engine, request: ScoreRequest) -> Scores:
    """Rate ``ids[start:]`` in passes of many positions, the cache kept between.

    Args:
        engine: with a vocabulary that holds all ids of the request.
        request: its start is at least 1 and below the number of its ids.

    Raises:
        RunnerFailure: a pass failed, or a logit is no number.
    """
    ids = [int(number) for number in request.ids]
    engine.restart()
    engine.fill(ids[: request.start - 1])
    rated = RatedLogits(request, NO_LOGIT)
    # A folder may limit the tokens of a pass; of more than that many, MNN gives the last logits.
    limit = json.loads(engine.settings()).get("chunk") or None
    step = positions_at_once(engine.vocabulary_size, limit)
    engine.configure({"all_logits": True})
    try:
        for first in range(request.start - 1, len(ids) - 1, step):
            engine.all_logits(ids[first : min(first + step, len(ids) - 1)], rated.add)
    finally:
        engine.configure({"all_logits": False})
    return rated.scores("MNN", BAD)
