"""Before anything is measured: the model, each variant's artifact, the prompts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.errors import ModelError, RunnerError
from edgebench.harness.failures import failure_of
from edgebench.harness.prompts import Prompt, TextTokenizer, make_prompt
from edgebench.harness.results.model import Artifact, Failure
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.store.store import ModelStore, StoredFile
    from edgebench.runners.base import Description, LoadedModel

T = TypeVar("T")

CONVERT_TIMEOUT_S = 4 * 3600.0
PROBE_TIMEOUT_S = 120.0
VOCABULARY_TIMEOUT_S = 120.0

BITS = re.compile(r"(?<![A-Za-z])(?:I?Q|B?F)(\d{1,2})(?!\d)", re.IGNORECASE)
"""The bits in a quantisation's name: 4 in ``IQ4_NL`` and ``Q4_K_M``, 16 in ``BF16``."""

SCALES_BITS = 1.0
"""What scales and less quantised tensors add to each weight, at most."""

FEWEST_BITS = 4
"""Assumed of a source whose name does not tell."""


@dataclass(frozen=True, slots=True)
class PreparedVariant:
    """A variant that can be started, or the reason why it can't."""

    variant: ExpandedVariant
    python: str | None
    description: Description | None = None
    file: StoredFile | None = None
    failure: Failure | None = None

    def artifact(self) -> Artifact | None:
        """What the framework loads, as the results name it."""
        if self.file is None:
            return None
        return Artifact(
            name=self.file.name,
            sha256=self.file.sha256,
            bytes=self.file.bytes,
            made_by=self.file.made_by,
            note=self.file.note,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that measuring needs."""

    variants: tuple[PreparedVariant, ...]
    prompts: tuple[Prompt, ...]
    workload_failures: Mapping[str, Failure]

    @property
    def context_tokens(self) -> int:
        """The longest of the workloads; every variant is loaded with it."""
        return max((prompt.context_tokens for prompt in self.prompts), default=0)


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The workloads' prompts, and the workloads that have none."""

    prompts: tuple[Prompt, ...]
    failures: Mapping[str, Failure]


class Preparation:
    """Prepares one scenario.

    Args:
        store: where models are kept.
        logs: folder for the runners' logs.
        observer: told of each step.
        pythons: interpreters by runner from the user's configuration.
    """

    def __init__(
        self, store: ModelStore, logs: Path, observer: Observer, pythons: Mapping[str, str]
    ) -> None:
        self._store = store
        self._logs = logs
        self._observer = observer
        self._pythons = pythons
        self._described: dict[tuple[str, str | None], Description | Failure] = {}

    def run(
        self, scenario: Scenario, variants: Sequence[ExpandedVariant], source: ModelSource
    ) -> Prepared:
        """Fetch, convert, tokenize.

        Raises:
            ModelError: the source can't be had, so that nothing can be run.
            StoreError: the store can't be written.
        """
        prepared = [self._describe(variant) for variant in variants]
        if all(item.failure for item in prepared):
            return Prepared(tuple(prepared), (), {})
        self._observer.preparing(f"fetching {scenario.model.name}")
        file = self._store.fetch(
            source, sha256=scenario.model.sha256, progress=self._observer.transferring
        )
        prepared = [self._artifact(item, file) for item in prepared]
        return self._with_prompts(scenario, prepared)

    def _describe(self, variant: ExpandedVariant) -> PreparedVariant:
        python = variant.python or self._pythons.get(variant.runner)
        key = (variant.runner, python)
        if key not in self._described:
            self._observer.preparing(f"starting {variant.runner}")
            self._described[key] = self._probe(*key)
        found = self._described[key]
        item = PreparedVariant(variant, python)
        if isinstance(found, Failure):
            return replace(item, failure=found)
        return replace(item, description=found)

    def _probe(self, runner: str, python: str | None) -> Description | Failure:
        def ask(session: Session) -> Description:
            return wire.description(session.call("probe", timeout_s=PROBE_TIMEOUT_S))

        return self._in_session(runner, python, "prepare", ask)

    def _artifact(self, item: PreparedVariant, source: StoredFile) -> PreparedVariant:
        wanted = item.variant.quantization
        if item.failure or wanted == "source":
            return replace(item, file=source)
        description = item.description
        assert description is not None
        key = {
            "source": source.sha256,
            "quantization": wanted,
            "runner": item.variant.runner,
            "engine": f"{description.engine} {description.engine_version}",
        }

        def convert(target: Path) -> Mapping[str, str]:
            self._observer.preparing(f"{item.variant.runner}: making {wanted}")
            with Session(self._launch(item.variant.runner, item.python, "convert")) as session:
                answer = session.call(
                    "convert",
                    {"source": str(source.path), "quantization": wanted, "target": str(target)},
                    timeout_s=CONVERT_TIMEOUT_S,
                )
            made = answer.get("made")
            return {str(k): str(v) for k, v in made.items()} if isinstance(made, dict) else {}

        try:
            file = self._store.derive(
                key,
                f"{source.path.stem}-{wanted}{source.path.suffix}",
                convert,
                needed_bytes=expected_bytes(source.name, source.bytes, wanted),
                progress=self._observer.transferring,
            )
        except RunnerError as error:
            return replace(item, failure=failure_of(error))
        return replace(item, file=file)

    def _with_prompts(self, scenario: Scenario, prepared: list[PreparedVariant]) -> Prepared:
        """Tokenize with the first variant that can: all frameworks get the same ids."""
        self._observer.preparing("tokenizing the prompts")
        for position, item in enumerate(prepared):
            if item.failure or item.file is None:
                continue
            request = LoadRequest(str(item.file.path), 1, vocab_only=True)

            def tokenize(session: Session, request: LoadRequest = request) -> Tokenized:
                answer = session.call("load", to_wire(request), timeout_s=VOCABULARY_TIMEOUT_S)
                model, _, _ = wire.loaded_model(answer)
                return _tokenize(scenario, model, _RemoteTokenizer(session))

            made = self._in_session(item.variant.runner, item.python, "tokenize", tokenize)
            if isinstance(made, Failure):
                # A file that this framework can't read is its own failure; the next may read it.
                prepared[position] = replace(item, failure=made)
                continue
            return Prepared(tuple(prepared), made.prompts, made.failures)
        return Prepared(tuple(prepared), (), {})

    def _in_session(
        self, runner: str, python: str | None, purpose: str, work: Callable[[Session], T]
    ) -> T | Failure:
        launch = self._launch(runner, python, purpose)
        session = Session(launch)
        try:
            with session:
                return work(session)
        except RunnerError as error:
            return failure_of(error, log_tail=session.log_tail())

    def _launch(self, runner: str, python: str | None, purpose: str) -> Launch:
        return Launch(runner, self._logs / f"{purpose}-{runner}.log", python)


def expected_bytes(source: str, source_bytes: int, quantization: str) -> int:
    """About how large an artifact will be, so that a full disk is noticed before the work.

    Args:
        source: the source's file name, which by custom holds its quantisation.
        source_bytes: its size.
        quantization: what is to be made of it.
    """
    before, after = BITS.search(source), BITS.search(quantization)
    if after is None:
        return source_bytes
    bits = int(before[1]) if before else FEWEST_BITS
    return round(source_bytes * (int(after[1]) + SCALES_BITS) / bits)


def _tokenize(scenario: Scenario, model: LoadedModel, tokenizer: TextTokenizer) -> Tokenized:
    prompts: list[Prompt] = []
    failures: dict[str, Failure] = {}
    for workload in scenario.workloads:
        try:
            prompts.append(make_prompt(workload, model, tokenizer, seed=scenario.measure.seed))
        except ModelError as error:
            failures[workload.name] = failure_of(error)
    return Tokenized(tuple(prompts), failures)


class _RemoteTokenizer:
    """The tokenizer of a model that a runner has loaded."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def tokenize(self, text: str) -> list[int]:
        """Ask the runner."""
        answer = self._session.call("tokenize", {"text": text}, timeout_s=VOCABULARY_TIMEOUT_S)
        return wire.token_ids(answer)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Ask the runner."""
        answer = self._session.call(
            "detokenize", {"ids": list(ids)}, timeout_s=VOCABULARY_TIMEOUT_S
        )
        return str(answer.get("text"))
