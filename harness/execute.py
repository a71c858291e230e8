"""The run itself: prepare, measure in randomised blocks, keep every trial as it ends."""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from edgebench.devices.power import MeterSearch, find_meters
from edgebench.harness.errors import ResultError
from edgebench.harness.measure import Bench, Clock, Task, run_block
from edgebench.harness.metrics import statistics
from edgebench.harness.observer import Outlook, Silent, Standing
from edgebench.harness.prepare import Preparation, Prepared, PreparedVariant
from edgebench.harness.prompts import TaskText
from edgebench.harness.quality.tokens import text_workloads
from edgebench.harness.records import (
    Settings,
    first_record,
    prepared_record,
    utc_now,
    with_loads,
    with_quality,
)
from edgebench.harness.results.model import (
    Accounting,
    ProtocolRecord,
    RunRecord,
    Trial,
)
from edgebench.harness.results.summary import is_settled, summarize
from edgebench.harness.results.writer import LOGS_FOLDER, RunWriter, cut_half_line
from edgebench.harness.scenario.expand import expand
from edgebench.harness.scenario.values import HIGH_PRECISION
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.harness.tally import Tally
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.prompts import Prompt
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.results.model import Cell, Failure, TrialKind
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.results.run import Run
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario


QUALITY_SHARE = 0.5
"""Of the time budget, where speed is to be measured in it as well."""


