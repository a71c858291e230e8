"""What every runner refuses of a request before its framework sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.runners.base import GenerateRequest, ScoreRequest


def check_ids(ids: Sequence[int], vocabulary_size: int) -> None:
    """Refuse ids that are no tokens: a framework takes whatever is in memory for one.

    Raises:
        RunnerFailure: one is negative, or not below the vocabulary's size (invalid).
    """
    bad = [number for number in ids if not 0 <= number < vocabulary_size]
    if bad:
        msg = f"token id {bad[0]} is outside of the vocabulary of {vocabulary_size}"
        raise RunnerFailure(msg, reason="invalid")


def check_generation(request: GenerateRequest, vocabulary_size: int, context_tokens: int) -> None:
    """Refuse a generation that is empty, holds ids that are no tokens, or does not fit.

    Raises:
        RunnerFailure: it can't be done (invalid).
    """
    if not request.prompt_ids or request.max_tokens < 1:
        msg = "a prompt of at least one token and at least one token to make are needed"
        raise RunnerFailure(msg, reason="invalid")
    check_ids(request.prompt_ids, vocabulary_size)
    check_ids(request.depth_ids, vocabulary_size)
    asked = len(request.depth_ids) + len(request.prompt_ids) + request.max_tokens
    if asked > context_tokens:
        msg = f"{asked} tokens are asked for and the context holds {context_tokens}"
        raise RunnerFailure(msg, reason="invalid")


def check_scoring(request: ScoreRequest, vocabulary_size: int, context_tokens: int) -> None:
    """Refuse a rating of ids or candidates that are no tokens, or of positions there are not.

    Raises:
        RunnerFailure: it can't be done (invalid).
    """
    check_ids(request.ids, vocabulary_size)
    for candidates in request.candidates:
        check_ids(candidates, vocabulary_size)
    count = len(request.ids)
    if not 1 <= request.start < count:
        msg = f"can't score positions {request.start} to {count}; the first position is 1"
        raise RunnerFailure(msg, reason="invalid")
    if count > context_tokens:
        msg = (
            f"{count} tokens are to be rated and the context holds {context_tokens}: ask for "
            "smaller windows, or have the artifact made for a longer context"
        )
        raise RunnerFailure(msg, reason="invalid")
    if request.candidates and len(request.candidates) != count - request.start:
        msg = (
            f"candidates for {len(request.candidates)} positions are given, and "
            f"{count - request.start} are to be scored"
        )
        raise RunnerFailure(msg, reason="invalid")
