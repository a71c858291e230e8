"""What a runner's process sends, parsed and checked once, at the edge."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from edgebench.harness.errors import InvalidResultError, RunnerProtocolError
from edgebench.runners.base import Description, GenerateRequest, Generation, LoadedModel

T = TypeVar("T")

_DESCRIPTION = TypeAdapter(Description)
_GENERATION = TypeAdapter(Generation)
_MODEL = TypeAdapter(LoadedModel)
_IDS = TypeAdapter(list[int])
_NUMBERS = TypeAdapter(list[float])


def description(result: dict[str, Any]) -> Description:
    """The answer to ``probe``."""
    return _parse(_DESCRIPTION, result, "description")


def loaded_model(result: dict[str, Any]) -> tuple[LoadedModel, int, int]:
    """The answer to ``load``: the model, and when loading began and was over, in ns."""
    started, ready = _parse(_IDS, [result.get("started_ns"), result.get("ready_ns")], "load times")
    if ready < started:
        msg = "loading ended before it began"
        raise InvalidResultError(msg)
    return _parse(_MODEL, result.get("model"), "loaded model"), started, ready


def token_ids(result: dict[str, Any]) -> list[int]:
    """The answer to ``tokenize``."""
    return _parse(_IDS, result.get("ids"), "token ids")


def log_likelihoods(result: dict[str, Any], count: int) -> list[float]:
    """The answer to ``score``: `count` numbers, at most 0."""
    values = _parse(_NUMBERS, result.get("log_likelihoods"), "log-likelihoods")
    if len(values) != count:
        msg = f"{len(values)} scores for {count} tokens"
        raise InvalidResultError(msg)
    if any(value > 0 for value in values):
        msg = "a log-likelihood above 0"
        raise InvalidResultError(msg)
    return values


def generation(
    result: dict[str, Any], request: GenerateRequest, vocabulary_size: int
) -> Generation:
    """The answer to ``generate``, if it can be true.

    Raises:
        InvalidResultError: other counts than asked for, ids outside of the vocabulary, or time
            stamps that go back: no rate is computed from such an answer.
    """
    made = _parse(_GENERATION, result, "generation")
    for problem in _problems(made, request, vocabulary_size):
        raise InvalidResultError(problem)
    return made


def _problems(made: Generation, request: GenerateRequest, vocabulary_size: int) -> list[str]:
    problems = []
    count = len(made.token_ids)
    if count != request.max_tokens:
        problems.append(
            f"{count} tokens were made of {request.max_tokens} asked for "
            f"(finish reason: {made.finish_reason})"
        )
    if len(made.token_ns) != count:
        problems.append(f"{len(made.token_ns)} time stamps for {count} tokens")
    if made.prompt_tokens != len(request.prompt_ids):
        problems.append(
            f"the framework processed {made.prompt_tokens} prompt tokens, "
            f"{len(request.prompt_ids)} were asked for"
        )
    if made.depth_tokens != len(request.depth_ids):
        problems.append(
            f"{made.depth_tokens} tokens were in the cache, {len(request.depth_ids)} asked for"
        )
    if any(not 0 <= number < vocabulary_size for number in made.token_ids):
        problems.append(f"a token id outside of the vocabulary of {vocabulary_size}")
    stamps = [made.submitted_ns, made.tokenized_ns, made.prefilled_ns, *made.token_ns]
    known = [stamp for stamp in stamps if stamp is not None]
    if any(later < earlier for earlier, later in pairwise(known)):
        problems.append("the time stamps go back")
    return problems


def _parse(adapter: TypeAdapter[T], value: object, what: str) -> T:
    try:
        # By way of JSON, whose strict mode takes a list for a tuple and nothing else.
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        msg = f"the runner's {what} is malformed: {place}: {first['msg']}"
        raise RunnerProtocolError(msg) from None
