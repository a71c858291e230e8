"""The tokenizers that prompts can be made with: a runner's, or that of the model's own files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness import wire
from edgebench.harness.errors import ModelError
from edgebench.harness.failures import failure_of
from edgebench.harness.prompts import Prompt, TextTokenizer, make_prompt
from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import read_json
from edgebench.models.gguf_header import read_header
from edgebench.models.gguf_tokenizer import read_tokenizer as read_gguf_tokenizer
from edgebench.models.hf_tokenizer import read_tokenizer
from edgebench.runners.base import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.results.measured import Failure
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.session import Session
    from edgebench.models.tokenizer import Tokenizer

TIMEOUT_S = 120.0
"""For one text, and for loading a vocabulary."""

MLC_CONFIG = "mlc-chat-config.json"

GGUF_TOKENS = "tokenizer.ggml.tokens"


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The workloads' prompts, and the workloads that have none."""

    prompts: tuple[Prompt, ...]
    failures: Mapping[str, Failure]


def make_prompts(scenario: Scenario, model: LoadedModel, tokenizer: TextTokenizer) -> Tokenized:
    """The prompts of all workloads that make tokens; one that can't be made is its own failure."""
    prompts: list[Prompt] = []
    failures: dict[str, Failure] = {}
    for workload in scenario.workloads:
        if workload.task is not None or workload.quality is not None:
            continue
        try:
            prompts.append(make_prompt(workload, model, tokenizer, seed=scenario.measure.seed))
        except ModelError as error:
            failures[workload.name] = failure_of(error)
    return Tokenized(tuple(prompts), failures)


class RemoteTokenizer:
    """The tokenizer of a model that a runner has loaded."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def tokenize(self, text: str) -> list[int]:
        """Ask the runner."""
        return wire.token_ids(self._session.call("tokenize", {"text": text}, timeout_s=TIMEOUT_S))

    def detokenize(self, ids: Sequence[int]) -> str:
        """Ask the runner."""
        answer = self._session.call("detokenize", {"ids": list(ids)}, timeout_s=TIMEOUT_S)
        return str(answer.get("text"))


class OwnTokenizer:
    """The tokenizer in the model's own files, in this process."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def tokenize(self, text: str) -> list[int]:
        """As every runner that has a tokenizer does it."""
        return self._tokenizer.encode(text)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Special tokens written out."""
        return self._tokenizer.decode(ids)


class NoTokenizer:
    """In place of one that can't be had: prompts that need one fail, and say why.

    Args:
        reason: why there is none.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def tokenize(self, text: str) -> list[int]:  # noqa: ARG002
        """Never gives ids."""
        raise self._error()

    def detokenize(self, ids: Sequence[int]) -> str:  # noqa: ARG002
        """Never gives text."""
        raise self._error()

    def _error(self) -> ModelError:
        msg = f"no framework here tells its tokenizer's ids, and of the model: {self._reason}"
        return ModelError(
            msg, remedy="Set text: synthetic, or name a GGUF file or a Hugging Face folder."
        )


def own_tokenizer(path: Path) -> tuple[LoadedModel, OwnTokenizer]:
    """The tokenizer of a GGUF file or a model's folder, and what prompts need of the model.

    A folder is Hugging Face's, or one of MLC's, which has such a tokenizer's files as well.

    Raises:
        ModelError: there is none that is understood.
    """
    vocabulary_size, tokenizer = built_tokenizer(path)
    facts = LoadedModel(
        effective_options={},
        vocabulary_size=vocabulary_size,
        chat_template=tokenizer.chat_template,
        bos_text=tokenizer.start_text,
        eos_text=tokenizer.end_text,
    )
    return facts, OwnTokenizer(tokenizer)


def built_tokenizer(path: Path) -> tuple[int, Tokenizer]:
    """The same as `text_tokenizer`, and it is sure to work.

    Raises:
        ModelError: there is none that is understood.
    """
    try:
        vocabulary_size, tokenizer = text_tokenizer(path)
        tokenizer.encode("")  # it is built at its first use, which may fail
    except ModelFormatError as error:
        raise ModelError(str(error)) from error
    return vocabulary_size, tokenizer


def text_tokenizer(path: Path) -> tuple[int, Tokenizer]:
    """The size of a model's vocabulary, and its tokenizer.

    Where the model's architecture is not understood, its tokenizer may be all the same.

    Args:
        path: a GGUF file, a Hugging Face folder, or one of MLC's.

    Raises:
        ModelFormatError: there is none, it is damaged, or of a kind that is not understood.
    """
    if (path / MLC_CONFIG).is_file() and not (path / "config.json").exists():
        size = read_json(path / MLC_CONFIG).integer("vocab_size")
        return size, read_tokenizer(path, size, ())
    try:
        canonical = open_model(path)
    except UnsupportedModelError as unsupported:
        # A framework may know the architecture; the tokenizer is as any other.
        try:
            size = _tokens_of(path)
        except ModelFormatError:
            raise unsupported from None
        if path.is_file():
            return size, read_gguf_tokenizer(read_header(path), size)
        return size, read_tokenizer(path, size, ())
    return canonical.architecture.vocabulary_size, canonical.tokenizer


def _tokens_of(path: Path) -> int:
    """How many tokens a model has, from nothing that says what it computes."""
    if path.is_file():
        tokens = read_header(path).metadata.get(GGUF_TOKENS)
        if not isinstance(tokens, list) or not tokens:
            msg = f"{path} has no tokenizer"
            raise ModelFormatError(msg)
        return len(tokens)
    if not (path / "tokenizer.json").is_file():
        msg = f"{path} has no tokenizer.json"
        raise ModelFormatError(msg)
    config = read_json(path / "config.json")
    return (config.section("text_config") or config).integer("vocab_size")
