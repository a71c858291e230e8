"""From a run to a side: raw samples by cell and metric, with the blocks that they are of."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.identity import TESTING_RUNNER, hashes_of, model_text
from edgebench.harness.compare.model import Samples, Side, SideCell, SideRun
from edgebench.harness.quality.cell import windows_by_variant
from edgebench.harness.records import with_loads
from edgebench.harness.results.meters import meter_of, of_its_meter
from edgebench.harness.results.run import refuse_strays
from edgebench.harness.results.summary import summarize, weakest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from edgebench.harness.compare.model import BlockKey, CellKey
    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.measured import Measured
    from edgebench.harness.results.model import Artifact, RunRecord, VariantRecord
    from edgebench.harness.results.run import Run
    from edgebench.harness.results.trial import Trial

_BITS_PER_BYTE: Final = 8
_FIRST_BLOCK: Final = 0

UNITS_DIFFER: Final = "its repetitions are in different units"


def side_of_run(run: Run, *, label: str | None = None) -> Side:
    """What a run measured, to be compared.

    Args:
        run: as it was read; its trials may lack their raw tokens and timelines.
        label: what people call it; its folder by default.

    Returns:
        A side of one run. Whatever state the run was left in, its notes say so.

    Raises:
        ResultError: as `refuse_strays` does.
    """
    refuse_strays(run)
    record = run.record
    side_run = _side_run(record)
    variants = {each.id: with_loads(each, run.trials) for each in record.variants}
    workloads = {each.name: each for each in record.workloads}
    by_cell, loads = _by_cell(run.trials)
    windows = {
        each.name: windows_by_variant(run.trials, each.name, each.quality)
        for each in record.workloads
        if each.quality is not None
    }
    facts = {each.id: _facts(each, variants[each.id], side_run.session) for each in record.variants}
    cells: dict[CellKey, SideCell] = {}
    for cell in summarize(record, run.trials, figures=False):
        variant, workload = variants[cell.variant], workloads[cell.workload]
        if workload.kind == "quality":
            rated = windows.get(workload.name, {}).get(variant.id, ())
            metrics = _quality_samples(cell, side_run.session)
        else:
            rated = ()
            kind = "task_load" if workload.task else "load"
            metrics = {
                **_samples(record, loads[variant.id, kind], side_run.session),
                **_samples(record, by_cell[variant.id, workload.name], side_run.session),
            }
        has_result = cell.status in ("ok", "partial")
        cells[variant.id, workload.name] = SideCell(
            variant=variant,
            workload=workload,
            status=cell.status,
            metrics={**metrics, **facts[variant.id]} if has_result else {},
            windows=rated if has_result else (),
            flags=tuple(cell.flags),
            failure=cell.failure,
            n=cell.n,
            n_failed=cell.n_failed,
        )
    return Side(
        label=str(run.path) if label is None else label,
        runs=(side_run,),
        model_name=model_text(record, "name"),
        model_source=model_text(record, "source"),
        hashes=hashes_of(record),
        cells=cells,
        notes=tuple(_notes(run, cells.values())),
    )


def _side_run(record: RunRecord) -> SideRun:
    interleaved = record.interleaved
    return SideRun(
        id=record.id,
        session=interleaved.session if interleaved else record.id,
        created_at=record.created_at,
        scenario_name=record.scenario_name,
        edgebench_version=record.edgebench_version,
        commit=record.commit,
        machine=record.machine,
        interleaved=interleaved is not None,
        quick=record.quick,
        testing=any(each.runner == TESTING_RUNNER for each in record.variants),
        difference=interleaved.difference if interleaved else "",
        unfinished=record.status != "finished",
    )


def _by_cell(
    trials: Sequence[Trial],
) -> tuple[dict[CellKey, list[Trial]], dict[tuple[str, str], list[Trial]]]:
    """What counts: measured trials that succeeded by cell, loads that did by variant and kind."""
    by_cell: dict[CellKey, list[Trial]] = defaultdict(list)
    loads: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.status != "ok":
            continue
        if trial.workload is None:
            loads[trial.variant, trial.kind].append(trial)
        elif trial.phase == "measured":
            by_cell[trial.variant, trial.workload].append(trial)
    return by_cell, loads


def _samples(record: RunRecord, trials: Iterable[Trial], session: str) -> dict[str, Samples]:
    found: dict[str, list[tuple[BlockKey, Measured]]] = defaultdict(list)
    for trial in trials:
        for key, measured in of_its_meter(record, trial).items():
            found[key].append(((session, trial.block), measured))
    return {key: _of_metric(each, meter_of(record, key)) for key, each in found.items()}


def _of_metric(found: Sequence[tuple[BlockKey, Measured]], meter: str | None) -> Samples:
    present = [(block, each.value, each) for block, each in found if each.value is not None]
    if not present:
        first = found[0][1]
        return Samples((), (), first.unit, first.source, first.reason)
    first = present[0][2]
    if any(each.unit != first.unit for _, _, each in present):
        return Samples((), (), first.unit, first.source, UNITS_DIFFER)
    return Samples(
        values=tuple(value for _, value, _ in present),
        blocks=tuple(block for block, _, _ in present),
        unit=first.unit,
        source=weakest(each.source for _, _, each in present),
        meter=meter,
    )


def _quality_samples(cell: Cell, session: str) -> dict[str, Samples]:
    """Each figure is one value over all windows; what varies is the windows."""
    return {
        key: Samples((), (), each.unit, each.source, each.reason or "not measured")
        if each.median is None
        else Samples((each.median,), ((session, _FIRST_BLOCK),), each.unit, each.source)
        for key, each in cell.metrics.items()
    }


def _facts(recorded: VariantRecord, loaded: VariantRecord, session: str) -> Mapping[str, Samples]:
    """What is known of the artifact without a measurement."""
    if recorded.artifact is None:
        return {}
    values = _of_artifact(recorded.artifact) | (
        _of_artifact(loaded.artifact) if loaded.artifact else {}
    )
    units = {"model_bytes": "byte", "bits_per_weight": "bit", "weight_bytes_per_token": "byte"}
    return {
        key: Samples(
            values=(value,),
            blocks=((session, _FIRST_BLOCK),),
            unit=units[key],
            source="observed" if key == "model_bytes" else "derived",
        )
        for key, value in values.items()
    }


def _of_artifact(artifact: Artifact) -> dict[str, float]:
    found: dict[str, float] = {"model_bytes": artifact.bytes}
    if artifact.parameters:
        found["bits_per_weight"] = _BITS_PER_BYTE * artifact.bytes / artifact.parameters
    if artifact.weight_bytes_per_token:
        found["weight_bytes_per_token"] = artifact.weight_bytes_per_token
    return found


def _notes(run: Run, cells: Iterable[SideCell]) -> Iterable[str]:
    record = run.record
    if record.quick:
        yield "It is a quick look, which is no measurement."
    if record.status != "finished":
        yield f"The run is not finished ({record.status}): it counts as far as it went."
    if run.damaged_lines:
        one = run.damaged_lines == 1
        lines = "1 line" if one else f"{run.damaged_lines} lines"
        yield f"{lines} of its trials could not be read, and {'is' if one else 'are'} left out."
    if not any(cell.metrics for cell in cells):
        yield "It holds no measured repetition."
