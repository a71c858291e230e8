"""How likely given tokens are, by the logits of a compiled library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.rated_logits import RatedLogits, positions_at_once
from edgebench.runners.tvm_engine import BAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.base import ScoreRequest, Scores
    from edgebench.runners.tvm_engine import Model


def score(model: Model, request: ScoreRequest) -> Scores:
    """Rate ``ids[start:]``, the cache kept between passes.

    Args:
        model: with a vocabulary that holds all ids of the request.
        request: its start is at least 1 and below the number of its ids.

    Raises:
        RunnerFailure: a logit is no number.
    """
    rated = RatedLogits(request)
    for rows in _logits(model, [int(number) for number in request.ids], request.start):
        rated.add(rows)
    return rated.scores("the library", BAD)


def _logits(model: Model, ids: list[int], start: int) -> Iterator[NDArray[np.float32]]:
    """The logits before each of ``ids[start:]``, (some, vocabulary), good until the next ones."""
    model.restart()
    last = len(ids) - 1
    if not model.verifies:
        yield model.prefill(ids[:start])[None]
        for token in ids[start:last]:
            yield model.decode(token)[None]
        return
    model.fill(ids[: start - 1])
    step = positions_at_once(model.vocabulary_size, model.chunk)
    for first in range(start - 1, last, step):
        yield model.all_logits(ids[first : min(first + step, last)])
