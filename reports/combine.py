"""Several runs as one: other machines, other dates, other versions, side by side in one report."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.cell import Cell, Summary
from edgebench.harness.results.run import Run
from edgebench.reports.data import Part, ReportData, load_report_data
from edgebench.reports.labels import renamed
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas
from edgebench.reports.mixing import refuse_mixing
from edgebench.reports.run_labels import run_labels, variant_names
from edgebench.reports.series import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.measured import Failure
    from edgebench.harness.results.model import RunRecord, WorkloadRecord
    from edgebench.harness.results.trial import Trial
    from edgebench.reports.failures import FailureView
    from edgebench.reports.series import Place

NOT_IN_RUN = N_("its run did not have this workload")
"""Why a variant has no value on a workload that only another run had."""


def combined(paths: Sequence[str | os.PathLike[str]]) -> ReportData:
    """Read runs for one report; see `combine`.

    Args:
        paths: their folders, at least one. One alone is read as it is.

    Raises:
        ResultError: as `read_run` does, and where runs must not be mixed.
    """
    runs = [load_report_data(each) for each in paths]
    return runs[0] if len(runs) == 1 else combine(runs)


def combine(runs: Sequence[ReportData]) -> ReportData:
    """Several runs as one.

    Every variant of every run is one of the result, under a name that says its machine or its
    date where that is needed to tell them apart. Each cell is summed up by its own run's protocol.
    No block holds trials of two runs, so no ratio pairs what was not measured side by side.

    Args:
        runs: each of one run, at least two; in the order in which they are shown.

    Raises:
        ResultError: they must not be mixed: another model, another prompt under the same name, a
            quick look among others, the runner of tests among frameworks, one run twice.
    """
    refuse_mixing(runs)
    records = [each.record for each in runs]
    labels = run_labels(records)
    folder = Path(os.path.commonpath([each.run.path.resolve() for each in runs]))
    ready: list[ReportData] = []
    blocks = 0
    for data, label, names in zip(runs, labels, variant_names(records, labels), strict=True):
        inside = os.path.relpath(data.run.path.resolve(), folder)
        ready.append(_ready(data, names, label, first_block=blocks, inside=inside))
        blocks += 1 + max((each.block for each in data.run.trials), default=-1)
    record = _record(ready, runs)
    run = Run(
        folder,
        record,
        tuple(trial for each in ready for trial in each.run.trials),
        sum(each.run.damaged_lines for each in ready),
    )
    by_variant = {name: found for each in ready for name, found in each.by_variant.items()}
    return ReportData(
        run=run,
        cells=_cells(record, ready, by_variant),
        series=Series(
            gaps={place: each for data in ready for place, each in data.series.gaps.items()},
            generation_memory={
                place: each
                for data in ready
                for place, each in data.series.generation_memory.items()
            },
            load_memory={
                variant: each for data in ready for variant, each in data.series.load_memory.items()
            },
        ),
        failures=tuple(failure for each in ready for failure in each.failures),
        by_variant=by_variant,
        parts=tuple(part for each in ready for part in each.parts),
    )


def _ready(
    data: ReportData, names: Mapping[str, str], label: str, *, first_block: int, inside: str
) -> ReportData:
    """One run with the names, the blocks and the logs' paths that it has among the others."""
    run, series = renamed(data.run, data.series, names)
    trials = tuple(_moved(each, first_block, inside) for each in run.trials)
    run = replace(run, trials=trials)

    def name(variant: str) -> str:
        return names.get(variant, variant)

    return ReportData(
        run=run,
        cells={
            (workload, name(variant)): cell.model_copy(
                update={"variant": name(variant), "failure": _logged(cell.failure, inside)}
            )
            for (workload, variant), cell in data.cells.items()
        },
        series=series,
        failures=tuple(
            _renamed_failure(each, name(each.variant), inside) for each in data.failures
        ),
        by_variant={name(variant): found for variant, found in data.by_variant.items()},
        parts=(
            Part(
                run.record,
                data.run.path,
                tuple(each.id for each in run.record.variants),
                label,
                run.damaged_lines,
            ),
        ),
    )


def _moved(trial: Trial, first_block: int, inside: str) -> Trial:
    return trial.model_copy(
        update={
            "block": trial.block + first_block,
            "failure": _logged(trial.failure, inside),
        }
    )


def _logged(failure: Failure | None, inside: str) -> Failure | None:
    """A failure whose log is found from the folder that holds all runs."""
    if failure is None or failure.log is None:
        return failure
    return failure.model_copy(update={"log": f"{inside}/{failure.log}"})


def _renamed_failure(failure: FailureView, variant: str, inside: str) -> FailureView:
    log = f"{inside}/{failure.log}" if failure.log else failure.log
    return replace(failure, variant=variant, log=log)


