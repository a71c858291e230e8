"""One process, one block: load the model, warm up, repeat; every outcome becomes a record."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.errors import InvalidResultError, RunnerError, RunnerRefusedError
from edgebench.harness.failures import failure_of
from edgebench.harness.metrics.system import timeline, window_metrics
from edgebench.harness.prompts import TaskText
from edgebench.harness.records import utc_now
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.summary import warmup_is_stable
from edgebench.harness.results.trial import Trial
from edgebench.harness.results.writer import LOGS_FOLDER
from edgebench.harness.session import Launch
from edgebench.harness.store.progress import Progress, silent
from edgebench.harness.work import Generating, RunningTask, Sustaining
from edgebench.runners.base import LoadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from edgebench.devices.window import EnergyTrace
    from edgebench.harness.board import Board, Watch
    from edgebench.harness.cooldown import Waited
    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.prompts import Prompt
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.results.model import ProtocolRecord
    from edgebench.harness.results.trial import Phase
    from edgebench.harness.session import Session
    from edgebench.harness.work import Loaded, Outcome, Work

NS = 1e9
IDLE_S = 1.0
"""How long the idle power is measured before each block."""


@dataclass(slots=True)
class Clock:
    """Where the wall time goes, in seconds."""

    start_s: float = 0.0
    load_s: float = 0.0
    warmup_s: float = 0.0
    measured_s: float = 0.0
    cooldown_s: float = 0.0
    quality_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bench:
    """What all blocks of a run share.

    Attributes:
        folder: the run's folder.
        board: where it runs.
        transferring: told of models being copied there.
        note: told what the user had better know at once.
        lost_meters: the names of those of which that was told.
        record: called with each trial as soon as it is over.
        begins: called before each generation, or run of a task.
        out_of_time: whether the time budget is spent.
    """

    folder: Path
    protocol: ProtocolRecord
    context_tokens: int
    board: Board
    record: Callable[[Trial], None]
    begins: Callable[[str, str, Phase, int], None]
    out_of_time: Callable[[], bool]
    transferring: Progress = silent
    clock: Clock = field(default_factory=Clock)
    note: Callable[[str], object] = lambda _text: None
    lost_meters: set[str] = field(default_factory=set)

    def note_lost(self, traces: Sequence[EnergyTrace]) -> None:
        """Tell the user of a meter that could not be read, the first time that it is so."""
        for each in traces:
            why = each.reason or next((gap.reason for gap in each.gaps), None)
            if why is not None and each.meter not in self.lost_meters:
                self.lost_meters.add(each.meter)
                self.note(f"power: {why}")


@dataclass(frozen=True, slots=True)
class Task:
    """A workload in a block, and how often it is to be measured there."""

    prompt: Prompt | TaskText
    repetitions: int


def run_block(
    bench: Bench,
    item: PreparedVariant,
    tasks: Sequence[Task],
    block: int,
    waited: Waited | None = None,
) -> None:
    """Run one variant's workloads in a fresh process; another one where a framework dies.

    Whole tasks have a process of their own, and so has sustained work.

    Args:
        bench: what all blocks share.
        item: the variant.
        tasks: its workloads.
        block: the block's number.
        waited: how the device cooled down before; None where that was not asked for.
    """
    before = before_block(bench, waited)
    attempt = 0
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault(_process_of(task), []).append(task)
    for (kind, name), group in groups.items():
        pending = group
        while pending and not bench.out_of_time():
            work: Work = Generating(before["idle_power_w"])
            if kind == "task":
                work = RunningTask(name)
            elif kind == "sustained":
                work = Sustaining(before["idle_power_w"])
            pending = _Process(bench, item, work, block, attempt, before).run(pending)
            attempt += 1


def before_block(bench: Bench, waited: Waited | None) -> dict[str, Measured]:
    """What is read before anything runs: the idle power, and how the device cooled down."""
    return {"idle_power_w": _idle_power(bench), **(_cooling(waited) if waited else {})}


def _process_of(task: Task) -> tuple[str, str]:
    """Workloads of which this is the same share a process."""
    if isinstance(task.prompt, TaskText):
        return "task", task.prompt.task
    if task.prompt.sustained_s is not None:
        return "sustained", task.prompt.workload
    return "generate", ""


def _cooling(waited: Waited) -> dict[str, Measured]:
    """How the block came to its start."""
    celsius = Measured.missing("°C", waited.why or "not readable here")
    if waited.celsius is not None:
        celsius = Measured(value=waited.celsius, unit="°C", source="observed")
    return {
        "cooldown_wait_s": Measured(value=waited.seconds, unit="s", source="observed"),
        "start_temperature_celsius": celsius,
    }


def _idle_power(bench: Bench) -> Measured:
    """What the machine draws with nothing of ours running."""
    meters = bench.board.meters()
    if not meters.found:
        return Measured.missing("W", meters.why_none)
    begun = time.perf_counter()
    idle = bench.board.idle_watts(IDLE_S)[0]
    bench.clock.cooldown_s += time.perf_counter() - begun
    if idle.value is None:
        return Measured.missing("W", idle.reason or "")
    return Measured(value=idle.value, unit="W", source=meters.found[0].source)


def log_name(variant: str, block: int, attempt: int) -> Path:
    """The log of one process, relative to the run's folder."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", variant).strip("-.") or "variant"
    again = f"-{attempt}" if attempt else ""
    return Path(LOGS_FOLDER) / f"{slug[:80]}-block{block}{again}.log"