def new_run_folder(out: Path, name: str) -> Path:
    """``OUT/SCENARIO/UTC-TIME-SHORT-ID``; two runs at once get two folders."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return out / name / f"{stamp}-{secrets.token_hex(3)}"


def execute(
    scenario: Scenario,
    settings: Settings,
    observer: Observer | None = None,
    *,
    resumed: Run | None = None,
) -> RunRecord:
    """Run a scenario, or go on with one.

    Returns:
        The run's record, as written to its folder.

    Raises:
        EdgebenchError: nothing could be run, or results could not be written. What was finished
            is kept.
        KeyboardInterrupt: as it came; the record says ``interrupted``.
    """
    return _Execution(scenario, settings, observer or Silent(), resumed).run()


class _Execution:
    def __init__(
        self, scenario: Scenario, settings: Settings, observer: Observer, resumed: Run | None
    ) -> None:
        self._scenario = scenario
        self._settings = settings
        self._observer = observer
        self._resumed = resumed
        self._now = settings.monotonic
        self._clock = Clock()
        self._trials: list[Trial] = []
        self._tally = Tally(
            [each.name for each in scenario.workloads if not (each.task or each.quality)],
            [each.name for each in scenario.workloads if each.task],
        )
        self._rated: dict[str, QualityRecord] = {}
        self._lasted: dict[str, float] = {}
        self._begun = self._now()
        self._prepare_s = 0.0
        self._measuring_since = 0.0
        self._stopped_by_budget = False
        if resumed is not None:
            cut_half_line(settings.folder)
        self._writer = RunWriter(settings.folder)

    def run(self) -> RunRecord:
        variants = expand(self._scenario)
        record = first_record(self._scenario, variants, self._settings)
        # What an earlier part wrote stays untouched until it is sure that this one fits it.
        ours = self._resumed is None
        try:
            if ours:
                self._writer.save(record)
            texts = text_workloads(self._scenario, self._settings.base)
            proofs = self._proofs(variants)
            everything = self._prepare([*variants, *proofs], texts)
            prepared = replace(everything, variants=everything.variants[: len(variants)])
            record = prepared_record(record, prepared, everything.variants[len(variants) :])
            if self._resumed is not None:
                record = self._take_up(record, self._resumed)
                ours = True
            if self._scenario.verify and record.reference is None:
                record = self._verify(record, everything)
            self._writer.save(record)
            self._measuring_since = self._now()
            self._record_failures(prepared)
            record = self._score(record, prepared)
            self._measure(record, prepared)
            return self._close(record, "finished")
        except BaseException:
            if ours:
                self._close(record, "interrupted")
            raise
        finally:
            self._writer.close()

    # Preparing ---------------------------------------------------------------------------------

    def _prepare(
        self, variants: Sequence[ExpandedVariant], texts: Sequence[TextWorkload]
    ) -> Prepared:
        source = parse_source(self._scenario.model.source, base=self._settings.base)
        preparation = Preparation(
            self._settings.store or ModelStore(),
            self._settings.folder / LOGS_FOLDER,
            self._observer,
            self._settings.pythons,
        )
        prepared = preparation.run(self._scenario, variants, source, texts)
        self._prepare_s = self._now() - self._begun
        return prepared

    def _proofs(self, variants: Sequence[ExpandedVariant]) -> list[ExpandedVariant]:
        """What is verified beside the scenario's variants, and not measured."""
        if self._scenario.verify != HIGH_PRECISION:
            return []
        from edgebench.harness.verify import high_precision_variants  # noqa: PLC0415 - rare

        made = {name: kind.QUANTIZATIONS for name, kind in runner_classes().items()}
        return high_precision_variants(variants, made)

    def _take_up(self, record: RunRecord, resumed: Run) -> RunRecord:
        """Take over the trials of an earlier part, if it was the same run."""
        old = resumed.record
        changes = [
            name
            for name, before, after in (
                ("the machine", old.machine.fingerprint, record.machine.fingerprint),
                ("edgebench's version", old.edgebench_version, record.edgebench_version),
                ("the scenario", old.scenario_sha256, record.scenario_sha256),
                (
                    "the frameworks or models",
                    _identity(old, resumed.trials),
                    _identity(record, resumed.trials),
                ),
                ("a text to rate, or its tokens", _texts(old), _texts(record)),
            )
            # A run that was killed while preparing has nothing to differ from.
            if before != after and resumed.trials
        ]
        if changes:
            msg = f"the run can't be resumed: {' and '.join(changes)} changed since it began"
            raise ResultError(msg, remedy="Start a new run: results of both would not compare.")
        for trial in resumed.trials:
            self._count(trial)
        same = {each.id: each.sameness for each in old.variants} if resumed.trials else {}
        return record.model_copy(
            update={
                "created_at": old.created_at,
                # The same models were compared: once is enough.
                "reference": old.reference if same else None,
                "variants": [
                    each.model_copy(update={"sameness": same.get(each.id)})
                    for each in record.variants
                ],
                "proofs": old.proofs if same else record.proofs,
            }
        )

    def _verify(self, record: RunRecord, prepared: Prepared) -> RunRecord:
        """Compare with the reference; what comes of it is shown, and measuring goes on."""
        from edgebench.harness.verify import Verification, verified_record  # noqa: PLC0415 - rare

        if not prepared.prompts:
            self._observer.note("nothing is verified: no workload has a prompt to compare on")
            return record
        verification = Verification(
            self._settings.folder, self._observer, record.protocol.timeout_s
        )
        record = verified_record(record, verification.run(prepared))
        for variant in [*record.variants, *record.proofs]:
            for finding in variant.sameness.findings if variant.sameness else ():
                self._observer.note(f"{variant.id} is not the same model: {finding}")
        self._prepare_s = self._now() - self._begun
        return record

    # Rating texts ------------------------------------------------------------------------------

    def _score(self, record: RunRecord, prepared: Prepared) -> RunRecord:
        """Rate the texts, before any speed is measured, in a part of the time budget."""
        if not prepared.quality:
            return record
        from edgebench.harness.quality.run import score_texts  # noqa: PLC0415 - rare

        begun = self._now()
        others = len(prepared.prompts) + len(prepared.tasks)
        score_texts(
            prepared,
            self._trials,
            store=self._settings.store or ModelStore(),
            folder=self._settings.folder,
            observer=self._observer,
            timeout_s=record.protocol.timeout_s,
            budget_s=record.protocol.time_budget_s * (QUALITY_SHARE if others else 1),
            now=self._now,
            keep=self._keep,
            known=self._rated.__setitem__,
        )
        self._clock.quality_s = self._now() - begun
        rated = self._rated.values()
        if any(0 < each.windows < each.windows_planned for each in rated):
            self._stopped_by_budget = True
        record = with_quality(record, self._rated)
        self._writer.save(record)
        return record

    # Measuring ---------------------------------------------------------------------------------

    def _measure(self, record: RunRecord, prepared: Prepared) -> None:
        protocol = record.protocol
        ready = [item for item in prepared.variants if item.failure is None]
        cells = sum(len(_workloads(prepared, item)) for item in ready)
        if not cells:
            return
        begun = self._now()
        left_s = max(0.0, self._measuring_since + protocol.time_budget_s - begun)
        self._observer.planned(
            Outlook(
                cells=cells,
                min_repetitions=protocol.min_repetitions,
                max_repetitions=protocol.max_repetitions,
                time_budget_s=left_s,
            )
        )
        meters = find_meters()
        for refusal in meters.refusals:
            self._observer.note(f"power: {refusal}")
        groups = [ready] if protocol.interleave else [[item] for item in ready]
        for position, group in enumerate(groups, start=1):
            # Variants that run one after the other share the budget evenly.
            deadline = begun + left_s * position / len(groups)
            self._measure_group(record, prepared, group, meters, deadline)

    def _measure_group(
        self,
        record: RunRecord,
        prepared: Prepared,
        group: list[PreparedVariant],
        meters: MeterSearch,
        deadline: float,
    ) -> None:
        bench = Bench(
            folder=self._settings.folder,
            protocol=record.protocol,
            context_tokens=prepared.context_tokens,
            meters=meters,
            record=lambda trial: self._keep(trial, deadline),
            begins=self._observer.trial,
            out_of_time=lambda: self._now() >= deadline,
            clock=self._clock,
        )
        block = self._tally.next_block([item.variant.id for item in group])
        first = True
        while todo := self._todo(record.protocol, prepared, group):
            expected = sum(self._lasted.get(item.variant.id, 0.0) for item, _ in todo)
            if self._now() + (0.0 if first else expected) >= deadline:
                self._stopped_by_budget = True
                return
            order = random.Random(f"{record.seed}-{block}")  # noqa: S311 - a seed, not a secret
            order.shuffle(todo)
            for item, tasks in todo:
                # The smallest first: a process keeps the memory that a larger one made it touch.
                tasks.sort(key=_place_in_block)
                if bench.out_of_time():
                    self._stopped_by_budget = True
                    return
                self._one(bench, item, tasks, block)
            block += 1
            first = False

    def _one(self, bench: Bench, item: PreparedVariant, tasks: list[Task], block: int) -> None:
        begun = self._now()
        self._observer.session(block, item.variant.id)
        self._pause(bench)
        run_block(bench, item, tasks, block)
        self._lasted[item.variant.id] = self._now() - begun

    def _pause(self, bench: Bench) -> None:
        """Cool down between processes, as long as asked."""
        if self._trials and bench.protocol.cooldown_s:
            time.sleep(bench.protocol.cooldown_s)
            bench.clock.cooldown_s += bench.protocol.cooldown_s

    def _todo(
        self, protocol: ProtocolRecord, prepared: Prepared, group: list[PreparedVariant]
    ) -> list[tuple[PreparedVariant, list[Task]]]:
        """What still needs repetitions, and how many of them in the next block."""
        todo = []
        for item in group:
            tasks = []
            for prompt in _workloads(prepared, item):
                cell = (item.variant.id, prompt.workload)
                measured = self._tally.measured(*cell)
                if self._tally.is_lost(*cell) or is_settled(measured, protocol):
                    continue
                missing = protocol.max_repetitions - len(measured)
                tasks.append(Task(prompt, min(protocol.per_block, missing)))
            if tasks:
                todo.append((item, tasks))
        return todo

    def _record_failures(self, prepared: Prepared) -> None:
        """What failed before it could be started is a row as well."""
        for item in prepared.variants:
            if item.failure is not None:
                workloads = self._scenario.workloads
                for each in (each for each in workloads if each.quality):
                    self._keep(_failed(item.variant.id, each.name, item.failure, "quality"))
                if any(not (each.task or each.quality) for each in workloads):
                    self._keep(_failed(item.variant.id, None, item.failure, "load"))
                if prepared.tasks:
                    self._keep(_failed(item.variant.id, None, item.failure, "task_load"))
                continue
            for workload, failure in prepared.workload_failures.items():
                self._keep(_failed(item.variant.id, workload, failure, "generate"))
            for workload, failure in prepared.quality_failures.items():
                self._keep(_failed(item.variant.id, workload, failure, "quality"))
            for task in prepared.tasks:
                if task.task in item.task_failures:
                    failure = item.task_failures[task.task]
                    self._keep(_failed(item.variant.id, task.workload, failure, "task"))

    def _keep(self, trial: Trial, deadline: float | None = None) -> None:
        self._writer.append(trial)
        self._count(trial)
        self._observer.finished(trial, self._standing(trial, deadline))

    def _count(self, trial: Trial) -> None:
        self._trials.append(trial)
        self._tally.add(trial)

    def _standing(self, trial: Trial, deadline: float | None) -> Standing:
        measured = self._tally.measured(trial.variant, trial.workload) if trial.workload else []
        return Standing(
            decode_rate=_median(measured, "decode_rate"),
            measured=len(measured),
            time_left_s=None if deadline is None else max(0.0, deadline - self._now()),
            task_latency_s=_median(measured, "task_latency_s"),
        )

    # The end -----------------------------------------------------------------------------------

    def _close(self, record: RunRecord, status: Literal["finished", "interrupted"]) -> RunRecord:
        record = record.model_copy(
            update={
                "status": status,
                "finished_at": utc_now(),
                "stopped_by_budget": self._stopped_by_budget,
                "accounting": self._accounting(),
                "variants": [with_loads(variant, self._trials) for variant in record.variants],
            }
        )
        record = with_quality(record, self._rated)
        record = record.model_copy(update={"cells": summarize(record, self._trials)})
        self._writer.save(record)
        return record

    def _accounting(self) -> Accounting:
        wall = self._now() - self._begun
        clock = self._clock
        known = (
            self._prepare_s
            + clock.start_s
            + clock.load_s
            + clock.warmup_s
            + clock.measured_s
            + clock.cooldown_s
            + clock.quality_s
        )
        return Accounting(
            wall_s=wall, prepare_s=self._prepare_s, **asdict(clock), overhead_s=wall - known
        )


