"""The tokens of the texts that are rated: by the model's own tokenizer, or by a framework's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness import wire
from edgebench.harness.errors import ModelError
from edgebench.harness.failures import failure_of
from edgebench.harness.quality.plan import (
    QualityTask,
    TokenizedText,
    quality_task,
    tokens_needed,
)
from edgebench.harness.quality.texts import read_text
from edgebench.harness.tokenization import built_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.quality.texts import QualityText
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.scenario.model import Scenario, Workload
    from edgebench.harness.session import Session
    from edgebench.runners.base import LoadedModel

TIMEOUT_S = 600.0
"""For the tokens of one text, which may be long."""


CHARACTERS_A_TOKEN = 8
"""More than most texts have, on average."""

CUT_TOKENS = 1024
"""So many tokens before a cut are not trusted to be those of the uncut text."""


@dataclass(frozen=True, slots=True)
class TextWorkload:
    """A workload that rates a text, and the text.

    Attributes:
        workload: one with a group ``quality``.
    """

    workload: Workload
    text: QualityText


@dataclass(frozen=True, slots=True)
class Tasks:
    """The quality workloads that can be scored, and why the others can't."""

    tasks: tuple[QualityTask, ...]
    failures: Mapping[str, Failure]


def text_workloads(scenario: Scenario, base: Path) -> tuple[TextWorkload, ...]:
    """Read the texts that a scenario rates.

    Args:
        scenario: with or without such workloads.
        base: the folder that relative paths stand in.

    Raises:
        ModelError: a text can't be read.
    """
    texts: dict[str, QualityText] = {}
    found = []
    for workload in scenario.workloads:
        if workload.quality is not None:
            spec = workload.quality.text
            if spec not in texts:
                texts[spec] = read_text(spec, base=base)
            found.append(TextWorkload(workload, texts[spec]))
    return tuple(found)


def make_tasks(
    workloads: Sequence[TextWorkload], tokenize: Callable[[str], TokenizedText]
) -> Tasks:
    """The workloads made concrete; one that can't be is its own failure.

    Args:
        workloads: with their texts.
        tokenize: gives the tokens of a text.
    """
    tasks: list[QualityTask] = []
    failures: dict[str, Failure] = {}
    for each in workloads:
        quality = each.workload.quality
        assert quality is not None
        try:
            made = _as_much_as_needed(each.text.text, tokens_needed(quality), tokenize)
            tasks.append(quality_task(each.workload.name, quality, each.text, made))
        except ModelError as error:
            failures[each.workload.name] = failure_of(error)
    return Tasks(tuple(tasks), failures)


def _as_much_as_needed(
    text: str, needed: int, tokenize: Callable[[str], TokenizedText]
) -> TokenizedText:
    """The tokens of a text, or of its beginning where that surely begins with the same ones."""
    beginning = text[: CHARACTERS_A_TOKEN * (needed + CUT_TOKENS)]
    if len(beginning) < len(text):
        made = tokenize(beginning)
        # Near the cut they may be others than those of the whole text.
        if len(made.ids) >= needed + CUT_TOKENS:
            return made
    return tokenize(text)


def all_failed(workloads: Sequence[TextWorkload], error: ModelError) -> Tasks:
    """None of them can be scored."""
    return Tasks((), {each.workload.name: failure_of(error) for each in workloads})


def own_tokens(path: Path) -> Callable[[str], TokenizedText]:
    """What makes tokens with the tokenizer in a model's own files.

    Raises:
        ModelError: there is none that is understood.
    """
    vocabulary_size, tokenizer = built_tokenizer(path)

    def tokenize(text: str) -> TokenizedText:
        encoded = tokenizer.encode_text(text)
        return TokenizedText(
            ids=encoded.ids,
            ends=encoded.ends,
            due_start=tokenizer.start_id,
            any_start=tokenizer.start_token_id,
            vocabulary_size=vocabulary_size,
            tokenizer="the model's own files",
        )

    return tokenize


def remote_tokens(
    session: Session, model: LoadedModel, runner: str
) -> Callable[[str], TokenizedText]:
    """What makes tokens with the tokenizer of a model that a runner has loaded."""

    def ids(text: str) -> list[int]:
        asked = {"text": text, "special": False}
        return wire.token_ids(session.call("tokenize", asked, timeout_s=TIMEOUT_S))

    def tokenize(text: str) -> TokenizedText:
        start = ids("")
        return TokenizedText(
            ids=ids(text)[len(start) :],
            ends=None,
            due_start=start[0] if start else None,
            any_start=start[0] if start else None,
            vocabulary_size=model.vocabulary_size,
            tokenizer=runner,
        )

    return tokenize
