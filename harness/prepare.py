"""Before anything is measured: the model, each variant's artifact, the prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.artifacts import conversion
from edgebench.harness.errors import ModelError, RunnerError, RunnerRefusedError, StoreError
from edgebench.harness.failures import failure_of
from edgebench.harness.results.model import Artifact, Failure
from edgebench.harness.session import Launch, Session
from edgebench.harness.tokenization import (
    TIMEOUT_S,
    NoTokenizer,
    RemoteTokenizer,
    Tokenized,
    make_prompts,
    own_tokenizer,
)
from edgebench.runners.base import ConvertRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prompts import Prompt
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.scenario.values import OptionScalar
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.store.store import ModelStore, StoredFile
    from edgebench.runners.base import Description, LoadedModel

T = TypeVar("T")

CONVERT_TIMEOUT_S = 4 * 3600.0
PROBE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class PreparedVariant:
    """A variant that can be started, or the reason why it can't."""

    variant: ExpandedVariant
    python: str | None
    probe: wire.Probe | None = None
    file: StoredFile | None = None
    failure: Failure | None = None

    @property
    def description(self) -> Description | None:
        """Which framework it is, where that could be asked."""
        return self.probe.description if self.probe else None

    @property
    def load_options(self) -> dict[str, OptionScalar]:
        """The variant's options without those that had shaped the artifact."""
        shaping = self.probe.convert_options if self.probe else frozenset()
        return {key: value for key, value in self.variant.options.items() if key not in shaping}

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
    """All that measuring needs.

    Attributes:
        source: the model that every artifact is made from; None where it was not even fetched.
    """

    variants: tuple[PreparedVariant, ...]
    prompts: tuple[Prompt, ...]
    workload_failures: Mapping[str, Failure]
    source: StoredFile | None = None

    @property
    def context_tokens(self) -> int:
        """The longest of the workloads; every variant is loaded with it."""
        return max((prompt.context_tokens for prompt in self.prompts), default=0)


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
        self._described: dict[tuple[str, str | None], wire.Probe | Failure] = {}

    def run(
        self, scenario: Scenario, variants: Sequence[ExpandedVariant], source: ModelSource
    ) -> Prepared:
        """Fetch, convert, tokenize.

        Raises:
            ModelError: the source can't be had, so that nothing can be run.
            StoreError: the store can't be written to at all.
        """
        prepared = [self._describe(variant) for variant in variants]
        if all(item.failure for item in prepared):
            return Prepared(tuple(prepared), (), {})
        self._observer.preparing(f"fetching {scenario.model.name}")
        file = self._store.fetch(
            source, sha256=scenario.model.sha256, progress=self._observer.transferring
        )
        prepared = [self._artifact(item, file) for item in prepared]
        made = self._prompts(scenario, prepared, file)
        return Prepared(tuple(prepared), made.prompts, made.failures, file)

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
        return replace(item, probe=found)

    def _probe(self, runner: str, python: str | None) -> wire.Probe | Failure:
        def ask(session: Session) -> wire.Probe:
            return wire.probe(session.call("probe", timeout_s=PROBE_TIMEOUT_S))

        return self._in_session(runner, python, "prepare", ask)

    def _artifact(self, item: PreparedVariant, source: StoredFile) -> PreparedVariant:
        variant, probe = item.variant, item.probe
        if item.failure:
            return replace(item, file=source)
        assert probe is not None
        wanted = conversion(variant, probe, source)
        if variant.quantization == "source":
            # Of a runner that is installed here, the scenario's check has told that already.
            failure = failure_of(_shapes_nothing(wanted.options)) if wanted.options else None
            return replace(item, file=source, failure=failure)

        def convert(target: Path) -> Mapping[str, str]:
            self._observer.preparing(f"{variant.runner}: making {variant.quantization}")
            request = ConvertRequest(
                str(source.path), variant.quantization, str(target), wanted.options
            )
            with Session(self._launch(variant.runner, item.python, "convert")) as session:
                answer = session.call("convert", to_wire(request), timeout_s=CONVERT_TIMEOUT_S)
            made = answer.get("made")
            return {str(k): str(v) for k, v in made.items()} if isinstance(made, dict) else {}

        try:
            file = self._store.derive(
                wanted.key,
                wanted.name,
                convert,
                needed_bytes=wanted.needed_bytes,
                progress=self._observer.transferring,
            )
        except (RunnerError, ModelError, StoreError) as error:
            # Whatever keeps this one from being made, others may be there, or be smaller.
            return replace(item, failure=failure_of(error))
        return replace(item, file=file)

    def _prompts(
        self, scenario: Scenario, prepared: list[PreparedVariant], source: StoredFile
    ) -> Tokenized:
        """Tokenize once, so that all frameworks get the same ids.

        The first variant that can does it; without one, the tokenizer in the model's own files.
        A file that a framework can't read is its own failure, set in `prepared`.
        """
        self._observer.preparing("tokenizing the prompts")

        def remotely(session: Session, model: LoadedModel) -> Tokenized:
            return make_prompts(scenario, model, RemoteTokenizer(session))

        for position, item in enumerate(prepared):
            if item.description is None or not item.description.capabilities.tokenizer:
                continue
            if made := self._with_vocabulary(prepared, position, remotely):
                return made
        if all(item.failure for item in prepared):
            return Tokenized((), {})
        try:
            return make_prompts(scenario, *own_tokenizer(source.path))
        except ModelError as error:
            nothing = NoTokenizer(error.message)
        # Ids that are drawn at random need no tokenizer, but the vocabulary's size.
        for position in range(len(prepared)):
            if made := self._with_vocabulary(
                prepared, position, lambda _, model: make_prompts(scenario, model, nothing)
            ):
                return made
        return Tokenized((), {})

    def _with_vocabulary(
        self,
        prepared: list[PreparedVariant],
        position: int,
        work: Callable[[Session, LoadedModel], Tokenized],
    ) -> Tokenized | None:
        """Do `work` with a variant's vocabulary; None where it has failed by now."""
        item = prepared[position]
        if item.failure or item.file is None:
            return None
        request = LoadRequest(str(item.file.path), 1, vocab_only=True)

        def load(session: Session) -> Tokenized:
            answer = session.call("load", to_wire(request), timeout_s=TIMEOUT_S)
            return work(session, wire.loaded_model(answer)[0])

        made = self._in_session(item.variant.runner, item.python, "tokenize", load)
        if isinstance(made, Failure):
            prepared[position] = replace(item, failure=made)
            return None
        return made

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


def _shapes_nothing(options: Mapping[str, object]) -> RunnerRefusedError:
    msg = (
        f"{', '.join(options)}: options of converting, and the quantization 'source' is loaded "
        "as it is"
    )
    return RunnerRefusedError(
        msg, reason="invalid", remedy="Name a quantization to make, or leave them out."
    )
