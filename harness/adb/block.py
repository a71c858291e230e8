"""One variant in one block on an Android device: its tool is started, and what it tells is kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Final

from edgebench.harness.adb.metrics import generate_metrics, load_metrics
from edgebench.harness.adb.power import EnergyLog
from edgebench.harness.adb.running import Run
from edgebench.harness.adb.tool import Told, Wanted
from edgebench.harness.adb.tools import TOOLS
from edgebench.harness.errors import (
    BoardLinkError,
    RunnerError,
    RunnerRefusedError,
)
from edgebench.harness.failures import failure_of
from edgebench.harness.measure import before_block, log_name
from edgebench.harness.prompts import Prompt
from edgebench.harness.records import utc_now
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from edgebench.devices.window import EnergyTrace
    from edgebench.harness.adb.board import AdbBoard
    from edgebench.harness.adb.running import Ended, Program
    from edgebench.harness.adb.tool import Ask, Sample
    from edgebench.harness.cooldown import Waited
    from edgebench.harness.measure import Bench, Task
    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.results.measured import Measured
    from edgebench.harness.results.trial import Phase

FURTHER: Final = 2
"""A start of a tool may take as long as so many repetitions more: it loads and warms up."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the tool that went well."""

    ask: Ask
    told: Told
    ended: Ended
    traces: tuple[EnergyTrace, ...]


@dataclass(slots=True)
class Repetition:
    """What one repetition of a workload is known by; a phase may have a start of its own."""

    prefill: tuple[Start, Sample] | None = None
    decode: tuple[Start, Sample] | None = None
    starts: list[Start] = field(default_factory=list)


def run_tools(
    bench: Bench,
    board: AdbBoard,
    item: PreparedVariant,
    tool_file: Path,
    tasks: Sequence[Task],
    block: int,
    waited: Waited | None = None,
) -> None:
    """Measure one variant's workloads; what fails is a row, and the others go on.

    Args:
        bench: what all blocks share.
        board: the device.
        item: the variant.
        tool_file: its tool, on this machine.
        tasks: its workloads, and how often each.
        block: the block's number.
        waited: how the device cooled down before; None where that was not asked for.
    """
    before = before_block(bench, waited)
    _Block(bench, board, item, tool_file, block, before).run(tasks)


