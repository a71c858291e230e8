"""What a runner's process sends, parsed and checked once, at the edge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from edgebench.harness.errors import InvalidResultError, RunnerProtocolError
from edgebench.runners.base import (
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadedTask,
    ScoreRequest,
    Scores,
    TaskDescription,
    TaskResult,
)
from edgebench.runners.checked_scores import not_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_DESCRIPTION = TypeAdapter(Description)
_GENERATION = TypeAdapter(Generation)
_MODEL = TypeAdapter(LoadedModel)
_IDS = TypeAdapter(list[int])
_SCORES = TypeAdapter(Scores)
_LOADED_TASK = TypeAdapter(LoadedTask)
_TASK_DESCRIPTION = TypeAdapter(TaskDescription)
_TASK_RESULT = TypeAdapter(TaskResult)
_TEXT = TypeAdapter(str)
_TEXTS = TypeAdapter(list[str])

ROUNDING = 1e-6
"""By how much a log-likelihood may be above 0, which rounding makes of a certain token."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a runner says of itself.

    Attributes:
        convert_options: the names of its options that shape the artifact that it makes.
        converter_version: changes where the same request gives another artifact than before;
            empty where only the framework's version counts.
        artifact_suffix: of the file that it makes; empty where it makes a folder.
    """

    description: Description
    convert_options: frozenset[str] = frozenset()
    converter_version: str = ""
    artifact_suffix: str = ""


def probe(result: dict[str, Any]) -> Probe:
    """The answer to ``probe``."""
    options: list[str] = _parse(_TEXTS, result.get("convert_options"), "options of converting")
    return Probe(
        description(result),
        frozenset(options),
        _parse(_TEXT, result.get("converter_version"), "converter's version"),
        _parse(_TEXT, result.get("artifact_suffix"), "artifact's suffix"),
    )


def description(result: dict[str, Any]) -> Description:
    """The framework, of the answer to ``probe``."""
    return _parse(_DESCRIPTION, result, "description")


def loaded_model(result: dict[str, Any]) -> tuple[LoadedModel, int, int]:
    """The answer to ``load``: the model, and when loading began and was over, in ns."""
    started, ready = _parse(_IDS, [result.get("started_ns"), result.get("ready_ns")], "load times")
    if ready < started:
        msg = "loading ended before it began"
        raise InvalidResultError(msg)
    return _parse(_MODEL, result.get("model"), "loaded model"), started, ready


def task_description(result: dict[str, Any]) -> TaskDescription:
    """The answer to ``describe_task``."""
    return _parse(_TASK_DESCRIPTION, result, "description of a task")


def loaded_task(result: dict[str, Any]) -> LoadedTask:
    """The answer to ``load_task``.

    Raises:
        InvalidResultError: loading ended before it began.
    """
    loaded = _parse(_LOADED_TASK, result, "loaded task")
    if loaded.ready_ns < loaded.started_ns:
        msg = "loading ended before it began"
        raise InvalidResultError(msg)
    return loaded


def task_result(result: dict[str, Any]) -> TaskResult:
    """The answer to ``task``, if it can be true.

    Raises:
        InvalidResultError: the time goes back, or the result is empty: nothing was made in it.
    """
    made = _parse(_TASK_RESULT, result, "result of a task")
    if made.finished_ns < made.submitted_ns:
        msg = "the time stamps go back"
        raise InvalidResultError(msg)
    if not made.text.strip():
        msg = "the task gave an empty text"
        raise InvalidResultError(msg)
    return made


def read_files(result: dict[str, Any]) -> list[Path]:
    """The answer to ``prepare``: files that loading will read besides the model."""
    return [Path(text) for text in _parse(_TEXTS, result.get("reads"), "files to be read")]


def token_ids(result: dict[str, Any]) -> list[int]:
    """The answer to ``tokenize``."""
    return _parse(_IDS, result.get("ids"), "token ids")


def scores(result: dict[str, Any], request: ScoreRequest, vocabulary_size: int) -> Scores:
    """The answer to ``score``, if it can be true.

    What is above 0 by no more than rounding makes it is 0 in what is returned; without candidates
    in the request there are none in it either.

    Raises:
        InvalidResultError: other counts than asked for, ids outside of the vocabulary, or
            log-likelihoods that are infinite or above 0.
    """
    made = _parse(_SCORES, result, "scores")
    count = len(request.ids) - request.start
    if len(made.log_likelihoods) != count:
        msg = f"{len(made.log_likelihoods)} scores for {count} tokens"
        raise InvalidResultError(msg)
    if made.top_ids is not None:
        if len(made.top_ids) != count:
            msg = f"{len(made.top_ids)} likeliest tokens for {count} positions"
            raise InvalidResultError(msg)
        if any(not 0 <= number < vocabulary_size for number in made.top_ids):
            msg = f"a token id outside of the vocabulary of {vocabulary_size}"
            raise InvalidResultError(msg)
    candidates = made.candidates if request.candidates else None
    if candidates is not None:
        asked = [len(ids) for ids in request.candidates]
        rated = [len(numbers) for numbers in candidates]
        if rated != asked:
            msg = f"{sum(rated)} rated candidates of {sum(asked)} asked for, or at other positions"
            raise InvalidResultError(msg)
    if problem := not_finite(made, request):
        raise InvalidResultError(problem)
    if candidates is not None:
        candidates = [_at_most_certain(numbers) for numbers in candidates]
    return Scores(_at_most_certain(made.log_likelihoods), made.top_ids, candidates)


def _at_most_certain(numbers: Sequence[float]) -> list[float]:
    """Log-likelihoods without what rounding puts above 0."""
    if any(number > ROUNDING for number in numbers):
        msg = f"a log-likelihood above 0: {max(numbers):g}"
        raise InvalidResultError(msg)
    return [min(number, 0.0) for number in numbers]


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
    told = [number for number in made.token_ids if number is not None]
    if any(not 0 <= number < vocabulary_size for number in told):
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
