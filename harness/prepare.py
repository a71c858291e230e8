"""Before anything is measured: the model, each variant's artifact, the prompts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.artifacts import conversion
from edgebench.harness.board import Board, LocalBoard
from edgebench.harness.errors import (
    ModelError,
    RunnerError,
    RunnerRefusedError,
    RunnerUnavailableError,
    StoreError,
)
from edgebench.harness.failures import failure_of
from edgebench.harness.fit import REMEDY, Room, known_size, least_bytes, least_of
from edgebench.harness.prompts import task_texts
from edgebench.harness.quality.tokens import (
    Tasks,
    all_failed,
    make_tasks,
    own_tokens,
    remote_tokens,
)
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
    from edgebench.harness.prompts import Prompt, TaskText
    from edgebench.harness.quality.plan import QualityTask
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.scenario.values import OptionScalar
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.store.store import ModelStore, StoredFile
    from edgebench.runners.base import Description, LoadedModel, TaskDescription

T = TypeVar("T")

CONVERT_TIMEOUT_S = 4 * 3600.0
PROBE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class PreparedVariant:
    """A variant that can be started, or the reason why it can't.

    Attributes:
        tasks: what runs the scenario's tasks, by task.
        task_failures: why a task can't be run, by task.
        board: where it runs.
    """

    variant: ExpandedVariant
    python: str | None
    probe: wire.Probe | None = None
    file: StoredFile | None = None
    failure: Failure | None = None
    tasks: Mapping[str, TaskDescription] = field(default_factory=dict)
    task_failures: Mapping[str, Failure] = field(default_factory=dict)
    board: Board = field(default_factory=LocalBoard)

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
        tasks: the workloads that are tasks.
        quality: those that rate a text.
        quality_failures: why one of those can't be scored by any variant, by its name.
    """

    variants: tuple[PreparedVariant, ...]
    prompts: tuple[Prompt, ...]
    workload_failures: Mapping[str, Failure]
    source: StoredFile | None = None
    tasks: tuple[TaskText, ...] = ()
    quality: tuple[QualityTask, ...] = ()
    quality_failures: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def context_tokens(self) -> int:
        """The longest of those that make tokens; every variant is loaded with it for them."""
        return max((prompt.context_tokens for prompt in self.prompts), default=0)


