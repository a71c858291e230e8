"""The cells of a saved baseline: samples in, a record that a diff can show out, and back."""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgebench.harness.compare.baseline_format import (
    BaselineCell,
    BaselineRun,
    CellSamples,
    MetricRecord,
    SampleList,
    SummaryRecord,
    checksum,
)
from edgebench.harness.compare.model import LARGEST, Samples, SideCell, SideRun
from edgebench.harness.metrics import statistics
from edgebench.harness.metrics.definitions import metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from edgebench.harness.compare.model import BlockKey
    from edgebench.harness.results.model import VariantRecord, WorkloadRecord

DIGITS = 6
"""Of what people read; the samples have all of theirs."""

MOST_BYTES = 64 * 2**20
"""That a baseline's samples may take once they are decompressed: a hundred times what a large run
has."""


class UnfitSamplesError(ValueError):
    """Samples that can't be what was saved; the message says why, without a full stop."""


def kept(cell: SideCell) -> dict[str, Samples]:
    """What a baseline keeps of a cell: metrics of which one direction is better, by key."""
    return {
        key: samples
        for key, samples in sorted(cell.metrics.items())
        if metric(key).better is not None
    }


def shared_records(cells: Iterable[SideCell]) -> dict[str, MetricRecord]:
    """Of each metric the unit, the source and the reason that most cells have.

    The meter is that of all that have values: a cell that says none has this one.
    """
    meters: dict[str, set[str | None]] = defaultdict(set)
    heads: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    reasons: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for cell in cells:
        for key, samples in kept(cell).items():
            heads[key][samples.unit, samples.source] += 1
            if samples.values:
                meters[key].add(samples.meter)
            if samples.reason is not None:
                reasons[key][samples.reason,] += 1
    found = {}
    for key in sorted(heads):
        unit, source = _most_common(heads[key])
        reason = _most_common(reasons[key])[0] if key in reasons else None
        (meter,) = meters[key] if len(meters[key]) == 1 else (None,)
        found[key] = MetricRecord.model_validate(
            {"unit": unit, "source": source, "meter": meter, "reason": reason}
        )
    return found


def cell_record(
    cell: SideCell,
    shared: Mapping[str, MetricRecord],
    variant: VariantRecord,
    workload: WorkloadRecord,
    own: tuple[VariantRecord, WorkloadRecord],
) -> dict[str, object]:
    """A cell as it stands in the file.

    Args:
        cell: as it was measured.
        shared: what is not said again of a metric.
        variant: the record of its name that the file holds.
        workload: the same of its workload.
        own: the cell's own, as they would be kept.
    """
    metrics = kept(cell)
    record = BaselineCell(
        variant=cell.variant.id,
        workload=cell.workload.name,
        status=cell.status,
        flags=list(cell.flags),
        failure=cell.failure,
        n=cell.n,
        n_failed=cell.n_failed,
        metrics={key: _summary(each, shared[key]) for key, each in metrics.items()},
        own_variant=own[0] if own[0] != variant else None,
        own_workload=own[1] if own[1] != workload else None,
        samples=_packed(metrics, cell),
        checksum="",
    ).model_dump(mode="json", exclude_defaults=True)
    return {**record, "checksum": checksum(record)}


def cell_of(
    record: BaselineCell,
    shared: Mapping[str, MetricRecord],
    variant: VariantRecord,
    workload: WorkloadRecord,
    room: int,
) -> tuple[SideCell, int]:
    """The cell that a record in a file is of, and how many bytes its samples took.

    Args:
        record: with its checksum found right.
        shared: the file's `metrics`.
        variant: the file's record of its name.
        workload: the same of its workload.
        room: how many bytes the samples may take.

    Raises:
        UnfitSamplesError: they can't be decompressed, or are not those that the record sums up.
    """
    samples, size = _unpacked(record.samples, room)
    strays = samples.metrics.keys() - record.metrics.keys()
    if strays:
        msg = f"it has samples of {min(strays)}, which it does not sum up"
        raise UnfitSamplesError(msg)
    blocks = [_keys(each, samples.sessions) for each in samples.blocks]
    found = {
        key: _samples(key, each, shared.get(key), samples, blocks)
        for key, each in record.metrics.items()
    }
    cell = SideCell(
        variant=record.own_variant or variant,
        workload=record.own_workload or workload,
        status=record.status,
        metrics=found,
        windows=tuple(samples.windows),
        flags=tuple(record.flags),
        failure=record.failure,
        n=record.n,
        n_failed=record.n_failed,
    )
    return cell, size


def run_record(run: SideRun) -> BaselineRun:
    """A run as files have it."""
    return BaselineRun(
        id=run.id,
        session=run.session,
        created_at=run.created_at,
        scenario_name=run.scenario_name,
        edgebench_version=run.edgebench_version,
        commit=run.commit,
        machine=run.machine,
        interleaved=run.interleaved,
        quick=run.quick,
        testing=run.testing,
        difference=run.difference,
    )


def run_of(record: BaselineRun) -> SideRun:
    """The run that a file's record is of."""
    return SideRun(
        id=record.id,
        session=record.session,
        created_at=record.created_at,
        scenario_name=record.scenario_name,
        edgebench_version=record.edgebench_version,
        commit=record.commit,
        machine=record.machine,
        interleaved=record.interleaved,
        quick=record.quick,
        testing=record.testing,
        difference=record.difference,
    )


