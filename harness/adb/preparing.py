"""Before anything is measured on an Android device: its tools, the model, each variant's artifact.

Artifacts are made on this machine, by the framework that is installed here. The tools make up their
own prompts, of which only the length is asked.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness import wire
from edgebench.harness.adb.elf import abi_of, is_script
from edgebench.harness.adb.tools import TOOLS
from edgebench.harness.errors import (
    BoardUnfitError,
    RunnerRefusedError,
)
from edgebench.harness.failures import failure_of
from edgebench.harness.making import Making
from edgebench.harness.prepared import Prepared, PreparedVariant
from edgebench.harness.prompts import Prompt, task_texts
from edgebench.runners.base import Capabilities, Description

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.harness.adb.board import AdbBoard
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario, Workload
    from edgebench.harness.store.sources import ModelSource
    from edgebench.harness.workshop import Workshop

UNTOLD = "(version not told)"
"""A tool's version, as long as it has printed none."""


class AndroidPreparation:
    """Prepares one scenario.

    Args:
        workshop: what this machine prepares it with.
        board: the device.
        base: the folder that a relative path of a tool is relative to.
        tools: by runner, as the scenario has them.
    """

    def __init__(
        self, workshop: Workshop, board: AdbBoard, *, base: Path, tools: Mapping[str, str]
    ) -> None:
        self._store = workshop.store
        self._observer = workshop.observer
        self._board = board
        self._room = workshop.room
        self._base = base
        self._tools = tools
        self._making = Making(workshop, board)
        self._checked: dict[str, Failure | None] = {}

    def run(
        self,
        scenario: Scenario,
        variants: Sequence[ExpandedVariant],
        source: ModelSource,
        texts: Sequence[TextWorkload] = (),
    ) -> Prepared:
        """Check the tools, fetch the model, make the artifacts.

        Raises:
            ModelError: the source can't be had, so that nothing can be run.
            StoreError: the store can't be written to at all.
        """
        items = [self._described(variant) for variant in variants]
        prompts, failures = prompts_of(scenario.workloads)
        no_texts = {each.workload.name: _unsupported("no text is rated there") for each in texts}
        tasks = task_texts(scenario.workloads)
        no_tasks = {str(each.task): _unsupported("no whole task is run there") for each in tasks}
        items = [replace(item, task_failures=no_tasks) for item in items]
        if all(item.failure for item in items):
            return Prepared(tuple(items), (), {}, tasks=tasks)
        if note := self._room.contradiction():
            self._observer.note(note)
        items = self._making.not_even_fetched(items, source)
        if all(item.failure for item in items):
            return Prepared(tuple(items), (), {}, tasks=tasks)
        self._observer.preparing(f"fetching {scenario.model.name}")
        file = self._store.fetch(
            source, sha256=scenario.model.sha256, progress=self._observer.transferring
        )
        made = [self._making.made_here(item, file) for item in items]
        made = list(map(_with_options_checked, made))
        used = dict.fromkeys(each.variant.runner for each in made if not each.failure)
        notes = [caveat for runner in used for caveat in TOOLS[runner].caveats]
        for note in notes:
            self._observer.note(note)
        return Prepared(
            tuple(made),
            tuple(prompts),
            failures,
            file,
            tasks,
            quality_failures=no_texts,
            notes=tuple(notes),
        )

    def _described(self, variant: ExpandedVariant) -> PreparedVariant:
        """With what runs it on the device, or why nothing does."""
        runner = variant.runner
        if runner not in self._checked:
            self._checked[runner] = self._tool_failure(runner)
        item = PreparedVariant(variant, None, board=self._board)
        failure = self._checked[runner]
        if failure is not None:
            return replace(item, failure=failure)
        return replace(item, probe=wire.Probe(_description(runner)))

    def _tool_failure(self, runner: str) -> Failure | None:
        """Why a runner's tool can't be used, as far as this machine can tell."""
        if runner not in TOOLS:
            known = ", ".join(TOOLS)
            return _unsupported(f"there is no tool for {runner}, only for {known}")
        program = TOOLS[runner].program
        if runner not in self._tools:
            msg = f"device.tools names no tool for {runner}"
            return failure_of(
                BoardUnfitError(
                    msg, remedy=f"Build {program} for the device and give its path there."
                )
            )
        try:
            self._check_tool(tool_path(self._tools[runner], self._base))
        except BoardUnfitError as error:
            return failure_of(error)
        return None

    def _check_tool(self, path: Path) -> None:
        remedy = "Build it, and give its path on this machine in device.tools; see docs/devices.md."
        if not path.is_file():
            msg = f"there is no tool {path}"
            raise BoardUnfitError(msg, remedy=remedy)
        try:
            abi, script = abi_of(path), is_script(path)
        except OSError as error:
            msg = f"the tool {path} can't be read: {error.strerror or error}"
            raise BoardUnfitError(msg, remedy=remedy) from error
        if abi is None and not script:
            msg = f"{path} is no program: it is no ELF file"
            raise BoardUnfitError(msg, remedy=remedy)
        abis = self._board.phone.abis
        if abi is not None and abis and abi not in abis:
            msg = f"{path.name} is built for {abi}, and the device runs {', '.join(abis)}"
            raise BoardUnfitError(msg, remedy=f"Build it for {abis[0]} with the Android NDK.")


def tool_path(written: str, base: Path) -> Path:
    """Where a tool is on this machine; relative to the scenario's folder.

    Args:
        written: as the scenario has it; ``~`` is the user's home.
        base: the scenario's folder.
    """
    # Path.expanduser raises where there is no home folder; this leaves the text alone.
    return base / os.path.expanduser(written)  # noqa: PTH111


def prompts_of(workloads: Sequence[Workload]) -> tuple[list[Prompt], dict[str, Failure]]:
    """The workloads that tools can measure, and why others can't be."""
    prompts, failures = [], {}
    for each in workloads:
        if each.task or each.quality:
            continue
        if each.prompt_tokens is None or each.generate_tokens is None:
            why = "tools make up their own prompts: give its length as prompt_tokens"
            failures[each.name] = _unsupported(why)
        elif each.sustained is not None:
            why = "tools tell one rate a repetition, so that nothing is told over time"
            failures[each.name] = _unsupported(f"sustained work is not measured there: {why}")
        else:
            prompts.append(
                Prompt(
                    each.name,
                    (0,) * each.prompt_tokens,
                    None,
                    (0,) * each.depth,
                    each.generate_tokens,
                    made_up=True,
                )
            )
    return prompts, failures


def _with_options_checked(item: PreparedVariant) -> PreparedVariant:
    """A failure where an option can't be handed to the tool: it would be measured without it."""
    if item.failure:
        return item
    tool = TOOLS[item.variant.runner]
    unknown = [name for name in item.load_options if name not in tool.options]
    if not unknown:
        return item
    has = ", ".join(sorted(tool.options))
    msg = f"{tool.program} takes none of {', '.join(unknown)}; it takes {has}"
    error = RunnerRefusedError(msg, reason="unsupported", remedy="Leave it out of the variant.")
    return replace(item, failure=failure_of(error))


def _description(runner: str) -> Description:
    can_nothing = Capabilities(
        token_ids_in=False,
        token_ids_out=False,
        token_timestamps=False,
        ignores_end_of_text=False,
        threads=True,
    )
    build = {"tool": TOOLS[runner].program}
    return Description(TOOLS[runner].engine, UNTOLD, can_nothing, build)


def _unsupported(why: str) -> Failure:
    msg = f"on an Android device frameworks' own tools run: {why}"
    return failure_of(RunnerRefusedError(msg, reason="unsupported"))