def cells_worked(cells: Sequence[Cell]) -> tuple[int, int]:
    """How many cells have results, and how many of those have no failure either."""
    worked = sum(cell.n > 0 for cell in cells)
    return worked, sum(cell.status == "ok" for cell in cells)


def _identity(record: RunRecord, trials: Sequence[Trial]) -> list[object]:
    """What makes trials comparable; `trials` tell what was loaded, which no new record knows."""
    loaded = [with_loads(variant, trials) for variant in record.variants]
    return [
        *((v.id, v.engine_version, v.artifact and v.artifact.sha256) for v in loaded),
        *((name, d.get("engine"), d.get("engine_version")) for name, d in record.runners.items()),
        *((w.name, w.prompt_sha256) for w in record.workloads),
    ]


def _texts(record: RunRecord) -> list[object]:
    """What makes ratings comparable, as far as it is known before any."""
    return [
        (each.name, each.quality.text_sha256, each.quality.ids_sha256, each.quality.bos_id)
        for each in record.workloads
        if each.quality
    ]


def _workloads(prepared: Prepared, item: PreparedVariant) -> list[Prompt | TaskText]:
    """What a variant is measured on: the prompts, and those tasks that it can run."""
    return [*prepared.prompts, *(task for task in prepared.tasks if task.task in item.tasks)]


def _median(trials: Sequence[Trial], key: str) -> float | None:
    found = (trial.metrics.get(key) for trial in trials)
    values = [each.value for each in found if each is not None and each.value is not None]
    return statistics.median(values) if values else None


def _place_in_block(task: Task) -> tuple[bool, int]:
    """By the tokens in the cache at the end; whole tasks, whose tokens are not known, come last."""
    prompt = task.prompt
    return (True, 0) if isinstance(prompt, TaskText) else (False, prompt.context_tokens)


def _failed(variant: str, workload: str | None, failure: Failure, kind: TrialKind) -> Trial:
    return Trial(
        kind=kind,
        variant=variant,
        workload=workload,
        block=0,
        repetition=0,
        phase="measured",
        status="failed",
        started_at=utc_now(),
        duration_s=0.0,
        failure=failure,
    )