def slim_variant(variant: VariantRecord) -> VariantRecord:
    """A variant without how it compares with the reference, which is long."""
    return variant.model_copy(update={"sameness": None})


def slim_workload(workload: WorkloadRecord) -> WorkloadRecord:
    """A workload without its prompt, which its hash stands for, and the reference's windows."""
    quality = workload.quality
    if quality is not None and quality.reference is not None:
        reference = quality.reference.model_copy(update={"windows": []})
        quality = quality.model_copy(update={"reference": reference})
    return workload.model_copy(update={"prompt_text": None, "quality": quality})


def summary_of(samples: Samples) -> SummaryRecord:
    """Median, 95 % interval and number of samples, rounded for people."""
    count = len(samples.values)
    if not count or max(map(abs, samples.values)) > LARGEST:
        return SummaryRecord(n=count)
    numbers: dict[BlockKey, int] = {}
    blocks = [numbers.setdefault(key, len(numbers)) for key in samples.blocks]
    interval = statistics.median_interval(samples.values, blocks)
    return SummaryRecord(
        median=_rounded(statistics.median(samples.values)),
        low=_rounded(interval.low),
        high=_rounded(interval.high),
        n=count,
    )


def _summary(samples: Samples, shared: MetricRecord) -> SummaryRecord:
    other = {
        "unit": samples.unit if samples.unit != shared.unit else None,
        "source": samples.source if samples.source != shared.source else None,
        "meter": samples.meter if samples.meter != shared.meter else None,
        "reason": samples.reason if samples.reason != shared.reason else None,
    }
    return summary_of(samples).model_copy(update=other)


def _samples(
    key: str,
    summary: SummaryRecord,
    shared: MetricRecord | None,
    samples: CellSamples,
    blocks: Sequence[tuple[BlockKey, ...]],
) -> Samples:
    unit = summary.unit or (shared.unit if shared else None)
    source = summary.source or (shared.source if shared else None)
    if unit is None or source is None:
        msg = f"nothing says what the unit and the source of {key} are"
        raise UnfitSamplesError(msg)
    own = samples.metrics.get(key, SampleList(blocks=0, values=[]))
    if len(own.values) != summary.n:
        msg = f"{key} has {len(own.values)} samples, and is said to have {summary.n}"
        raise UnfitSamplesError(msg)
    if not own.values:
        reason = summary.reason or (shared.reason if shared else None) or "the baseline has none"
        return Samples((), (), unit, source, reason)
    if own.blocks >= len(blocks) or len(blocks[own.blocks]) != len(own.values):
        msg = f"the samples of {key} have not a block each"
        raise UnfitSamplesError(msg)
    meter = summary.meter or (shared.meter if shared else None)
    return Samples(tuple(own.values), blocks[own.blocks], unit, source, meter=meter)


def _packed(metrics: Mapping[str, Samples], cell: SideCell) -> str | None:
    """All samples of a cell as text; None where there are none."""
    sessions: dict[str, int] = {}
    lists: dict[tuple[BlockKey, ...], int] = {}
    found = {}
    for key, samples in metrics.items():
        if samples.values:
            for session, _ in samples.blocks:
                sessions.setdefault(session, len(sessions))
            place = lists.setdefault(samples.blocks, len(lists))
            found[key] = SampleList(blocks=place, values=list(samples.values))
    if not found and not cell.windows:
        return None
    held = CellSamples(
        sessions=list(sessions),
        blocks=[[(sessions[session], block) for session, block in each] for each in lists],
        metrics=found,
        windows=list(cell.windows),
    ).model_dump(mode="json", exclude_defaults=True)
    # Python writes the shortest digits that are read back as the same number.
    text = json.dumps(held, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def _unpacked(text: str | None, room: int) -> tuple[CellSamples, int]:
    if text is None:
        return CellSamples(), 0
    try:
        packed = base64.b64decode(text, validate=True)
        unpacking = zlib.decompressobj()
        # Never more than may be: a few bytes can stand for gigabytes.
        held = unpacking.decompress(packed, max(1, room))
    except (binascii.Error, ValueError, zlib.error) as error:
        msg = "its samples can't be decompressed"
        raise UnfitSamplesError(msg) from error
    if not unpacking.eof:
        cut = not unpacking.unconsumed_tail
        msg = "its samples are cut off" if cut else "its samples take more room than any run's do"
        raise UnfitSamplesError(msg)
    try:
        return CellSamples.model_validate_json(held), len(held)
    except ValidationError as error:
        msg = "its samples are no lists of finite numbers with their blocks"
        raise UnfitSamplesError(msg) from error


def _keys(blocks: Sequence[tuple[int, int]], sessions: Sequence[str]) -> tuple[BlockKey, ...]:
    if any(not 0 <= session < len(sessions) for session, _ in blocks):
        msg = "a block is of a session that it does not name"
        raise UnfitSamplesError(msg)
    return tuple((sessions[session], block) for session, block in blocks)


def _most_common(counted: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """The one that is there most often; of several the first by name, whatever their order."""
    return min(counted, key=lambda each: (-counted[each], each))


def _rounded(value: float | None) -> float | None:
    if value is None or not value:
        return value
    # Never less than whole units: bytes are counted, not measured.
    return round(value, max(0, DIGITS - 1 - math.floor(math.log10(abs(value)))))
