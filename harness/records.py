"""The run's record as it grows: from the scenario, then the preparation, then the loads."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import edgebench
from edgebench.harness.commit import current_commit
from edgebench.harness.device_profiles.scenario import device_record, profile_of
from edgebench.harness.results.model import (
    MachineRecord,
    ProtocolRecord,
    RunRecord,
    TaskEngine,
    VariantRecord,
    WorkloadRecord,
)
from edgebench.harness.results.power import MeterRecord
from edgebench.harness.results.record import SYNTHETIC_WEIGHTS
from edgebench.harness.store.sources import synthetic_source
from edgebench.runners.base import RunnerFailure, to_wire
from edgebench.runners.registry import runner_class

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from edgebench.devices.machine import Machine
    from edgebench.harness.board import Board, Meters
    from edgebench.harness.prepared import Prepared, PreparedVariant
    from edgebench.harness.prompts import Prompt
    from edgebench.harness.results.model import Interleaved
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.results.trial import Trial
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Measure, Scenario
    from edgebench.harness.store.store import ModelStore
    from edgebench.runners.base import LoadedModel


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is made, apart from its scenario.

    Attributes:
        folder: the run's folder.
        base: the folder that relative `path:` sources stand in.
        scenario_path: the scenario's file, for a run that is resumed later.
        pythons: interpreters by runner from the user's configuration.
        interleaved: the run that this one takes turns with.
        board: where it runs; this machine where it is not given.
    """

    folder: Path
    base: Path
    quick: bool = False
    pythons: Mapping[str, str] = field(default_factory=dict)
    scenario_path: Path | None = None
    command: Sequence[str] = ()
    store: ModelStore | None = None
    interleaved: Interleaved | None = None
    board: Board | None = None
    monotonic: Callable[[], float] = time.monotonic


def utc_now() -> str:
    """Now, as results write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def first_record(
    scenario: Scenario,
    variants: Sequence[ExpandedVariant],
    settings: Settings,
    machine: Machine,
) -> RunRecord:
    """What is known before anything is prepared."""
    scenario, synthetic = named_synthetic(scenario)
    resolved = scenario.model_dump(mode="json")
    text = json.dumps(resolved, sort_keys=True).encode()
    path = settings.scenario_path
    return RunRecord(
        id=settings.folder.name,
        scenario_name=scenario.name,
        edgebench_version=edgebench.__version__,
        created_at=utc_now(),
        status="running",
        quick=settings.quick,
        command=list(settings.command),
        scenario_path=str(path) if path else None,
        commit=current_commit(),
        interleaved=settings.interleaved,
        seed=scenario.measure.seed,
        synthetic=synthetic,
        scenario=resolved,
        scenario_sha256=hashlib.sha256(text).hexdigest(),
        protocol=_protocol(scenario.measure),
        machine=MachineRecord.model_validate(asdict(machine)),
        device=device_record(scenario.device, profile_of(scenario.device, settings.base)),
        variants=[_first_variant(variant) for variant in variants],
        workloads=[
            WorkloadRecord(
                name=workload.name,
                description=workload.description or "",
                task=workload.task,
                text=workload.quality.text if workload.quality else None,
                prompt_text=workload.prompt if workload.task else None,
                generate_tokens=workload.generate_tokens,
                depth=workload.depth,
                sustained_s=workload.sustained,
            )
            for workload in scenario.workloads
        ],
    )


def named_synthetic(scenario: Scenario) -> tuple[Scenario, str | None]:
    """The scenario with a model's name that says so where its weights are made up.

    Every table, file and comparison names the model as the scenario does.

    Returns:
        The scenario, and the architecture; None, and the scenario as it was, for a real model.
    """
    source = synthetic_source(scenario.model.source)
    if source is None:
        return scenario, None
    name = scenario.model.name
    if SYNTHETIC_WEIGHTS not in name:
        name = f"{name} ({SYNTHETIC_WEIGHTS})"
    model = scenario.model.model_copy(update={"name": name})
    return scenario.model_copy(update={"model": model}), source.architecture


def prepared_record(
    record: RunRecord, prepared: Prepared, proofs: Sequence[PreparedVariant] = ()
) -> RunRecord:
    """The same with artifacts, engines and prompts.

    Args:
        record: what was known before.
        prepared: the scenario's variants, all of them and in order, and the prompts.
        proofs: further variants, which are verified and not measured.
    """
    prompts = {prompt.workload: prompt for prompt in prepared.prompts}
    texts = {task.workload: task.record for task in prepared.quality}
    runners: dict[str, dict[str, object]] = {}
    for item in prepared.variants:
        if item.description is not None:
            described = to_wire(item.description) | _offered(item.variant.runner)
            # In interpreters of their own there may be several versions of one.
            name = item.variant.runner
            if runners.get(name, described) != described:
                name = f"{name} ({item.python})"
            runners[name] = described
    return record.model_copy(
        update={
            "runners": runners,
            "variants": [
                _with_artifact(
                    variant, item, prepared.context_tokens, synthetic=record.synthetic is not None
                )
                for variant, item in zip(record.variants, prepared.variants, strict=True)
            ],
            "proofs": [
                _with_artifact(
                    _first_variant(item.variant),
                    item,
                    prepared.context_tokens,
                    synthetic=record.synthetic is not None,
                )
                for item in proofs
            ],
            "workloads": [
                _with_prompt(workload, prompts.get(workload.name)).model_copy(
                    update={"quality": texts.get(workload.name)}
                )
                for workload in record.workloads
            ],
        }
    )


def _offered(runner: str) -> dict[str, object]:
    """What a runner makes of a model; nothing where its class is not to be had on this side."""
    try:
        return {"quantizations": list(runner_class(runner).QUANTIZATIONS)}
    except (RunnerFailure, AttributeError):
        # In an interpreter of its own there may be runners that this one lacks.
        return {}


def with_meters(record: RunRecord, meters: Meters) -> RunRecord:
    """The same with the meters that are read, and why others are not."""
    found = [MeterRecord(name=each.name, source=each.source) for each in meters.found]
    return record.model_copy(update={"meters": found, "no_meter_reasons": list(meters.refusals)})


def with_quality(record: RunRecord, found: Mapping[str, QualityRecord]) -> RunRecord:
    """The same with what was scored, by the workload's name."""
    return record.model_copy(
        update={
            "workloads": [
                each.model_copy(update={"quality": found.get(each.name, each.quality)})
                for each in record.workloads
            ]
        }
    )


