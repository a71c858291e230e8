"""Reading a run's folder, whatever state it was left in."""

from __future__ import annotations

import gc
import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from edgebench.harness.errors import ResultError
from edgebench.harness.results.model import RunRecord
from edgebench.harness.results.record import SCHEMA_VERSION
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    import pandas as pd

RUN_FILE = "run.json"
TRIALS_FILE = "trials.jsonl"

FRAME_COLUMNS = (
    "runner",
    "engine",
    "engine_version",
    "variant",
    "quantization",
    "workload",
    "block",
    "repetition",
    "phase",
    "status",
    "metric",
    "value",
    "unit",
    "source",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands on disk.

    Attributes:
        path: the run's folder.
        record: ``run.json``.
        trials: the lines of ``trials.jsonl``, in the order in which they were written.
        damaged_lines: lines that could not be read and were left out; a run that was killed
            while it wrote leaves one.
    """

    path: Path
    record: RunRecord
    trials: tuple[Trial, ...]
    damaged_lines: int = 0

    def to_frame(self) -> pd.DataFrame:
        """One row a trial and metric.

        Returns:
            A frame with the columns ``runner, engine, engine_version, variant, quantization,
            workload, block, repetition, phase, status, metric, value, unit, source, reason``.
            A load has no workload. A trial without metrics is one row without metric, whose
            reason is the failure's message.
        """
        # Imported late: reading a run costs no pandas.
        import pandas as pd  # noqa: PLC0415

        return pd.DataFrame.from_records(list(self._rows()), columns=list(FRAME_COLUMNS))

    def _rows(self) -> Iterator[tuple[object, ...]]:
        from edgebench.harness.records import with_loads  # noqa: PLC0415 - reading needs none of it

        # A run that was killed says only in its trials what was loaded.
        variants = {each.id: with_loads(each, self.trials) for each in self.record.variants}
        for trial in self.trials:
            variant = variants.get(trial.variant)
            head = (
                variant.runner if variant else None,
                variant.engine if variant else None,
                variant.engine_version if variant else None,
                trial.variant,
                variant.quantization if variant else None,
                trial.workload,
                trial.block,
                trial.repetition,
                trial.phase,
                trial.status,
            )
            for key, measured in trial.metrics.items():
                yield (*head, key, measured.value, measured.unit, measured.source, measured.reason)
            if not trial.metrics:
                reason = trial.failure.message if trial.failure else None
                yield (*head, None, None, None, None, reason)


def read_run(path: str | PathLike[str], *, reduce: Callable[[Trial], Trial] | None = None) -> Run:
    """Read a run's folder.

    A run that was killed while it wrote is read as far as it goes.

    Args:
        path: the folder that holds ``run.json`` and ``trials.jsonl``.
        reduce: called with each trial as it is read; what it returns is kept in its place. Lets
            a caller take what it needs of the raw samples of a large run and drop the rest.

    Returns:
        The run.

    Raises:
        ResultError: the folder or its ``run.json`` is missing or broken, or a newer edgebench
            wrote it.
    """
    folder = Path(path)
    record = read_record(folder)
    trials, damaged_lines = _read_trials(folder / TRIALS_FILE, reduce)
    return Run(path=folder, record=record, trials=trials, damaged_lines=damaged_lines)


def refuse_strays(run: Run) -> None:
    """Raise where a run's two files are not of one run, as far as their names tell.

    Figures of a trial whose variant or workload is not in the record would be lost without a word,
    or taken for those of another run's variant of the same name.

    Raises:
        ResultError: a trial names a variant or a workload that the record does not hold, or the
            record holds two of one name.
    """
    record = run.record
    variants = [each.id for each in (*record.variants, *record.proofs)]
    workloads = [each.name for each in record.workloads]
    remedy = (
        f"If {RUN_FILE} or {TRIALS_FILE} was edited by hand, undo that; the two belong together. "
        "To leave variants or workloads out, run the scenario again with --runners or --workloads."
    )
    for kind, names in (("variants", variants), ("workloads", workloads)):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            msg = f"{run.path / RUN_FILE} holds two {kind} that are called {twice!r}."
            raise ResultError(msg, remedy=remedy)
    known = {"variant": frozenset(variants), "workload": frozenset(workloads)}
    for trial in run.trials:
        for kind, name in (("variant", trial.variant), ("workload", trial.workload)):
            if name is not None and name not in known[kind]:
                msg = (
                    f"{run.path / TRIALS_FILE} holds trials of the {kind} {name!r}, "
                    f"which {RUN_FILE} beside it does not hold."
                )
                raise ResultError(msg, remedy=remedy)


def read_record(folder: Path) -> RunRecord:
    """``run.json`` alone, of a run whose trials do not matter.

    Raises:
        ResultError: as `read_run`.
    """
    file = folder / RUN_FILE
    try:
        text = file.read_bytes()
    except OSError as error:
        what = "is not a folder" if not folder.is_dir() else f"holds no readable {RUN_FILE}"
        msg = f"{folder} {what} ({error.strerror or error})."
        remedy = (
            f"A run's folder is expected: the one that `edgebench run` printed, with {RUN_FILE} "
            f"and {TRIALS_FILE} in it."
        )
        raise ResultError(msg, remedy=remedy) from error
    _refuse_newer(text, file)
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        msg = f"{file} is not the record of a run: {_first_problem(error)}"
        remedy = "If it was edited by hand, undo that; otherwise the file is damaged."
        raise ResultError(msg, remedy=remedy) from error


def _read_trials(
    file: Path, reduce: Callable[[Trial], Trial] | None
) -> tuple[tuple[Trial, ...], int]:
    trials: list[Trial] = []
    damaged_lines = 0
    try:
        with file.open("rb") as lines, _garbage_collection_paused():
            for line in lines:
                if not line.strip():
                    continue
                try:
                    trial = Trial.model_validate_json(line)
                except ValidationError:
                    _refuse_newer(line, file)
                    damaged_lines += 1
                    continue
                if trial.schema_version > SCHEMA_VERSION:
                    _refuse_newer(line, file)
                trials.append(reduce(trial) if reduce else trial)
    except FileNotFoundError:
        # Killed before the first trial ended: a run without trials is still a run.
        return (), 0
    except OSError as error:
        msg = f"{file} can't be read ({error.strerror or error})."
        raise ResultError(msg) from error
    return tuple(trials), damaged_lines


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Reading makes millions of values and no cycle; looking for cycles would take most of it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _refuse_newer(text: bytes, file: Path) -> None:
    """Raise `ResultError` where `text` says that a newer edgebench wrote it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return  # Not JSON: the caller says so, or leaves the line out.
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        msg = (
            f"{file} was written by a newer edgebench, format {version}; "
            f"this one reads up to {SCHEMA_VERSION}."
        )
        raise ResultError(msg, remedy="Upgrade edgebench.")


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{where + ': ' if where else ''}{first['msg']}{more}."