class _Block:
    def __init__(
        self,
        bench: Bench,
        board: AdbBoard,
        item: PreparedVariant,
        tool_file: Path,
        block: int,
        before: Mapping[str, Measured],
    ) -> None:
        self._bench = bench
        self._board = board
        self._item = item
        self._tool = TOOLS[item.variant.runner]
        self._tool_file = tool_file
        self._block = block
        self._before = before
        self._log = log_name(item.variant.id, block, 0)
        self._is_loaded = False
        self._tail = ""

    def run(self, tasks: Sequence[Task]) -> None:
        path = self._bench.folder / self._log
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as log:
            for task in tasks:
                if self._bench.out_of_time():
                    return
                self._workload(task, log)

    def _workload(self, task: Task, log: IO[bytes]) -> None:
        bench, workload = self._bench, task.prompt.workload
        bench.begins(self._item.variant.id, workload, "measured", 0)
        stamp, begun = utc_now(), time.perf_counter()
        warmups = bench.protocol.warmup_min
        count = warmups + task.repetitions
        self._tail = ""
        try:
            program, wanted = self._placed(task)
            begun = time.perf_counter()  # copying is no part of it
            made = self._repetitions(program, wanted, count, log)
        except RunnerError as error:
            took = time.perf_counter() - begun
            bench.clock.measured_s += took
            failure = failure_of(error, log=self._log, log_tail=self._tail)
            trial = self._trial(workload, stamp, took, "measured", 0)
            bench.record(trial.model_copy(update={"status": "failed", "failure": failure}))
            return
        took = time.perf_counter() - begun
        bench.clock.warmup_s += took * warmups / count
        bench.clock.measured_s += took * task.repetitions / count
        self._record_load(made[0].starts, stamp)
        for at, each in enumerate(made):
            phase: Phase = "warmup" if at < warmups else "measured"
            number = at if at < warmups else at - warmups
            trial = self._trial(workload, stamp, took / count, phase, number)
            metrics, power = generate_metrics(self._tool.program, each, self._before)
            bench.record(trial.model_copy(update={"metrics": metrics, "power": power}))

    def _placed(self, task: Task) -> tuple[Program, Wanted]:
        """The tool on the device, and what it is asked for.

        Raises:
            RunnerError: it can't measure this, or something can't be copied there.
        """
        bench, item, prompt = self._bench, self._item, task.prompt
        assert isinstance(prompt, Prompt)
        assert item.file is not None
        self._board.reach()
        wanted = Wanted(
            model="",
            prompt_tokens=len(prompt.ids),
            depth_tokens=len(prompt.depth_ids),
            generate_tokens=prompt.generate_tokens,
            options=item.load_options,
            context_tokens=bench.context_tokens,
            model_bytes=item.file.bytes,
        )
        if why := self._tool.refusal(wanted):
            raise RunnerRefusedError(why, reason="unsupported")
        try:
            program = self._board.place_tool(self._tool_file, bench.transferring)
            model = self._board.place(item.file, bench.transferring)
            asks = not self._tool.changing.isdisjoint(wanted.options)
            usage = self._board.usage(program) if asks else ""
        except BoardLinkError:
            self._board.lost()
            raise
        return program, replace(wanted, model=model, usage=usage)

    def _repetitions(
        self, program: Program, wanted: Wanted, count: int, log: IO[bytes]
    ) -> list[Repetition]:
        """So many, from as many starts as the tool needs for them."""
        made: list[Repetition] = [Repetition() for _ in range(count)]
        first = {"prefill": 0, "decode": 0}
        for ask in self._tool.asks(wanted, count):
            start = self._start(program, ask, wanted, log)
            for phase, samples in (("prefill", start.told.prefill), ("decode", start.told.decode)):
                for sample in samples:
                    each = made[first[phase]]
                    if phase == "prefill":
                        each.prefill = (start, sample)
                    else:
                        each.decode = (start, sample)
                    if start not in each.starts:
                        each.starts.append(start)
                    first[phase] += 1
        return made

    def _start(self, program: Program, ask: Ask, wanted: Wanted, log: IO[bytes]) -> Start:
        limit_s = self._bench.protocol.timeout_s * (ask.repetitions + FURTHER)
        run = Run(self._board.adb, program, log)
        meters = EnergyLog(self._board.power_meters())
        try:
            with meters:
                ended = run.wait(ask.arguments, limit_s)
            traces = meters.traces()
            self._bench.note_lost(traces)
            return Start(ask, self._tool.read(ask, wanted, ended.lines), ended, traces)
        except BoardLinkError:
            self._board.lost()
            raise
        finally:
            # It has been ended, unless the device did not answer to that.
            if run.left is not None:
                self._board.lost(run.left)
            self._tail = run.tail()

    def _record_load(self, starts: Sequence[Start], stamp: str) -> None:
        """Once a block: what was loaded, and by what."""
        if self._is_loaded:
            return
        self._is_loaded = True
        item = self._item
        assert item.file is not None
        told = starts[-1].told
        self._bench.record(
            Trial(
                kind="load",
                variant=item.variant.id,
                workload=None,
                block=self._block,
                repetition=0,
                phase="measured",
                status="ok",
                started_at=stamp,
                duration_s=told.load_s or 0.0,
                metrics=load_metrics(self._tool.program, starts, item.file.bytes, self._before),
                effective_options=dict(told.options),
                parameters=told.parameters,
                engine=self._tool.engine,
                engine_version=told.engine_version,
            )
        )

    def _trial(
        self, workload: str, stamp: str, took: float, phase: Phase, repetition: int
    ) -> Trial:
        return Trial(
            kind="generate",
            variant=self._item.variant.id,
            workload=workload,
            block=self._block,
            repetition=repetition,
            phase=phase,
            status="ok",
            started_at=stamp,
            duration_s=took,
        )
