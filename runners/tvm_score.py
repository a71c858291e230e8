"""How likely given tokens are, by the logits of a compiled library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import Scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.runners.base import ScoreRequest
    from edgebench.runners.tvm_engine import Model

LOGITS_BYTES = 32 << 20
"""Of the positions that are scored at once: 170 of a vocabulary of 49152."""


def score(model: Model, request: ScoreRequest) -> Scores:
    """Rate ``ids[start:]``, the cache kept between passes.

    Args:
        model: with a vocabulary that holds all ids of the request.
        request: its start is at least 1 and below the number of its ids.

    Raises:
        RunnerFailure: a logit is no number.
    """
    import numpy as np  # noqa: PLC0415 - TVM needs it too

    ids = [int(number) for number in request.ids]
    likelihoods: list[float] = []
    top_ids: list[int] = []
    rated: list[list[float]] = []
    for row, token in zip(_rows(model, ids, request.start), ids[request.start :], strict=True):
        top = int(row.argmax())  # of a NaN, if there is one
        model.check_logit(row[top])
        logits = row.astype(np.float64)
        logits -= logits[top]
        total = np.log(np.exp(logits).sum())
        if request.candidates:
            candidates = list(request.candidates[len(top_ids)])
            rated.append([float(value) for value in logits[candidates] - total])
        likelihoods.append(float(logits[token] - total))
        top_ids.append(top)
    return Scores(likelihoods, top_ids, rated if request.candidates else None)


def _rows(model: Model, ids: list[int], start: int) -> Iterator[NDArray[np.float32]]:
    """The logits before each of ``ids[start:]``, (vocabulary,), good until the next one."""
    model.restart()
    last = len(ids) - 1
    if not model.verifies:
        yield model.prefill(ids[:start])
        for token in ids[start:last]:
            yield model.decode(token)
        return
    model.fill(ids[: start - 1])
    step = max(1, min(model.chunk, LOGITS_BYTES // (4 * model.vocabulary_size)))
    for first in range(start - 1, last, step):
        yield from model.all_logits(ids[first : min(first + step, last)])