class _Process:
    """One start of a runner."""

    def __init__(
        self,
        bench: Bench,
        item: PreparedVariant,
        work: Work,
        block: int,
        attempt: int,
        before: Mapping[str, Measured],
    ) -> None:
        self._bench = bench
        self._item = item
        self._work = work
        self._block = block
        self._before = before
        self._log = log_name(item.variant.id, block, attempt)
        launch = Launch(item.variant.runner, bench.folder / self._log, item.python)
        self._session = bench.board.open(launch)

    def run(self, tasks: list[Task]) -> list[Task]:
        """Do the tasks; give back those that the process did not live to do."""
        begun = time.perf_counter()
        stamp = utc_now()
        try:
            with self._session as session:
                self._work.begin(session, self._bench.protocol.timeout_s)
                self._bench.clock.start_s += time.perf_counter() - begun
                with self._bench.board.watch(session) as monitor:
                    self._load(session, monitor)
                    return self._do(tasks, session, monitor)
        except RunnerError as error:
            self._bench.record(
                Trial(
                    kind=self._work.load_kind,
                    variant=self._item.variant.id,
                    workload=None,
                    block=self._block,
                    repetition=0,
                    phase="measured",
                    status="failed",
                    started_at=stamp,
                    duration_s=time.perf_counter() - begun,
                    failure=self._failure(error),
                )
            )
            return []

    def _do(self, tasks: list[Task], session: Session, monitor: Watch) -> list[Task]:
        for done, task in enumerate(tasks, start=1):
            alive = self._workload(task, session, monitor)
            if not alive:
                return tasks[done:]
        return []

    def _load(self, session: Session, monitor: Watch) -> None:
        """Load the model and record how long it took and what it weighs."""
        bench, item = self._bench, self._item
        assert item.file is not None
        request = LoadRequest(
            model_path=bench.board.place(item.file, bench.transferring),
            context_tokens=bench.context_tokens,
            options=item.load_options,
        )
        # Cold and warm loads take turns, so that both get their repetitions.
        may_be_cold = bench.protocol.cold_load and self._work.load_kind == "load"
        cold = may_be_cold and self._block % 2 == 1
        made = self._work.prepare(session, request, bench.protocol.timeout_s)
        not_cold = "this load found the file in memory"
        if cold:
            files = [request.model_path, *map(str, made)]
            not_cold = next(filter(None, map(bench.board.evict, files)), "")
        baseline = monitor.current_rss()
        stamp, begun = utc_now(), time.perf_counter()
        monitor.begin()
        loaded = self._work.load(session, request, bench.protocol.timeout_s)
        window = monitor.end()
        bench.note_lost(window.energy)
        took = time.perf_counter() - begun
        bench.clock.load_s += took
        if not may_be_cold:
            not_cold = "measure.cold_load is off"
        metrics = {
            **self._load_times(loaded, not_cold),
            "baseline_rss_bytes": Measured(
                value=baseline.value,
                unit="byte",
                source="observed",
                reason=None if baseline.value is not None else baseline.reason,
            ),
            **window_metrics(window),
            **self._before,
            "model_bytes": Measured(value=item.file.bytes, unit="byte", source="observed"),
            "bits_per_weight": Measured(
                value=8 * item.file.bytes / loaded.parameters, unit="bit", source="derived"
            )
            if loaded.parameters
            else Measured.missing("bit", "the framework does not tell the number of weights"),
        }
        bench.record(
            Trial(
                kind=self._work.load_kind,
                variant=item.variant.id,
                workload=None,
                block=self._block,
                repetition=0,
                phase="measured",
                status="ok",
                started_at=stamp,
                duration_s=took,
                metrics=metrics,
                timeline=timeline(window, loaded.started_ns),
                effective_options=dict(loaded.effective_options),
                parameters=loaded.parameters,
                weight_bytes_per_token=loaded.weight_bytes_per_token,
                engine=loaded.engine,
                engine_version=loaded.engine_version,
            )
        )

    def _load_times(self, loaded: Loaded, not_cold: str | None) -> dict[str, Measured]:
        """How long loading took, under the key of what it was."""
        took = (loaded.ready_ns - loaded.started_ns) / NS
        load = Measured(value=took, unit="s", source="observed")
        if self._work.load_kind == "task_load":
            return {"task_load_s": load}
        return {
            "load_s": load
            if not_cold
            else Measured.missing("s", "this load found no page of the file in memory"),
            "load_cold_s": Measured.missing("s", not_cold) if not_cold else load,
        }

    def _workload(self, task: Task, session: Session, monitor: Watch) -> bool:
        """Warm up until stable, then repeat. False where the process can't go on."""
        protocol = self._bench.protocol
        warmups: list[Trial] = []
        # Warming up until stable would heat what is to begin cool.
        most = protocol.warmup_min if self._work.kind == "sustained" else protocol.warmup_max
        while len(warmups) < most and not (
            len(warmups) >= protocol.warmup_min
            and warmup_is_stable(warmups, protocol.warmup_stable_within)
        ):
            if warmups and self._bench.out_of_time():
                return True
            trial, alive = self._trial(task, session, monitor, "warmup", len(warmups))
            if trial.status == "failed":
                return alive
            warmups.append(trial)
        for repetition in range(task.repetitions):
            if self._bench.out_of_time():
                return True
            trial, alive = self._trial(task, session, monitor, "measured", repetition)
            if trial.status == "failed":
                return alive
        return True

    def _trial(
        self,
        task: Task,
        session: Session,
        monitor: Watch,
        phase: Phase,
        repetition: int,
    ) -> tuple[Trial, bool]:
        """One repetition; whether the process can do another."""
        bench = self._bench
        bench.begins(self._item.variant.id, task.prompt.workload, phase, repetition)
        common = {
            "kind": self._work.kind,
            "variant": self._item.variant.id,
            "workload": task.prompt.workload,
            "block": self._block,
            "repetition": repetition,
            "phase": phase,
            "started_at": utc_now(),
        }
        monitor.begin()
        begun = time.perf_counter()
        failed: RunnerError | None = None
        made: Outcome | None = None
        do = self._work.warm_up if phase == "warmup" else self._work.run
        try:
            made = do(session, task.prompt, bench.protocol.timeout_s)
        except RunnerError as error:
            failed = error
        took = time.perf_counter() - begun
        window = monitor.end()
        bench.note_lost(window.energy)
        if phase == "warmup":
            bench.clock.warmup_s += took
        else:
            bench.clock.measured_s += took
        if made is None:
            assert failed is not None
            failure = self._failure(failed)
            part = self._work.broken_off()
            if part is not None:
                message = f"{failure.message.removesuffix('.')}. {part.how_far}"
                failure = failure.model_copy(update={"message": message})
            trial = Trial.model_validate(
                {
                    **common,
                    "status": "failed",
                    "duration_s": took,
                    "failure": failure,
                    **(part.fields(window) if part is not None else {}),
                }
            )
        else:
            trial = Trial.model_validate(
                {
                    **common,
                    "status": "ok",
                    "duration_s": took,
                    **made.fields(window),
                }
            )
        bench.record(trial)
        return trial, failed is None or isinstance(failed, RunnerRefusedError | InvalidResultError)

    def _failure(self, error: RunnerError) -> Failure:
        return failure_of(error, log=self._log, log_tail=self._session.log_tail())
