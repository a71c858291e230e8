"""What is looked at in every runner's scores before they are sent, and after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgebench.runners.base import ScoreRequest, Scores


def not_finite(scores: Scores, request: ScoreRequest) -> str | None:
    """A sentence on the first log-likelihood that is NaN or infinite; None where none is.

    Args:
        scores: need not be as many as the request asks for.
        request: what was rated, for the names of tokens and positions.
    """
    for place, number in enumerate(scores.log_likelihoods):
        if not math.isfinite(number):
            ids = request.ids[request.start + place :]
            return _sentence(number, ids[0] if ids else None, request.start + place)
    for place, numbers in enumerate(scores.candidates or () if request.candidates else ()):
        if not all(map(math.isfinite, numbers)):
            rank = next(rank for rank, each in enumerate(numbers) if not math.isfinite(each))
            ids = (request.candidates[place] if place < len(request.candidates) else ())[rank:]
            return _sentence(numbers[rank], ids[0] if ids else None, request.start + place)
    return None


def _sentence(number: float, token: int | None, position: int) -> str:
    named = "a token" if token is None else f"token {token}"
    return (
        f"the log-likelihood of {named} at position {position} is {number}: the framework's "
        "arithmetic went out of range there, or its weights are damaged; try a quantization or "
        "options with more bits, or have the artifact made anew"
    )
