"""Scoring with llama.cpp: as few decodes as logits have room for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.rated_logits import RatedLogits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.runners.base import ScoreRequest, Scores

LOGITS_BYTES = 256 << 20
"""The most that the logits of one decode may take: the second half of a window of 512 tokens fits
in one even with a vocabulary of 262,144. Of a step of 512 tokens, llama.cpp itself holds twice as
many."""

BAD = "the file is damaged, or its quantisation or the options lose a number's range"

KEEP_DATA = False  # forgetting the cells is enough; clearing their memory would only take time


def score(
    lib: Any,  # noqa: ANN401 - a module without types
    context: Any,  # noqa: ANN401
    vocabulary: int,
    batch_size: int,
    request: ScoreRequest,
) -> Scores:
    """Log-likelihoods of ``ids[start:]`` from the logits of the positions before them.

    Args:
        lib: the bindings.
        context: with room for all ids; it is emptied before.
        vocabulary: how many logits each position has.
        batch_size: the most tokens of a decode.
        request: checked.

    Raises:
        RunnerFailure: llama.cpp can't decode them, or a logit is no number.
    """
    import numpy as np  # noqa: PLC0415 - the bindings need it too

    ids, start = request.ids, request.start
    rated = RatedLogits(request)
    lib.llama_memory_clear(lib.llama_get_memory(context), KEEP_DATA)
    batch = lib.llama_batch_init(min(batch_size, len(ids)), 0, 1)
    try:
        for first, last in parts(len(ids), start, batch_size, LOGITS_BYTES // (4 * vocabulary)):
            rows = _fill(batch, ids, first, last, start)
            if lib.llama_decode(context, batch):
                msg = f"llama_decode failed at positions {first} to {last - 1}"
                raise RunnerFailure(msg)
            if rows:
                # One buffer, in the order of the batch; good until the next decode.
                pointer = lib.llama_get_logits(context)
                rated.add(np.ctypeslib.as_array(pointer, shape=(rows, vocabulary)))
    finally:
        lib.llama_batch_free(batch)
    return rated.scores("llama.cpp", BAD)


def parts(count: int, start: int, batch_size: int, rows: int) -> Iterator[tuple[int, int]]:
    """Cut `count` tokens into decodes, the first token of each and the one behind its last.

    The last token is decoded although nothing is asked of it: whoever rates whole windows, as
    llama.cpp's own tools do, has it in the batch, and with it the arithmetic is the same. It gets
    no decode of its own.

    Args:
        count: of tokens.
        start: the first to be scored, at least 1; logits are wanted from the one before on.
        batch_size: the most tokens of a decode.
        rows: the most tokens of which logits are wanted in a decode.
    """
    first = 0
    while first < count - 1:
        unrated = max(0, start - 1 - first)
        last = min(count, first + min(batch_size, unrated + max(1, rows)))
        yield first, last
        first = last


def _fill(batch: Any, ids: Sequence[int], first: int, last: int, start: int) -> int:  # noqa: ANN401
    """Fill a batch with ``ids[first:last]``; how many of them have their logits wanted."""
    batch.n_tokens = last - first
    wanted = range(max(first, start - 1), min(last, len(ids) - 1))
    for row, position in enumerate(range(first, last)):
        batch.token[row] = ids[position]
        batch.pos[row] = position
        batch.n_seq_id[row] = 1
        batch.seq_id[row][0] = 0
        batch.logits[row] = position in wanted
    return len(wanted)
