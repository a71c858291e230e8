"""Reading pytest-benchmark's JSON: what edgebench exported, and what others measured."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError

from edgebench.harness.compare.baseline_cells import run_of
from edgebench.harness.compare.json_file import decoded
from edgebench.harness.compare.model import Samples, Side, SideCell, SideRun
from edgebench.harness.compare.pytest_benchmark_export import export_pytest_benchmark
from edgebench.harness.compare.pytest_benchmark_format import (
    HEAD_VERSION,
    ExportedHead,
    PytestExtra,
    PytestFile,
)
from edgebench.harness.errors import BaselineError
from edgebench.harness.results.model import (
    CommitRecord,
    MachineRecord,
    VariantRecord,
    WorkloadRecord,
)
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from edgebench.harness.compare.model import BlockKey, CellKey
    from edgebench.harness.compare.pytest_benchmark_format import PytestBenchmark
    from edgebench.harness.results.measured import Scalar

__all__ = ["export_pytest_benchmark", "is_pytest_benchmark", "read_pytest_benchmark"]

RUNNER = "pytest-benchmark"
DURATION = "duration_s"

MOST_BLOCKS = 100
"""Of one benchmark. Of more rounds, successive ones make a block, whose median is its sample: they
follow each other within microseconds, and thousands of them say little more than these."""

WITHOUT_DATA = (
    "the file holds no samples, only statistics: use --benchmark-json, or "
    "--benchmark-save-data with --benchmark-save and --benchmark-autosave"
)
_NO_COMMIT = frozenset({"unversioned", "unknown", ""})
_NO_BRANCH = frozenset({"(unknown)", "(detached head)", ""})


def is_pytest_benchmark(value: object) -> bool:
    """Whether a file's JSON is pytest-benchmark's."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("benchmarks"), list)
        and isinstance(value.get("machine_info"), dict)
    )


def read_pytest_benchmark(path: Path) -> Side:
    """Read a file of pytest-benchmark.

    What edgebench exported comes back with its cells, blocks and machine. Of another file each
    benchmark is a cell: the variant is the benchmark's name, the workload its group or else its
    module, the metric `duration_s`. Only samples are read, no statistics; where there are none,
    the metric is null with that reason. Of more rounds than `MOST_BLOCKS`, each sample is the
    median of successive ones.

    Args:
        path: as `--benchmark-json`, `--benchmark-save` or `--benchmark-autosave` wrote it.

    Raises:
        BaselineError: the file is missing, cut off, not of pytest-benchmark, or holds times that
            are no numbers.
    """
    raw = _read_json(path)
    if not is_pytest_benchmark(raw):
        msg = f"{path} is not a file of pytest-benchmark: it has no benchmarks with a machine_info."
        raise BaselineError(msg, remedy=_REMEDY)
    try:
        file = PytestFile.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        _refuse(path, f"{where}: {problem['msg']}")
    if not file.benchmarks:
        _refuse(path, "it holds no benchmarks")
    _refuse_no_times(path, file)
    if file.edgebench is not None:
        return _exported(path, file, file.edgebench)
    return _foreign(path, file)


_REMEDY = "Make it with `pytest --benchmark-json=FILE`."


def _read_json(path: Path) -> object:
    try:
        data = path.read_bytes()
    except OSError as error:
        what = "There is no file" if isinstance(error, FileNotFoundError) else "Can't read"
        reason = "" if isinstance(error, FileNotFoundError) else f" ({error.strerror or error})"
        msg = f"{what} {path}{reason}."
        raise BaselineError(msg, remedy=_REMEDY) from error
    try:
        # Statistics may be NaN, and are not read; where a sample is none, that is refused by name.
        return json.loads(decoded(data), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"it is cut off or damaged ({error})")


def _refuse(path: Path, what: str) -> NoReturn:
    msg = f"The file {path} can't be used: {one_line(what)}."
    raise BaselineError(msg, remedy=_REMEDY)


def _refuse_no_times(path: Path, file: PytestFile) -> None:
    for each in file.benchmarks:
        for value in each.stats.data or ():
            if value is None or not math.isfinite(value) or value < 0:
                shown = "NaN or infinite" if value is None else f"{value:g}"
                _refuse(path, f"a sample of '{each.name}' is {shown}, which is no time")


def _exported(path: Path, file: PytestFile, head: ExportedHead) -> Side:
    if head.schema_version > HEAD_VERSION:
        msg = f"{path} was exported by a newer edgebench."
        raise BaselineError(msg, remedy="Upgrade edgebench.")
    metrics: dict[CellKey, dict[str, Samples]] = {}
    for each in file.benchmarks:
        try:
            own = PytestExtra.model_validate(each.extra_info).edgebench
        except ValidationError:
            _refuse(path, f"'{each.name}' does not say which cell it is of")
        values = tuple(value for value in each.stats.data or () if value is not None)
        if len(values) != len(own.blocks) or not values:
            _refuse(path, f"the samples of '{each.name}' have not a block each")
        found = metrics.setdefault((own.variant, own.workload), {})
        if own.metric in found:
            _refuse(path, f"it holds '{each.name}' twice")
        found[own.metric] = Samples(values, tuple(own.blocks), own.unit, own.source)
    variants = {each.id: each for each in head.variants}
    workloads = {each.name: each for each in head.workloads}
    cells: dict[CellKey, SideCell] = {}
    for cell in head.cells:
        key = (cell.variant, cell.workload)
        if cell.variant not in variants or cell.workload not in workloads:
            _refuse(path, f"the cell '{' / '.join(key)}' is not described")
        cells[key] = SideCell(
            variant=variants[cell.variant],
            workload=workloads[cell.workload],
            status=cell.status,
            metrics=metrics.pop(key, {}),
            flags=tuple(cell.flags),
            failure=cell.failure,
        )
    if metrics:
        _refuse(path, f"the cell '{' / '.join(next(iter(metrics)))}' is not described")
    return Side(
        label=str(path),
        runs=tuple(run_of(each) for each in head.runs),
        model_name=head.model.name,
        model_source=head.model.source,
        hashes=dict(head.model.hashes),
        cells=cells,
        notes=tuple(head.notes),
    )


