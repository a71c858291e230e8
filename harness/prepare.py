"""Before anything is measured: the model, each variant's artifact, the prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.errors import BoardLinkError, ModelError, RunnerError, RunnerRefusedError
from edgebench.harness.failures import failure_of
from edgebench.harness.making import Making
from edgebench.harness.prepared import Prepared, PreparedVariant
from edgebench.harness.prompts import task_texts
from edgebench.harness.quality.tokens import (
    Tasks,
    all_failed,
    make_tasks,
    own_tokens,
    remote_tokens,
)
from edgebench.harness.results.measured import Failure
from edgebench.harness.session import PROBE_TIMEOUT_S, Launch
from edgebench.harness.tokenization import (
    TIMEOUT_S,
    NoTokenizer,
    RemoteTokenizer,
    Tokenized,
    make_prompts,
    own_tokenizer,
)
from edgebench.runners.base import LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.harness.board import Board
    from edgebench.harness.prompts import TaskText
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario
    from edgebench.harness.session import Session
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.store.store import StoredFile
    from edgebench.harness.workshop import Workshop
    from edgebench.runners.base import LoadedModel, TaskDescription

T = TypeVar("T")


class Preparation:
    """Prepares one scenario.

    Args:
        workshop: what this machine prepares it with.
        board: where it runs.
    """

    def __init__(self, workshop: Workshop, board: Board) -> None:
        self._store = workshop.store
        self._logs = workshop.logs
        self._observer = workshop.observer
        self._pythons = workshop.pythons
        self._room = workshop.room
        self._board = board
        self._making = Making(workshop, board)
        self._described: dict[tuple[str, str | None], wire.Probe | Failure] = {}
        self._tasks: dict[tuple[str, str | None, str], TaskDescription | Failure] = {}

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
        prepared = self._making.not_even_fetched(prepared, source)
        if all(item.failure for item in prepared):
            return Prepared(tuple(prepared), (), {}, tasks=tasks)
        self._observer.preparing(f"fetching {scenario.model.name}")
        file = self._store.fetch(
            source, sha256=scenario.model.sha256, progress=self._observer.transferring
        )
        prepared = [self._making.fitting(self._making.artifact(item, file)) for item in prepared]
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
        again = self._board.remote  # nothing is measured yet: a link that broke is made anew
        while True:
            session = self._board.open(launch)
            try:
                with session:
                    return work(session)
            except RunnerError as error:
                if not (again and isinstance(error, BoardLinkError)):
                    return failure_of(error, log_tail=session.log_tail())
                again = False

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