def _cells(
    record: RunRecord,
    runs: Sequence[ReportData],
    by_variant: Mapping[str, Mapping[str, Summary]],
) -> dict[Place, Cell]:
    """All cells, in the order of the table; with the reason where a run lacks the workload."""
    known = {place: cell for each in runs for place, cell in each.cells.items()}
    keys: dict[str, dict[str, str]] = {}
    for (workload, _variant), cell in known.items():
        units = keys.setdefault(workload, {})
        units.update({key: summary.unit for key, summary in cell.metrics.items()})
    return {
        (workload.name, variant.id): known.get((workload.name, variant.id))
        or Cell(
            variant=variant.id,
            workload=workload.name,
            status="not_run",
            n=0,
            metrics={
                key: _not_in_run(unit or metric(key).unit)
                for key, unit in keys.get(workload.name, {}).items()
                if key not in by_variant[variant.id]
            },
        )
        for workload in record.workloads
        for variant in record.variants
    }


def _not_in_run(unit: str) -> Summary:
    return Summary(median=None, n=0, unit=unit, source="observed", reason=_(NOT_IN_RUN))


def _record(ready: Sequence[ReportData], runs: Sequence[ReportData]) -> RunRecord:
    """What stands in the place of ``run.json``."""
    records = [each.record for each in ready]
    first = records[0]
    finished = [each.finished_at for each in records]
    sha256s = list(dict.fromkeys(each.scenario_sha256 for each in records))
    return first.model_copy(
        update={
            "id": " + ".join(each.id for each in records),
            "scenario_name": " + ".join(dict.fromkeys(each.scenario_name for each in records)),
            "edgebench_version": ", ".join(
                dict.fromkeys(each.edgebench_version for each in records)
            ),
            "created_at": min((each.created_at for each in records), key=_sortable),
            "finished_at": None if None in finished else max(filter(None, finished)),
            "status": _status(records),
            "command": ["edgebench", "report", *(str(each.run.path) for each in runs)],
            "scenario_path": None,
            "scenario": _scenario(records),
            "scenario_sha256": sha256s[0]
            if len(sha256s) == 1
            else hashlib.sha256(",".join(sha256s).encode()).hexdigest(),
            "stopped_by_budget": any(each.stopped_by_budget for each in records),
            "runners": _runners(ready),
            "reference": next((each.reference for each in records if each.reference), None),
            "variants": [variant for each in records for variant in each.variants],
            "proofs": [variant for each in records for variant in each.proofs],
            "workloads": _workloads(records),
            "cells": [cell for each in records for cell in each.cells],
            "accounting": None,
            "notes": _notes(ready),
        }
    )


def _sortable(moment: str) -> str:
    return moment.replace("Z", "+00:00")


def _status(records: Sequence[RunRecord]) -> Literal["running", "finished", "interrupted"]:
    states = {each.status for each in records}
    if "interrupted" in states:
        return "interrupted"
    return "running" if "running" in states else "finished"


def _scenario(records: Sequence[RunRecord]) -> dict[str, object]:
    """What all scenarios say alike, and the model, which is the same whatever it is called."""
    first, *others = (each.scenario for each in records)
    return {
        key: value
        for key, value in first.items()
        if key == "model" or all(each.get(key) == value for each in others)
    }


def _runners(runs: Sequence[ReportData]) -> dict[str, dict[str, object]]:
    """Each runner's own description, by the run's label where two runs have different ones."""
    found: dict[str, dict[str, object]] = {}
    for data in runs:
        for name, described in data.record.runners.items():
            if found.setdefault(name, described) != described:
                found[f"{name} ({data.parts[0].label})"] = described
    return found


def _workloads(records: Sequence[RunRecord]) -> list[WorkloadRecord]:
    found: dict[str, WorkloadRecord] = {}
    for record in records:
        for workload in record.workloads:
            known = found.get(workload.name)
            found[workload.name] = _merged(known, workload) if known else workload
    return list(found.values())


def _merged(one: WorkloadRecord, other: WorkloadRecord) -> WorkloadRecord:
    """One workload of two runs, which is the same as far as both know it."""
    known = {
        name: value if (value := getattr(one, name)) is not None else getattr(other, name)
        for name in ("prompt_tokens", "prompt_sha256", "prompt_text")
    }
    mine, theirs = one.quality, other.quality
    if mine is None or theirs is None:
        return one.model_copy(update={**known, "quality": mine or theirs})
    base = mine if mine.windows else theirs
    quality = base.model_copy(
        update={
            "metrics": list(dict.fromkeys((*mine.metrics, *theirs.metrics))),
            "reference": mine.reference or theirs.reference,
        }
    )
    return one.model_copy(update={**known, "quality": quality})


def _notes(runs: Sequence[ReportData]) -> list[str]:
    """The runs' own notes; those that not all runs have say whose they are."""
    by_note: dict[str, list[str]] = {}
    for data in runs:
        for note in dict.fromkeys(data.record.notes):
            by_note.setdefault(note, []).append(data.parts[0].label)
    return [
        note
        if len(labels) == len(runs)
        else _("{runs}: {note}", runs=commas(labels), note=recorded(note))
        for note, labels in by_note.items()
    ]