def _foreign(path: Path, file: PytestFile) -> Side:
    commit = _commit(file)
    identity = json.dumps(
        [file.datetime, file.commit_info.id, [each.name for each in file.benchmarks]]
    )
    run_id = f"pytest-benchmark-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    project = file.commit_info.project or ""
    run = SideRun(
        id=run_id,
        session=run_id,
        created_at=_utc(file.datetime) or file.datetime,
        scenario_name=project or RUNNER,
        edgebench_version="",
        commit=commit,
        machine=_machine(file),
    )
    cells: dict[CellKey, SideCell] = {}
    for names, each in zip(_names(file), file.benchmarks, strict=True):
        if names in cells:
            _refuse(path, f"it holds '{each.fullname or each.name}' twice")
        cells[names] = _cell(names, each, run_id)
    return Side(
        label=str(path),
        runs=(run,),
        model_name="",
        model_source=RUNNER,
        hashes={},
        cells=cells,
        notes=tuple(_notes(file)),
    )


def _names(file: PytestFile) -> Iterator[CellKey]:
    """Of each benchmark a variant's and a workload's name; its full name where that is needed."""
    short = []
    for each in file.benchmarks:
        module, found, rest = each.fullname.partition("::")
        # Within a module a class tells two of one name apart, within a group only the full name.
        short.append(
            (each.name, each.group)
            if each.group
            else (rest if found else each.name, module if found else "tests")
        )
    counted = Counter(short)
    for names, each in zip(short, file.benchmarks, strict=True):
        yield names if counted[names] == 1 else (each.fullname or each.name, names[1])


def _cell(names: CellKey, benchmark: PytestBenchmark, session: str) -> SideCell:
    rounds = [value for value in benchmark.stats.data or () if value is not None]
    each = math.ceil(len(rounds) / MOST_BLOCKS)
    values = tuple(
        statistics.median(rounds[place : place + each])
        for place in range(0, len(rounds), max(1, each))
    )
    blocks: tuple[BlockKey, ...] = tuple((session, place) for place in range(len(values)))
    calls = benchmark.stats.iterations
    how = f"; each sample is the median of {each} rounds" if each > 1 else ""
    mean = f"; each round is the mean of {calls} calls" if calls > 1 else ""
    reason = None if values else WITHOUT_DATA
    return SideCell(
        variant=VariantRecord(
            id=names[0],
            runner=RUNNER,
            # Nothing but its name tells a benchmark from another: never take one for the other.
            quantization=names[0],
            effective_options=_options(benchmark.options),
        ),
        workload=WorkloadRecord(
            name=names[1],
            description=f"{benchmark.fullname or benchmark.name}{how}{mean}",
            task=RUNNER,
            generate_tokens=None,
        ),
        status="ok" if values else "not_run",
        metrics={DURATION: Samples(values, blocks, "s", "observed", reason)},
    )


def _options(options: Mapping[str, object]) -> dict[str, Scalar]:
    """What of a benchmark's options changes what a sample means."""
    found: dict[str, Scalar] = {}
    for key in ("timer", "disable_gc", "warmup"):
        value = options.get(key)
        if isinstance(value, bool | int | float | str):
            found[key] = value
    return found


def _notes(file: PytestFile) -> Iterator[str]:
    silent = [each for each in file.benchmarks if not each.stats.data]
    if silent:
        share = f"{len(silent)} of {len(file.benchmarks)} benchmarks"
        yield f"{share} can't be compared: {WITHOUT_DATA}."
    long = [each for each in file.benchmarks if len(each.stats.data or ()) > MOST_BLOCKS]
    if long:
        yield (
            f"Of {len(long)} of {len(file.benchmarks)} benchmarks, with more than {MOST_BLOCKS} "
            "rounds, each sample is the median of successive rounds."
        )
    for each in file.benchmarks:
        rounds, count = each.stats.rounds, len(each.stats.data or ())
        if count and rounds is not None and rounds != count:
            yield f"'{each.name}' is said to have {rounds} rounds; its {count} samples count."


def _commit(file: PytestFile) -> CommitRecord | None:
    said = file.commit_info
    if said.id is None or said.id in _NO_COMMIT:
        return None
    branch = None if said.branch is None or said.branch in _NO_BRANCH else said.branch
    return CommitRecord(
        sha=said.id, branch=branch, committed_at=_utc(said.time or ""), dirty=said.dirty
    )


def _machine(file: PytestFile) -> MachineRecord:
    """The machine as far as the file tells; its memory is not told, and given as 0."""
    said = file.machine_info
    cpu = said.cpu.brand_raw or said.cpu.brand or said.processor or "unknown processor"
    count = said.cpu.count or 0
    # Clocks are among what the file says of the processor, and differ each time.
    facts = [cpu, count, said.machine, said.system, said.release]
    return MachineRecord(
        fingerprint=hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16],
        cpu_model=cpu,
        logical_cpus=count,
        affinity=list(range(count)),
        memory_bytes=0,
        kernel=said.release,
        system=said.system,
        architecture=said.machine,
        python=said.python_version,
    )


def _utc(text: str) -> str | None:
    """A time as edgebench writes it; None where the text is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Old releases wrote UTC without saying so.
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")
