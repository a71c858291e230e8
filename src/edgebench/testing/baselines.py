"""Where a test's baseline is, and how this session's results become one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.compare.baselines import (
    SUFFIX,
    baseline_files,
    find_baseline,
    read_baseline,
    save_baseline,
)
from edgebench.harness.compare.sides import read_side
from edgebench.harness.errors import BaselineError, UsageError
from edgebench.harness.results.run import RUN_FILE
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from edgebench.harness.compare.model import CellKey, Side

HOW_TO_SAVE = "`pytest --edgebench-save` measures and saves one."


class NoBaselineError(BaselineError):
    """There is none yet of this scenario and machine."""


def place(named: str, folders: Iterable[Path]) -> Path:
    """A path relative to the first of these folders that has it; to the last where none has."""
    path = Path(named)
    for folder in folders:
        path = folder / named
        if path.exists():
            break
    return path


def baseline_side(where: Path, scenario: str, fingerprint: str) -> Side:
    """Read the baseline of a scenario.

    Args:
        where: a folder of baselines (``WHERE/SCENARIO/FINGERPRINT.json``), a baseline's file, or
            a run's folder.
        scenario: its name.
        fingerprint: of the machine that the candidate was measured on.

    Raises:
        NoBaselineError: there is none for this scenario and machine.
        BaselineError: it can't be read.
        NotComparableError, ResultError: as `read_side` raises them.
    """
    if where.is_file() or (where / RUN_FILE).is_file() or any(where.glob(f"*/{RUN_FILE}")):
        return read_side([where], fingerprint=fingerprint)
    own = where / scenario
    if not own.is_dir() and not any(where.glob(f"*{SUFFIX}")):
        msg = f"There is no baseline of {one_line(scenario)} in {where}."
        raise NoBaselineError(msg)
    folder = own if own.is_dir() else where
    try:
        path = find_baseline(folder, fingerprint)
    except BaselineError as error:
        if any(_is_of(each, fingerprint) for each in baseline_files(folder)):
            raise  # there are several
        raise NoBaselineError(error.message) from error
    return read_baseline(path)


def _is_of(path: Path, fingerprint: str) -> bool:
    try:
        return read_baseline(path).machine.fingerprint == fingerprint
    except BaselineError:
        return False


def save_cells(where: Path, scenario: str, side: Side, keys: Collection[CellKey]) -> Path:
    """Save cells of this session's run; what the baseline has of others stays.

    Args:
        where: a folder of baselines, or a baseline's file.
        scenario: its name.
        side: this session's run.
        keys: which of its cells.

    Returns:
        The file.

    Raises:
        UsageError: `where` is a run's folder.
        BaselineError: the old file can't be read.
        OutputError: the new one can't be written.
    """
    if (where / RUN_FILE).exists():
        msg = f"{where} is a run's folder, in which no baseline can be saved"
        raise UsageError(msg, remedy="Name a folder of baselines by --edgebench-baseline.")
    is_file = where.is_file() or where.suffix == SUFFIX
    path = where if is_file else where / scenario / f"{side.machine.fingerprint}{SUFFIX}"
    new = replace(side, label=scenario, cells={key: side.cells[key] for key in keys})
    save_baseline(_merged(read_baseline(path), new) if path.exists() else _tidy(new), path)
    return path


def _merged(old: Side, new: Side) -> Side:
    """The new cells, and the old ones of what was not measured now."""
    other_weights = any(old.hashes.get(key, digest) != digest for key, digest in new.hashes.items())
    if other_weights or old.machine.fingerprint != new.machine.fingerprint:
        # Nothing of the old one could stand beside the new cells.
        return _tidy(new)
    known = {each.id for each in old.runs}
    return _tidy(
        replace(
            new,
            runs=(*old.runs, *(each for each in new.runs if each.id not in known)),
            hashes={**old.hashes, **new.hashes},
            cells={**old.cells, **new.cells},
        )
    )


def _tidy(side: Side) -> Side:
    """Without runs that no sample is of."""
    sessions = {
        session
        for cell in side.cells.values()
        for samples in cell.metrics.values()
        for session, _ in samples.blocks
    }
    kept = tuple(each for each in side.runs if each.session in sessions)
    return replace(side, runs=kept or side.runs[-1:])
