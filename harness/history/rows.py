"""From a run's record to its rows: one for each cell and metric."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.harness.compare.identity import TESTING_RUNNER, model_text
from edgebench.harness.history.model import (
    Point,
    Points,
    RunFacts,
    Series,
    Setup,
    Subject,
    measured_by,
)
from edgebench.harness.results.meters import meter_of
from edgebench.harness.store.store import AS_PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgebench.harness.history.model import Selection
    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.model import RunRecord, VariantRecord, WorkloadRecord


@dataclass(frozen=True, slots=True)
class Rows:
    """What a record holds.

    Attributes:
        left_out: why the run is in no series; empty where it is.
        points: with the subject of each.
    """

    run: RunFacts
    left_out: str
    points: tuple[tuple[Subject, Point], ...]


def rows_of(record: RunRecord, path: str) -> Rows:
    """A run's rows.

    Args:
        record: its ``run.json``.
        path: its folder, as the history names it.
    """
    commit = record.commit
    run = RunFacts(
        id=record.id,
        path=path,
        created_at=record.created_at,
        moment=_moment(record.created_at),
        scenario=record.scenario_name,
        cpu_model=record.machine.cpu_model,
        version=record.edgebench_version,
        sha=commit.sha if commit else None,
        branch=commit.branch if commit else None,
        committed_at=commit.committed_at if commit else None,
        dirty=commit.dirty if commit else None,
    )
    return Rows(run, _left_out(record), tuple(_points(record, run)))


def _left_out(record: RunRecord) -> str:
    if record.quick:
        return "quick look"
    if record.status != "finished":
        return "not finished"
    if record.interleaved is not None and record.interleaved.side == "baseline":
        # What it ran is older than its date, or another thing on purpose.
        return "baseline of an interleaved run"
    return ""


def series_of(rows: Iterable[Rows], selection: Selection) -> tuple[Series, ...]:
    """The series of runs that are at hand, without an index."""
    found: dict[str, tuple[Subject, list[Point]]] = {}
    for each in rows:
        if each.left_out or not selection.takes_run(each.run):
            continue
        for subject, point in each.points:
            if selection.takes(subject):
                # The newest run's names, in the order of the first.
                _subject, points = found.get(subject.identity, (subject, []))
                found[subject.identity] = (subject, [*points, point])
    return tuple(Series(subject, in_order(points)) for subject, points in found.values())


def in_order(points: Sequence[Point]) -> Points:
    """Oldest first."""
    return Points.of(sorted(points, key=lambda each: (each.run.moment, each.run.created_at)))


def _points(record: RunRecord, run: RunFacts) -> Iterator[tuple[Subject, Point]]:
    variants = {each.id: each for each in record.variants}
    workloads = {each.name: each for each in record.workloads}
    setups = {each.id: _setup(each) for each in record.variants}
    for cell in record.cells:
        variant, workload = variants.get(cell.variant), workloads.get(cell.workload)
        if variant is not None and workload is not None:
            yield from _of_cell(record, run, cell, variant, workload, setups[cell.variant])


def _of_cell(
    record: RunRecord,
    run: RunFacts,
    cell: Cell,
    variant: VariantRecord,
    workload: WorkloadRecord,
    setup: Setup,
) -> Iterator[tuple[Subject, Point]]:
    weights = _weights(record, variant)
    machine = record.machine.fingerprint
    # A file loaded as published is known by its hash wherever it lies.
    what = {
        "scenario": record.scenario_name,
        "machine": machine,
        "weights": weights,
        **_variant(variant),
        **_workload(workload),
    }
    written = json.dumps(what, ensure_ascii=False)
    for key, summary in cell.metrics.items():
        if summary.median is None:
            continue
        meter = meter_of(record, key) or ""
        subject = Subject(
            machine=machine,
            model=model_text(record, "name"),
            weights=weights,
            variant=variant.id,
            workload=workload.name,
            scenario=record.scenario_name,
            metric=key,
            unit=summary.unit,
            source=summary.source,
            testing=variant.runner == TESTING_RUNNER,
            meter=meter,
            # An estimate and a measurement differ by the model, not by what was changed; two
            # meters by what they cover.
            identity=f"{written}{measured_by(key, summary.unit, summary.source, meter)}",
        )
        point = Point(run, summary.median, summary.ci_low, summary.ci_high, summary.n, setup)
        yield subject, point


def _weights(record: RunRecord, variant: VariantRecord) -> str:
    model = record.scenario.get("model")
    given = model.get("sha256") if isinstance(model, dict) else None
    artifact = variant.artifact
    if not isinstance(given, str) and artifact is not None:
        made_up = artifact.synthetic and variant.quantization == "source"
        given = artifact.sha256 if made_up or artifact.made_by == AS_PUBLISHED else None
    source = model_text(record, "source")
    return f"{source} sha256:{given}" if isinstance(given, str) else source


def _variant(variant: VariantRecord) -> dict[str, object]:
    return {
        "runner": variant.runner,
        "framework": variant.framework,
        "quantisation": variant.quantization,
        "options": dict(sorted(variant.options.items())),
    }


def _workload(workload: WorkloadRecord) -> dict[str, object]:
    quality = workload.quality
    rated = (
        {
            "protocol": quality.protocol,
            "text": quality.text_sha256,
            "tokens of text": quality.ids_sha256,
            "window": quality.window,
            "stride": quality.stride,
            "score from": quality.score_from,
            "begin token": quality.bos_id,
            "windows": quality.windows,
        }
        if quality is not None
        else {}
    )
    return {
        "workload": workload.name,
        "kind": workload.kind,
        "task": workload.task,
        "prompt": workload.prompt_sha256,
        "prompt tokens": workload.prompt_tokens,
        "depth": workload.depth,
        "generated tokens": workload.generate_tokens,
        **rated,
    }


def _setup(variant: VariantRecord) -> Setup:
    engine = " ".join(filter(None, (variant.engine, variant.engine_version)))
    return Setup(
        engine=engine,
        artifact=variant.artifact.sha256 if variant.artifact else "",
        effective=tuple(
            sorted(f"{key}={value}" for key, value in variant.effective_options.items())
        ),
    )


def _moment(created_at: str) -> float:
    try:
        when = datetime.fromisoformat(created_at)
    except ValueError:
        return 0.0
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
