"""One run in the making: its preparation, its trials, its record."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Literal

from edgebench.harness.bandwidth import OFF, QUICK, bandwidth_for_run, wanted_threads
from edgebench.harness.boards import board_of, conduct_on
from edgebench.harness.device_profiles.scenario import power_settings, profile_of
from edgebench.harness.errors import UsageError
from edgebench.harness.fit import Room
from edgebench.harness.mbu import Utilization, cache_shape
from edgebench.harness.measure import Clock
from edgebench.harness.metrics import statistics
from edgebench.harness.observer import Standing
from edgebench.harness.prepared import Prepared
from edgebench.harness.quality.tokens import text_workloads
from edgebench.harness.records import (
    Settings,
    first_record,
    prepared_record,
    utc_now,
    with_loads,
    with_meters,
    with_quality,
)
from edgebench.harness.results.model import Accounting, RunRecord
from edgebench.harness.results.summary import summarize
from edgebench.harness.results.trial import Trial
from edgebench.harness.results.writer import LOGS_FOLDER, RunWriter, cut_half_line
from edgebench.harness.resuming import taken_up
from edgebench.harness.scenario.expand import expand
from edgebench.harness.scenario.values import HIGH_PRECISION
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.harness.tally import Tally
from edgebench.harness.workshop import Workshop
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.devices.bandwidth import Bandwidth
    from edgebench.harness.board import Board
    from edgebench.harness.observer import Observer
    from edgebench.harness.quality.tokens import TextWorkload
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.results.run import Run
    from edgebench.harness.results.trial import TrialKind
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario

QUALITY_SHARE = 0.5
"""Of the time budget, where speed is to be measured in it as well."""


class Execution:
    """One run, from its first record to its last; `edgebench.harness.execute` says in what order.

    Args:
        scenario: what is run.
        settings: how, and where to.
        observer: told of what happens.
        resumed: an earlier part of it.

    Attributes:
        board: where it runs.
        conduct: how it is run there.
        record: as far as it is known.
        prepared: what can be measured; nothing before `prepare`.
        tally: what was measured of each cell.
        clock: where the time went.
        away_s: time that went to another run, which took turns with this one.
        stopped_by_budget: whether more would have been measured with more time.
    """

    def __init__(
        self, scenario: Scenario, settings: Settings, observer: Observer, resumed: Run | None
    ) -> None:
        self.settings = settings
        self.observer = observer
        # Before anything is written: there may be no such profile.
        self._profile = profile_of(scenario.device, settings.base)
        power = power_settings(scenario.power, self._profile)
        self.board: Board = settings.board or board_of(scenario.device, power)
        self.conduct = conduct_on(self.board, scenario.device, settings.base)
        self.clock = Clock()
        self.tally = Tally(
            [each.name for each in scenario.workloads if not (each.task or each.quality)],
            [each.name for each in scenario.workloads if each.task],
        )
        self.prepared = Prepared((), (), {})
        self.away_s = 0.0
        self.stopped_by_budget = False
        self._scenario = scenario
        self._resumed = resumed
        self._now = settings.monotonic
        self._trials: list[Trial] = []
        self._rated: dict[str, QualityRecord] = {}
        self._utilization = Utilization()
        self._begun = self._now()
        self._prepare_s = 0.0
        if self.board.remote:
            observer.preparing(f"connecting to {self.board.name}")
        # Nor is anything written where the board can't be reached.
        try:
            machine = self.board.machine()
        except BaseException:
            self.board.close()
            raise
        # What an earlier part wrote stays untouched until it is sure that this one fits it.
        self._ours = resumed is None
        if resumed is not None:
            cut_half_line(settings.folder)
        self._writer = RunWriter(settings.folder)
        self._variants = expand(scenario)
        self.record = first_record(scenario, self._variants, settings, machine)
        if self.board.remote and self.record.device is not None:
            # Of an Android device, the scenario may have said: the one that is attached.
            named = self.record.device.model_copy(update={"address": self.board.name})
            self.record = self.record.model_copy(update={"device": named})

    @property
    def has_trials(self) -> bool:
        """Whether anything was tried yet."""
        return bool(self._trials)

    # Preparing ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Fetch, convert, tokenize, compare with the reference; take up an earlier part.

        Raises:
            EdgebenchError: nothing can be run, or the earlier part was of another run.
        """
        if self._ours:
            self._save()
        # Nothing is to be said of how well noise is predicted: see `quality.cell.synthetic_cell`.
        synthetic = self.record.synthetic is not None
        if synthetic and all(each.quality for each in self._scenario.workloads):
            msg = "every workload rates a text, which says nothing of synthetic weights"
            raise UsageError(msg, remedy="Add a workload that generates, or take a real model.")
        texts = () if synthetic else text_workloads(self._scenario, self.settings.base)
        proofs = self._proofs()
        everything = self._prepare([*self._variants, *proofs], texts)
        count = len(self._variants)
        self.prepared = replace(everything, variants=everything.variants[:count])
        self.record = prepared_record(self.record, self.prepared, everything.variants[count:])
        if self._resumed is not None:
            self.record = taken_up(self.record, self._resumed)
            for trial in self._resumed.trials:
                self._count(trial)
            self._ours = True
        if self._scenario.verify and synthetic:
            self.observer.note("nothing is verified: synthetic weights are no model's")
        elif self._scenario.verify and self.record.reference is None:
            self._verify(everything)
        self._find_meters()
        self._find_bandwidth()
        self._save()

    def _find_bandwidth(self) -> None:
        """Measure the memory that decode rates are held against, unless it was lately."""
        machine = self.record.machine
        cpus = len(machine.affinity) or machine.logical_cpus
        why_not = QUICK if self.settings.quick else None
        if not self._scenario.measure.bandwidth:
            why_not = OFF
        why_not = self.conduct.why_no_bandwidth or why_not
        wanted = wanted_threads(self.prepared.variants, cpus) if self.prepared.prompts else ()
        known = self._resumed.record.bandwidth if self._resumed else ()

        def read(threads: int) -> Bandwidth:
            self.observer.preparing(f"reading memory with {threads} threads")
            return self.board.bandwidth(threads)

        found = bandwidth_for_run(wanted, machine.fingerprint, read, known=known, why_not=why_not)
        self.record = self.record.model_copy(update={"bandwidth": list(found.records)})
        for each in found.records:
            if each.disturbed:
                many = "1 thread" if each.threads == 1 else f"{each.threads} threads"
                self.observer.note(
                    f"memory: other processes took the CPUs while it was read with {many}: "
                    "there is no MBU"
                )
        source = self.prepared.source
        cache = cache_shape(source.path if source else None, self.record.synthetic)
        self._utilization = Utilization(found.records, cache, found.why_none)
        self._prepare_s = self._worked_s()

    def _find_meters(self) -> None:
        """Look for the board's meters; say so where what was asked for is not to be had."""
        meters = self.board.meters()
        self.record = with_meters(self.record, meters)
        power = self._scenario.power
        first = meters.found[0] if meters.found else None
        wanted = power.meter or (power.command and "external")
        if wanted and (first is None or not first.name.startswith(wanted)):
            self.observer.note(f"the meter that was asked for can't be used: {wanted}")
        if first is not None and first.source == "estimated":
            self.observer.note("power is estimated, not measured: it is labelled so")

    def _prepare(
        self, variants: Sequence[ExpandedVariant], texts: Sequence[TextWorkload]
    ) -> Prepared:
        source = parse_source(self._scenario.model.source, base=self.settings.base)
        store, logs = self.settings.store or ModelStore(), self.settings.folder / LOGS_FOLDER
        room = Room(self._profile, self.record.machine.memory_bytes)
        if note := room.contradiction():
            self._keep(note)
        workshop = Workshop(store, logs, self.observer, self.settings.pythons, room)
        prepared = self.conduct.prepare(workshop, self._scenario, variants, source, texts)
        self._keep(*prepared.notes)
        self._prepare_s = self._worked_s()
        return prepared

    def _keep(self, *notes: str) -> None:
        """In the results, what a reader of them must know; a run that goes on knows it already."""
        kept = list(dict.fromkeys((*self.record.notes, *notes)))
        self.record = self.record.model_copy(update={"notes": kept})

    def _proofs(self) -> list[ExpandedVariant]:
        """What is verified beside the scenario's variants, and not measured."""
        if self._scenario.verify != HIGH_PRECISION:
            return []
        from edgebench.harness.verify import high_precision_variants  # noqa: PLC0415 - rare

        made = {name: kind.QUANTIZATIONS for name, kind in runner_classes().items()}
        return high_precision_variants(self._variants, made)

    def _verify(self, prepared: Prepared) -> None:
        """Compare with the reference; what comes of it is shown, and measuring goes on."""
        from edgebench.harness.verify import Verification, verified_record  # noqa: PLC0415 - rare

        if not prepared.prompts:
            self.observer.note("nothing is verified: no workload has a prompt to compare on")
            return
        if self.conduct.why_not_verified is not None:
            self.observer.note(f"nothing is verified: {self.conduct.why_not_verified}")
            return
        verification = Verification(
            self.settings.folder, self.observer, self.record.protocol.timeout_s
        )
        self.record = verified_record(self.record, verification.run(prepared))
        for variant in [*self.record.variants, *self.record.proofs]:
            for finding in variant.sameness.findings if variant.sameness else ():
                self.observer.note(f"{variant.id} is not the same model: {finding}")
        self._prepare_s = self._worked_s()

    def record_failures(self) -> None:
        """What failed before it could be started is a row as well."""
        prepared = self.prepared
        for item in prepared.variants:
            if item.failure is not None:
                workloads = self._scenario.workloads
                rated = () if self.record.synthetic else workloads
                for each in (each for each in rated if each.quality):
                    self.keep(_failed(item.variant.id, each.name, item.failure, "quality"))
                if any(not (each.task or each.quality) for each in workloads):
                    self.keep(_failed(item.variant.id, None, item.failure, "load"))
                if prepared.tasks:
                    self.keep(_failed(item.variant.id, None, item.failure, "task_load"))
                continue
            for workload, failure in prepared.workload_failures.items():
                self.keep(_failed(item.variant.id, workload, failure, "generate"))
            for workload, failure in prepared.quality_failures.items():
                self.keep(_failed(item.variant.id, workload, failure, "quality"))
            for task in prepared.tasks:
                if task.task in item.task_failures:
                    failure = item.task_failures[task.task]
                    self.keep(_failed(item.variant.id, task.workload, failure, "task"))

    # Rating texts ------------------------------------------------------------------------------

    def score(self, share: float) -> None:
        """Rate the texts, before any speed is measured, in a part of the time budget.

        Args:
            share: of the time budget, how much of it is this run's.
        """
        prepared, protocol = self.prepared, self.record.protocol
        if not prepared.quality:
            return
        from edgebench.harness.quality.run import score_texts  # noqa: PLC0415 - rare

        begun = self._now()
        others = len(prepared.prompts) + len(prepared.tasks)
        score_texts(
            prepared,
            self._trials,
            store=self.settings.store or ModelStore(),
            folder=self.settings.folder,
            observer=self.observer,
            timeout_s=protocol.timeout_s,
            budget_s=share * protocol.time_budget_s * (QUALITY_SHARE if others else 1),
            now=self._now,
            keep=self.keep,
            known=self._rated.__setitem__,
        )
        self.clock.quality_s = self._now() - begun
        rated = self._rated.values()
        if any(0 < each.windows < each.windows_planned for each in rated):
            self.stopped_by_budget = True
        self.record = with_quality(self.record, self._rated)
        self._save()

    # Trials ------------------------------------------------------------------------------------

    def keep(self, trial: Trial, deadline: float | None = None) -> None:
        """Write a trial down as soon as it is over, and tell of it."""
        trial = self._utilization.judged(trial)
        self._writer.append(trial)
        self._count(trial)
        self.observer.finished(trial, self._standing(trial, deadline))

    def _count(self, trial: Trial) -> None:
        self._trials.append(trial)
        self.tally.add(trial)

    def _standing(self, trial: Trial, deadline: float | None) -> Standing:
        measured = self.tally.measured(trial.variant, trial.workload) if trial.workload else []
        return Standing(
            decode_rate=_median(measured, "decode_rate"),
            measured=len(measured),
            time_left_s=None if deadline is None else max(0.0, deadline - self._now()),
            task_latency_s=_median(measured, "task_latency_s"),
        )

    # The end -----------------------------------------------------------------------------------

    def close(self, status: Literal["finished", "interrupted"]) -> RunRecord:
        """Summarize what there is, and write the record for the last time."""
        record = self.record.model_copy(
            update={
                "status": status,
                "finished_at": utc_now(),
                "stopped_by_budget": self.stopped_by_budget,
                "accounting": self._accounting(),
                "variants": [with_loads(each, self._trials) for each in self.record.variants],
            }
        )
        record = with_quality(record, self._rated)
        self.record = record.model_copy(update={"cells": summarize(record, self._trials)})
        self._save()
        return self.record

    def break_off(self) -> None:
        """Close it as interrupted, unless that would touch a run that this one does not fit."""
        if self._ours:
            self.close("interrupted")

    def release(self) -> None:
        """Close its files, and leave nothing running."""
        self.board.close()
        self._writer.close()

    def _save(self) -> None:
        self._writer.save(self.record)

    def _worked_s(self) -> float:
        return self._now() - self._begun - self.away_s

    def _accounting(self) -> Accounting:
        wall = self._worked_s()
        clock = self.clock
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


def _median(trials: Sequence[Trial], key: str) -> float | None:
    found = (trial.metrics.get(key) for trial in trials)
    values = [each.value for each in found if each is not None and each.value is not None]
    return statistics.median(values) if values else None


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