class Preparation:
    """Prepares one scenario.

    Args:
        store: where models are kept.
        logs: folder for the runners' logs.
        observer: told of each step.
        pythons: interpreters by runner from the user's configuration.
        board: where it runs.
        room: what must fit into its memory; nothing is refused where that is not known.
    """

    def __init__(
        self,
        store: ModelStore,
        logs: Path,
        observer: Observer,
        pythons: Mapping[str, str],
        board: Board | None = None,
        room: Room | None = None,
    ) -> None:
        self._store = store
        self._logs = logs
        self._observer = observer
        self._pythons = pythons
        self._board: Board = board or LocalBoard()
        self._room = room or Room()
        self._described: dict[tuple[str, str | None], wire.Probe | Failure] = {}
        self._tasks: dict[tuple[str, str | None, str], TaskDescription | Failure] = {}
        self._makers: dict[str, wire.Probe | Failure] = {}

    def run(
        self,
        scenario: Scenario,
        variants: Sequence[ExpandedVariant],
        source: ModelSource,
        texts: Sequence[TextWorkload] = (),
    ) -> Prepared:
        """Fetch, convert, tokenize.

        Args:
            scenario: what is run.
            variants: what is to be prepared of it, or beside it.
            source: the model.
            texts: the scenario's quality workloads, with their texts.

        Raises:
            ModelError: the source can't be had, so that nothing can be run.
            StoreError: the store can't be written to at all.
        """
        tasks = task_texts(scenario.workloads)
        nothing_else = len(tasks) == len(scenario.workloads)
        prepared = [
            self._with_tasks(self._describe(variant), tasks, nothing_else=nothing_else)
            for variant in variants
        ]
        if all(item.failure for item in prepared):
            return Prepared(tuple(prepared), (), {}, tasks=tasks)
        if note := self._room.contradiction():
            self._observer.note(note)
        prepared = [self.not_even_fetched(item, source) for item in prepared]
        if all(item.failure for item in prepared):
            return Prepared(tuple(prepared), (), {}, tasks=tasks)
        self._observer.preparing(f"fetching {scenario.model.name}")
        file = self._store.fetch(
            source, sha256=scenario.model.sha256, progress=self._observer.transferring
        )
        prepared = [self._fitting(self._artifact(item, file)) for item in prepared]
        prompts = len(tasks) + len(texts) < len(scenario.workloads)
        made = self._prompts(scenario, prepared, file) if prompts else Tokenized((), {})
        rated = self._texts(texts, prepared, file)
        return Prepared(
            tuple(prepared),
            made.prompts,
            made.failures,
            file,
            tasks,
            rated.tasks,
            rated.failures,
        )

    def _describe(self, variant: ExpandedVariant) -> PreparedVariant:
        python = variant.python
        if not self._board.remote:  # the user's configuration names interpreters of this machine
            python = python or self._pythons.get(variant.runner)
        key = (variant.runner, python)
        if key not in self._described:
            self._observer.preparing(f"starting {variant.runner}")
            self._described[key] = self._probe(*key)
        found = self._described[key]
        item = PreparedVariant(variant, python, board=self._board)
        if isinstance(found, Failure):
            return replace(item, failure=found)
        return replace(item, probe=found)

    def _probe(self, runner: str, python: str | None) -> wire.Probe | Failure:
        def ask(session: Session) -> wire.Probe:
            return wire.probe(session.call("probe", timeout_s=PROBE_TIMEOUT_S))

        return self._in_session(runner, python, "prepare", ask)

    def _with_tasks(
        self, item: PreparedVariant, wanted: Sequence[TaskText], *, nothing_else: bool
    ) -> PreparedVariant:
        """Find out which tasks a variant can run, before anything is fetched or made for it.

        Args:
            item: the variant.
            wanted: the scenario's tasks.
            nothing_else: it has no other workloads, so a variant that can't run them has failed.
        """
        if item.failure or item.probe is None:
            return item
        able: dict[str, TaskDescription] = {}
        failures: dict[str, Failure] = {}
        for task in dict.fromkeys(each.task for each in wanted):
            found = self._describe_task(item, item.probe, task)
            if isinstance(found, Failure):
                failures[task] = found
            else:
                able[task] = found
        failed = next(iter(failures.values()), None) if nothing_else and not able else None
        return replace(item, tasks=able, task_failures=failures, failure=failed)

    def _describe_task(
        self, item: PreparedVariant, probe: wire.Probe, task: str
    ) -> TaskDescription | Failure:
        runner = item.variant.runner
        if task not in probe.description.capabilities.tasks:
            msg = f"{runner} has no task {task}"
            return failure_of(RunnerRefusedError(msg, reason="unsupported"))
        key = (runner, item.python, task)
        if key not in self._tasks:

            def ask(session: Session) -> TaskDescription:
                answer = session.call("describe_task", {"task": task}, timeout_s=PROBE_TIMEOUT_S)
                return wire.task_description(answer)

            self._observer.preparing(f"{runner}: looking for {task}")
            self._tasks[key] = self._in_session(runner, item.python, "task", ask)
        return self._tasks[key]

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

        if failure := _too_large(self._room.why_not(least_bytes(source, wanted))):
            return replace(item, file=source, failure=failure)
        python = item.python
        if self._board.remote:
            maker = self._maker(variant.runner, probe)
            if isinstance(maker, Failure):
                return replace(item, file=source, failure=maker)
            python, wanted = self._pythons.get(variant.runner), conversion(variant, maker, source)

        def convert(target: Path) -> Mapping[str, str]:
            options = "".join(f" {name}={value}" for name, value in wanted.options.items())
            self._observer.preparing(f"{variant.runner}: making {variant.quantization}{options}")
            request = ConvertRequest(
                str(source.path), variant.quantization, str(target), wanted.options
            )
            with Session(self._launch(variant.runner, python, "convert")) as session:
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

    def made_here(self, item: PreparedVariant, source: StoredFile) -> PreparedVariant:
        """With the artifact that this machine's framework makes, for a board without runners.

        Args:
            item: a variant, with a description of what runs it there.
            source: the model.
        """
        if item.failure or item.probe is None:
            return replace(item, file=source)
        if item.variant.quantization != "source":
            maker = self._maker(item.variant.runner, None)
            if isinstance(maker, Failure):
                return replace(item, file=source, failure=maker)
            item = replace(item, probe=replace(maker, description=item.probe.description))
        return self._fitting(self._artifact(item, source))

    def _maker(self, runner: str, there: wire.Probe | None) -> wire.Probe | Failure:
        """The framework of this machine, which makes the artifact for another one.

        Args:
            runner: its name.
            there: what it says of itself on the board; None where no runner is there to say it.
        """
        if runner not in self._makers:
            self._observer.preparing(f"starting {runner} on this machine")
            session = Session(self._launch(runner, self._pythons.get(runner), "convert"))
            try:
                with session:
                    here = wire.probe(session.call("probe", timeout_s=PROBE_TIMEOUT_S))
            except RunnerError as error:
                self._makers[runner] = failure_of(_no_maker(runner, error))
            else:
                self._makers[runner] = here
                known = [here] if there is None else [here, there]
                versions = [each.description.engine_version for each in known]
                if versions[0] != versions[-1]:
                    self._observer.note(
                        f"{runner}: models are made by {versions[0]}, of this machine, and run by "
                        f"{versions[1]}, of {self._board.name}"
                    )
        return self._makers[runner]

    def not_even_fetched(self, item: PreparedVariant, source: ModelSource) -> PreparedVariant:
        """A failure where the source's size alone tells that nothing made of it can fit.

        To read a model of some GB, for its hash, takes as long as a small run.
        """
        known = known_size(source)
        if item.failure or known is None:
            return item
        least = least_of(*known, item.variant.quantization)
        return replace(item, failure=_too_large(self._room.why_not(least)))

    def _fitting(self, item: PreparedVariant) -> PreparedVariant:
        """A failure where what it loads can't fit, before that is copied anywhere."""
        if item.failure or item.file is None:
            return item
        return replace(item, failure=_too_large(self._room.why_not(item.file.bytes)))

    def _prompts(
        self, scenario: Scenario, prepared: list[PreparedVariant], source: StoredFile
    ) -> Tokenized:
        """Tokenize once, so that all frameworks get the same ids.

        The first variant that can does it; without one, the tokenizer in the model's own files;
        without that, a variant whose framework has to load the model for it. A file that a
        framework can't read is its own failure, set in `prepared`.
        """
        self._observer.preparing("tokenizing the prompts")

        def remotely(session: Session, model: LoadedModel) -> Tokenized:
            return make_prompts(scenario, model, RemoteTokenizer(session))

        quick, slow = _with_tokenizer(prepared)
        for position in quick:
            if made := self._with_vocabulary(prepared, position, remotely):
                return made
        if all(item.failure for item in prepared):
            return Tokenized((), {})
        try:
            return make_prompts(scenario, *own_tokenizer(source.path))
        except ModelError as error:
            nothing = NoTokenizer(error.message)
        for position in slow:
            if made := self._with_vocabulary(prepared, position, remotely):
                return made
        # Ids that are drawn at random need no tokenizer, but the vocabulary's size.
        for position in range(len(prepared)):
            if made := self._with_vocabulary(
                prepared, position, lambda _, model: make_prompts(scenario, model, nothing)
            ):
                return made
        return Tokenized((), {})

    def _texts(
        self, texts: Sequence[TextWorkload], prepared: list[PreparedVariant], source: StoredFile
    ) -> Tasks:
        """Tokenize what is rated: by the model's own files, or a framework that can.

        The own tokenizer also tells which bytes of a text its tokens stand for.
        """
        if not texts or all(item.failure for item in prepared):
            return Tasks((), {})
        self._observer.preparing("tokenizing the texts to rate")
        try:
            return make_tasks(texts, own_tokens(source.path))
        except ModelError as error:
            nothing = error
        for position in _with_tokenizer(prepared)[0]:
            runner = prepared[position].variant.runner

            def rated(session: Session, model: LoadedModel, runner: str = runner) -> Tasks:
                return make_tasks(texts, remote_tokens(session, model, runner))

            if made := self._with_vocabulary(prepared, position, rated):
                return made
        return all_failed(texts, nothing)

    def _with_vocabulary(
        self,
        prepared: list[PreparedVariant],
        position: int,
        work: Callable[[Session, LoadedModel], T],
    ) -> T | None:
        """Do `work` with a variant's vocabulary; None where it has failed by now."""
        item = prepared[position]
        if item.failure or item.file is None:
            return None
        file = item.file

        def load(session: Session) -> T:
            path = self._board.place(file, self._observer.transferring)
            request = LoadRequest(path, 1, vocab_only=True)
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
        session = self._board.open(launch)
        try:
            with session:
                return work(session)
        except RunnerError as error:
            return failure_of(error, log_tail=session.log_tail())

    def _launch(self, runner: str, python: str | None, purpose: str) -> Launch:
        return Launch(runner, self._logs / f"{purpose}-{runner}.log", python)


def _with_tokenizer(prepared: Sequence[PreparedVariant]) -> tuple[list[int], list[int]]:
    """Places of the variants that can make prompts: by their vocabulary, and by the whole model."""
    found: tuple[list[int], list[int]] = ([], [])
    for position, item in enumerate(prepared):
        can = item.description.capabilities if item.description is not None else None
        if can is not None and can.tokenizer:
            found[can.tokenizer_loads_model].append(position)
    return found


def _no_maker(runner: str, error: RunnerError) -> RunnerError:
    msg = (
        f"{runner} makes models for a board on this machine, where it can't be started: "
        f"{error.message}"
    )
    return RunnerUnavailableError(
        msg, remedy="Install it here too, or take 'source' of a file that is its own."
    )


def _too_large(why: str | None) -> Failure | None:
    return failure_of(ModelError(why, remedy=REMEDY)) if why else None


def _shapes_nothing(options: Mapping[str, object]) -> RunnerRefusedError:
    msg = (
        f"{', '.join(options)}: options of converting, and the quantization 'source' is loaded "
        "as it is"
    )
    return RunnerRefusedError(
        msg, reason="invalid", remedy="Name a quantization to make, or leave them out."
    )