def with_loads(variant: VariantRecord, trials: Sequence[Trial]) -> VariantRecord:
    """What the framework said at the last load: the options it uses, the weights it counts.

    Of a variant that was only loaded to rate texts, it is what was said then.
    """
    variant = _with_task_loads(variant, trials)
    for kind in ("load", "quality"):
        for trial in reversed(trials):
            if trial.variant == variant.id and trial.kind == kind and trial.status == "ok":
                return _with_load(variant, trial)
    return variant


def _with_load(variant: VariantRecord, trial: Trial) -> VariantRecord:
    artifact = variant.artifact
    if artifact is not None:
        counted = {
            "parameters": trial.parameters,
            "weight_bytes_per_token": trial.weight_bytes_per_token,
        }
        artifact = artifact.model_copy(update=counted)
    used = {"effective_options": trial.effective_options, "artifact": artifact}
    return with_engine(variant.model_copy(update=used), trial)


def with_engine(variant: VariantRecord, loaded: Trial | LoadedModel | None) -> VariantRecord:
    """Named after what was loaded, where that is not what the runner is named after."""
    if loaded is None or loaded.engine is None:
        return variant
    if loaded.engine == variant.engine:
        # What runs on an Android device tells its version with its first results.
        told = loaded.engine_version or variant.engine_version
        return variant.model_copy(update={"engine_version": told})
    return variant.model_copy(
        update={
            "engine": loaded.engine,
            "engine_version": loaded.engine_version,
            "framework": loaded.engine,
        }
    )


def _with_task_loads(variant: VariantRecord, trials: Sequence[Trial]) -> VariantRecord:
    for trial in reversed(trials):
        if trial.variant == variant.id and trial.kind == "task_load" and trial.status == "ok":
            used = {"effective_options": trial.effective_options}
            tasks = {name: each.model_copy(update=used) for name, each in variant.tasks.items()}
            return variant.model_copy(update={"tasks": tasks})
    return variant


def _protocol(measure: Measure) -> ProtocolRecord:
    return ProtocolRecord(
        warmup_min=measure.warmup.min,
        warmup_max=measure.warmup.max,
        warmup_stable_within=measure.warmup.stable_within,
        min_repetitions=measure.repetitions.min,
        max_repetitions=measure.repetitions.max,
        ci_half_width=measure.repetitions.ci_half_width,
        max_cv=measure.max_cv,
        per_block=measure.per_block,
        interleave=measure.interleave,
        cooldown_s=measure.cooldown_s,
        cooldown_within_celsius=measure.cooldown.within_celsius if measure.cooldown else None,
        cooldown_at_most_s=measure.cooldown.at_most_s if measure.cooldown else None,
        time_budget_s=measure.time_budget_s,
        timeout_s=measure.timeout_s,
        cold_load=measure.cold_load,
    )


def _first_variant(variant: ExpandedVariant) -> VariantRecord:
    return VariantRecord(
        id=variant.id,
        runner=variant.runner,
        quantization=variant.quantization,
        options=dict(variant.options),
        python=variant.python,
    )


def _with_artifact(
    variant: VariantRecord, item: PreparedVariant, context: int, *, synthetic: bool
) -> VariantRecord:
    description = item.description
    artifact = item.artifact()
    if artifact is not None:
        artifact = artifact.model_copy(update={"synthetic": synthetic})
    return variant.model_copy(
        update={
            "python": item.python,
            "engine": description.engine if description else None,
            "engine_version": description.engine_version if description else None,
            "artifact": artifact,
            "context_tokens": context or None,
            "tasks": {
                name: TaskEngine(
                    engine=found.engine,
                    engine_version=found.engine_version,
                    build=dict(found.build),
                )
                for name, found in item.tasks.items()
            },
        }
    )


def _with_prompt(workload: WorkloadRecord, prompt: Prompt | None) -> WorkloadRecord:
    if prompt is None:
        return workload
    return workload.model_copy(
        update={
            "prompt_tokens": len(prompt.ids),
            "prompt_sha256": None if prompt.made_up else prompt.sha256,
            "prompt_text": prompt.text,
        }
    )
