"""What ends a generation of a bundle: it must name something, or the engine fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_pack import Stops

if TYPE_CHECKING:
    from edgebench.models.tokenizer import Tokenizer

STOPS = ("reserved", "model")
"""``reserved``: nothing that the model can make, so that a generation has the length that is asked
for; ``model``: the model's own ends of a text."""


def stops_of(kind: str, tokenizer: Tokenizer, vocabulary_size: int) -> Stops:
    """What ends a generation.

    Args:
        kind: one of `STOPS`.
        tokenizer: of the model.
        vocabulary_size: of the model; it makes ids below it only.

    Raises:
        RunnerFailure: the model's own ends are asked for, and it names none.
    """
    if kind == STOPS[0]:
        # The engine takes an id that its tokenizer does not have.
        return Stops(kind, [[vocabulary_size]])
    if not tokenizer.end_ids:
        msg = "stop_tokens is model, but the model names no token that ends a text; choose reserved"
        raise RunnerFailure(msg, reason="invalid")
    return Stops(kind, [[token] for token in tokenizer.end_ids])
