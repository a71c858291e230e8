"""Each variant's artifact: made on this machine, kept in the store, refused where it can't fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness import wire
from edgebench.harness.artifacts import conversion
from edgebench.harness.errors import (
    ModelError,
    RunnerError,
    RunnerRefusedError,
    RunnerUnavailableError,
    StoreError,
)
from edgebench.harness.failures import failure_of
from edgebench.harness.fit import REMEDY, least_bytes, least_of
from edgebench.harness.results.measured import Failure
from edgebench.harness.session import PROBE_TIMEOUT_S, Launch, Session
from edgebench.harness.store.sources import HubSource
from edgebench.runners.base import ConvertRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.board import Board
    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.store.store import StoredFile
    from edgebench.harness.workshop import Workshop

CONVERT_TIMEOUT_S = 4 * 3600.0


class Making:
    """Makes artifacts, one after the other.

    Args:
        workshop: what this machine makes them with.
        board: where they are loaded.
    """

    def __init__(self, workshop: Workshop, board: Board) -> None:
        self._store = workshop.store
        self._logs = workshop.logs
        self._observer = workshop.observer
        self._pythons = workshop.pythons
        self._room = workshop.room
        self._board = board
        self._makers: dict[str, wire.Probe | Failure] = {}

    def not_even_fetched(
        self, items: Sequence[PreparedVariant], source: ModelSource
    ) -> list[PreparedVariant]:
        """With a failure where the source's size alone tells that nothing made of it can fit.

        To read a model of some GB, for its hash, takes as long as a small run; to fetch it, longer.

        Raises:
            ModelError: the source's hub can't be reached, or says no.
        """
        if not self._room.is_known:
            return list(items)
        if isinstance(source, HubSource):
            self._observer.preparing(f"asking how large {source} is")
        told = self._store.told_size(source)
        if told is None:
            return list(items)
        return [
            item
            if item.failure
            else replace(
                item,
                failure=_too_large(self._room.why_not(least_of(told, item.variant.quantization))),
            )
            for item in items
        ]

    def artifact(self, item: PreparedVariant, source: StoredFile) -> PreparedVariant:
        """With what the variant's framework loads.

        Args:
            item: a variant, with what its framework says of itself where it runs.
            source: the model.
        """
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
            with Session(self._launch(variant.runner, python)) as session:
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
        return self.fitting(self.artifact(item, source))

    def fitting(self, item: PreparedVariant) -> PreparedVariant:
        """A failure where what it loads can't fit, before that is copied anywhere."""
        if item.failure or item.file is None:
            return item
        return replace(item, failure=_too_large(self._room.why_not(item.file.bytes)))

    def _maker(self, runner: str, there: wire.Probe | None) -> wire.Probe | Failure:
        """The framework of this machine, which makes the artifact for another one.

        Args:
            runner: its name.
            there: what it says of itself on the board; None where no runner is there to say it.
        """
        if runner not in self._makers:
            self._observer.preparing(f"starting {runner} on this machine")
            session = Session(self._launch(runner, self._pythons.get(runner)))
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

    def _launch(self, runner: str, python: str | None) -> Launch:
        return Launch(runner, self._logs / f"convert-{runner}.log", python)


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
