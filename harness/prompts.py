"""Prompts of exactly the asked length, as token ids that every framework gets alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from edgebench.harness.errors import ModelError
from edgebench.runners.base import GenerateRequest, TaskRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.scenario.model import Workload
    from edgebench.harness.scenario.values import TaskName
    from edgebench.runners.base import LoadedModel

ATTEMPTS = 24
"""Places in the text that are tried for a cut that survives detokenizing and tokenizing."""

DEPTH_SKIP = 64
"""Paragraphs before the text that fills the cache, so that a prompt does not repeat it."""

CHARACTERS_A_TOKEN = 8
"""More than any common tokenizer packs into one token of English, on average."""


class TextTokenizer(Protocol):
    """The model's tokenizer, wherever it runs."""

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`, special tokens parsed, with a start token where the model wants one."""

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A workload made concrete for one model.

    Attributes:
        text: tokenizes to exactly `ids`; None where only ids can be handed over.
        sustained_s: for how long it is generated from again and again; None for once.
        made_up: whether the framework's own tool makes up the ids, so that of `ids` and
            `depth_ids` only the number counts.
    """

    workload: str
    ids: tuple[int, ...]
    text: str | None
    depth_ids: tuple[int, ...]
    generate_tokens: int
    sustained_s: float | None = None
    made_up: bool = False

    @property
    def context_tokens(self) -> int:
        """Tokens in the cache at the end."""
        return len(self.depth_ids) + len(self.ids) + self.generate_tokens

    @property
    def sha256(self) -> str:
        """Of the ids, as decimal numbers joined by commas."""
        return hashlib.sha256(",".join(map(str, self.ids)).encode()).hexdigest()

    def request(self) -> GenerateRequest:
        """What a runner is asked for."""
        return GenerateRequest(
            prompt_ids=list(self.ids),
            prompt_text=self.text,
            depth_ids=list(self.depth_ids),
            max_tokens=self.generate_tokens,
        )


@dataclass(frozen=True, slots=True)
class TaskText:
    """A workload that is a whole task: its text goes to the task as it is, for every model."""

    workload: str
    task: TaskName
    text: str

    def request(self) -> TaskRequest:
        """What a runner is asked for."""
        return TaskRequest(self.text)


def task_texts(workloads: Iterable[Workload]) -> tuple[TaskText, ...]:
    """The workloads that are tasks."""
    return tuple(
        TaskText(workload.name, workload.task, workload.prompt)
        for workload in workloads
        if workload.task is not None and workload.prompt is not None
    )


def make_prompt(
    workload: Workload, model: LoadedModel, tokenizer: TextTokenizer, *, seed: int
) -> Prompt:
    """Turn a workload into token ids.

    Args:
        workload: one without a task.
        model: what the prompt must be right for.
        tokenizer: the model's.
        seed: of ids that are drawn at random.

    Raises:
        ModelError: the model has no chat template, or the template can't be applied.
    """
    count = workload.generate_tokens
    assert count is not None
    depth = _natural(tokenizer, workload.depth, skip=DEPTH_SKIP)[0] if workload.depth else ()
    if workload.prompt is not None:
        text = workload.prompt
        if workload.chat_template:
            text = apply_chat_template(model, text)
        text, ids = _without_double_start(text, model, tokenizer)
        return Prompt(workload.name, ids, text, depth, count, workload.sustained)
    assert workload.prompt_tokens is not None
    if workload.text == "synthetic":
        generator = np.random.default_rng(seed)
        drawn = generator.integers(0, model.vocabulary_size, size=workload.prompt_tokens)
        made = tuple(int(number) for number in drawn)
        return Prompt(workload.name, made, None, depth, count, workload.sustained)
    ids, natural = _natural(tokenizer, workload.prompt_tokens)
    return Prompt(workload.name, ids, natural, depth, count, workload.sustained)


def apply_chat_template(model: LoadedModel, prompt: str) -> str:
    """The prompt as one user's turn, by the model's own template, ready for the answer."""
    if not model.chat_template:
        msg = "the workload asks for chat_template, and the model has none"
        raise ModelError(msg, remedy="Set chat_template: false, or write the turns into prompt.")
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _raise_exception
    try:
        return environment.from_string(model.chat_template).render(
            messages=[{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            bos_token=model.bos_text,
            eos_token=model.eos_text,
        )
    except (TemplateError, TypeError, ValueError) as error:
        msg = f"the model's chat template can't be applied: {error}"
        raise ModelError(msg, remedy="Set chat_template: false for this workload.") from error


def _raise_exception(message: str) -> str:
    raise TemplateError(message)


def _without_double_start(
    text: str, model: LoadedModel, tokenizer: TextTokenizer
) -> tuple[str, tuple[int, ...]]:
    """Some templates write the start token that the tokenizer adds as well."""
    ids = tokenizer.tokenize(text)
    doubled = len(ids) > 1 and ids[0] == ids[1] and model.bos_text
    if doubled and text.startswith(model.bos_text):
        text = text.removeprefix(model.bos_text)
        ids = tokenizer.tokenize(text)
    if not ids:
        msg = "the prompt has no tokens"
        raise ModelError(msg, remedy="Write a longer prompt.")
    return text, tuple(ids)


def _natural(
    tokenizer: TextTokenizer, count: int, *, skip: int = 0
) -> tuple[tuple[int, ...], str | None]:
    """`count` ids of running text, and that text if it tokenizes back to them."""
    starts = _paragraph_starts()[skip:]
    first: tuple[int, ...] = ()
    for start in starts[:ATTEMPTS]:
        ids = tuple(tokenizer.tokenize(_text_from(start, count * CHARACTERS_A_TOKEN))[:count])
        if len(ids) < count:
            msg = f"the built-in text gives {len(ids)} of {count} tokens for this tokenizer"
            raise ModelError(msg, remedy="Ask for fewer tokens, or set text: synthetic.")
        first = first or ids
        text = tokenizer.detokenize(ids)
        if tuple(tokenizer.tokenize(text)) == ids:
            return ids, text
    return first, None


@lru_cache(maxsize=1)
def _prose() -> str:
    return resources.files("edgebench.harness").joinpath("texts/prose.txt").read_text("utf-8")


@lru_cache(maxsize=1)
def _paragraph_starts() -> list[int]:
    text = _prose()
    return [0] + [end + 2 for end in range(len(text) - 2) if text.startswith("\n\n", end)]


def _text_from(start: int, size: int) -> str:
    """`size` characters from `start`; the text begins again at its end."""
    text = _prose()[start:] + _prose()[:start]
    return (text * (size // len(text) + 1))[:size]
