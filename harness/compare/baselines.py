"""Saving what was measured as a small file for git, and reading it again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError

from edgebench.harness.compare.baseline_cells import (
    MOST_BYTES,
    UnfitSamplesError,
    cell_of,
    cell_record,
    run_of,
    run_record,
    shared_records,
    slim_variant,
    slim_workload,
)
from edgebench.harness.compare.baseline_format import (
    FORMAT,
    SCHEMA_VERSION,
    BaselineModel,
    BaselineRecord,
    checksum,
    written,
)
from edgebench.harness.compare.json_file import decoded
from edgebench.harness.compare.model import Side
from edgebench.harness.errors import BaselineError, OutputError
from edgebench.harness.results.writer import write_atomically
from edgebench.harness.scenario.problems import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.compare.model import CellKey, SideCell, SideRun
    from edgebench.harness.results.model import VariantRecord, WorkloadRecord

SUFFIX = ".json"

_AGAIN = "Save it again: `edgebench baseline save RUN_DIR`, or take the file back from git."
_CONFLICT = ("<<<<<<< ", ">>>>>>> ")


def save_baseline(side: Side, path: Path) -> None:
    """Write a side as a baseline, whole or not at all; the folder is made.

    What is kept: every metric of which one direction is better, with all samples and their blocks;
    windows of rated texts; what was run, where and on which commit. What is not: prompts, texts,
    time stamps of single tokens, how variants compare with the reference. The same side always
    gives the same bytes.

    Args:
        side: its label becomes the baseline's name.
        path: of the file; replaced where it is there.

    Raises:
        OutputError: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{path.parent} can't be made a folder ({error.strerror or error})."
        raise OutputError(msg, remedy="Name another folder with --dir.") from error
    write_atomically(path, baseline_bytes(side))


def baseline_bytes(side: Side) -> bytes:
    """A side as `save_baseline` writes it."""
    variants: dict[str, VariantRecord] = {}
    workloads: dict[str, WorkloadRecord] = {}
    own = {
        key: (slim_variant(cell.variant), slim_workload(cell.workload))
        for key, cell in side.cells.items()
    }
    for variant, workload in own.values():
        variants.setdefault(variant.id, variant)
        workloads.setdefault(workload.name, workload)
    shared = shared_records(side.cells.values())
    head = BaselineRecord(
        format="edgebench baseline",
        schema_version=SCHEMA_VERSION,
        name=side.label,
        model=BaselineModel(
            name=side.model_name,
            source=side.model_source,
            hashes=dict(sorted(side.hashes.items())),
        ),
        runs=[run_record(each) for each in side.runs],
        notes=list(side.notes),
        variants=list(variants.values()),
        workloads=list(workloads.values()),
        metrics=shared,
        cells=[],
    ).model_dump(mode="json", exclude_defaults=True)
    cells = [
        cell_record(cell, shared, variants[key[0]], workloads[key[1]], own[key])
        for key, cell in side.cells.items()
    ]
    return written({**head, "cells": cells})


def read_baseline(path: Path) -> Side:
    """Read what `save_baseline` wrote; the side's label is the baseline's name.

    Raises:
        BaselineError: the file is missing, cut off, edited by hand, not a baseline, or of a newer
            edgebench. The message says which.
    """
    raw = _read_json(path)
    if not is_baseline(raw):
        msg = f"{path} is not a saved baseline."
        raise BaselineError(msg, remedy=_AGAIN)
    _refuse_newer(raw, path)
    try:
        record = BaselineRecord.model_validate(raw)
    except ValidationError as error:
        _damaged(path, _first_problem(error))
    for cell, given in zip(record.cells, _raw_cells(raw), strict=True):
        if checksum(given) != cell.checksum:
            _damaged(
                path,
                f"the cell '{_name(cell.variant, cell.workload)}' was edited, or merged of two "
                "versions: its checksum is another one",
            )
    return Side(
        label=record.name,
        runs=_runs(path, record),
        model_name=record.model.name,
        model_source=record.model.source,
        hashes=dict(record.model.hashes),
        cells=_cells(path, record),
        notes=tuple(record.notes),
    )


def is_baseline(value: object) -> bool:
    """Whether a file's JSON says that it is a saved baseline, of whatever version."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def find_baseline(folder: Path, fingerprint: str) -> Path:
    """The baseline of one machine in a folder of baselines.

    Args:
        folder: one baseline's, ``DIR/NAME``, which has a file for each machine; or ``DIR``, where
            it holds one baseline alone.
        fingerprint: of the machine.

    Raises:
        BaselineError: there is none, or there are several. The message says what there is.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        msg = f"There is no baseline: the folder {folder} {what}."
        raise BaselineError(msg, remedy=_save_one(folder))
    name = f"{fingerprint}{SUFFIX}"
    own = folder / name
    if own.is_file():
        return own
    others = baseline_files(folder)
    found = [path for path in others if path.name == name]
    if not found:
        # By whatever name somebody gave it.
        found = [path for path in others if _fingerprint(path) == fingerprint]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(one_line(str(each.relative_to(folder))) for each in found)
        msg = f"{folder} holds several baselines of this machine: {names}."
        raise BaselineError(msg, remedy=f"Name one of them, such as {found[0]}.")
    there = [f"  {each}: {machine_of(each)}" for each in others[:8]]
    if len(others) > len(there):
        there.append(f"  and {len(others) - len(there)} more")
    have = "It has those of other machines:" if there else "It holds none of any machine."
    msg = f"{folder} holds no baseline of this machine, whose fingerprint is {fingerprint}. {have}"
    raise BaselineError("\n".join((msg, *there)), remedy=_save_one(folder))


def baseline_files(folder: Path) -> list[Path]:
    """All files in a folder of baselines, and in the folders in it, by name."""
    folders = [folder, *_folders(folder)]
    return sorted(
        path
        for each in folders
        for path in each.glob(f"*{SUFFIX}")
        if path.is_file() and not path.name.startswith(".")
    )


def _fingerprint(path: Path) -> str | None:
    try:
        return read_baseline(path).machine.fingerprint
    except BaselineError:
        return None


def machine_of(path: Path) -> str:
    """The machine that a baseline's file is of, in words; or that it can't be read."""
    try:
        machine = read_baseline(path).machine
    except BaselineError:
        return "can't be read"
    return f"{one_line(machine.cpu_model)}, {machine.logical_cpus} CPUs"


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []


def _save_one(folder: Path) -> str:
    return (
        "Measure on this machine and save it: `edgebench run SCENARIO`, then `edgebench baseline "
        f"save RUN_DIR`, with --dir where it is not ./baselines. It was looked for in {folder}."
    )


def _read_json(path: Path) -> object:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        msg = f"There is no baseline {path}."
        remedy = (
            "Save one: `edgebench baseline save RUN_DIR`. `edgebench baseline list` shows those "
            "that there are."
        )
        raise BaselineError(msg, remedy=remedy) from error
    except OSError as error:
        msg = f"The baseline {path} can't be read ({error.strerror or error})."
        raise BaselineError(msg) from error
    try:
        return json.loads(decoded(data), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        lines = data.decode(json.detect_encoding(data), "replace").splitlines()
        if any(line.startswith(_CONFLICT) for line in lines):
            _damaged(path, "git left a conflict of two versions in it")
        _damaged(path, f"it is cut off or damaged ({one_line(str(error))})")


def _no_number(text: str) -> NoReturn:
    msg = f"{text} is no number"
    raise ValueError(msg)


def _refuse_newer(raw: object, path: Path) -> None:
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    # Not a boolean, which Python counts among the numbers.
    if type(version) is int and version > SCHEMA_VERSION:
        msg = (
            f"{path} was saved by a newer edgebench, in format {version}; "
            f"this one reads up to {SCHEMA_VERSION}."
        )
        raise BaselineError(msg, remedy="Upgrade edgebench.")


def _damaged(path: Path, what: str) -> NoReturn:
    msg = f"The saved baseline {path} can't be used: {what}."
    raise BaselineError(msg, remedy=_AGAIN)


def _raw_cells(raw: object) -> list[dict[str, object]]:
    cells = raw.get("cells") if isinstance(raw, dict) else None
    return [each for each in cells if isinstance(each, dict)] if isinstance(cells, list) else []


def _runs(path: Path, record: BaselineRecord) -> tuple[SideRun, ...]:
    if len({each.machine.fingerprint for each in record.runs}) > 1:
        _damaged(path, "its runs are of several machines")
    return tuple(run_of(each) for each in record.runs)


def _cells(path: Path, record: BaselineRecord) -> dict[CellKey, SideCell]:
    variants = {each.id: each for each in record.variants}
    workloads = {each.name: each for each in record.workloads}
    found: dict[CellKey, SideCell] = {}
    room = MOST_BYTES
    for each in record.cells:
        name = _name(each.variant, each.workload)
        variant, workload = variants.get(each.variant), workloads.get(each.workload)
        if variant is None or workload is None:
            what = "variant" if variant is None else "workload"
            _damaged(path, f"the cell '{name}' is of a {what} that it does not describe")
        if (each.variant, each.workload) in found:
            _damaged(path, f"it holds the cell '{name}' twice")
        try:
            cell, size = cell_of(each, record.metrics, variant, workload, room)
        except UnfitSamplesError as error:
            _damaged(path, f"of the cell '{name}', {one_line(str(error))}")
        room -= size
        found[each.variant, each.workload] = cell
    return found


def _name(variant: str, workload: str) -> str:
    return one_line(f"{variant} / {workload}")


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    where = ".".join(str(part) for part in problems[0]["loc"])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return one_line(f"{where + ': ' if where else ''}{problems[0]['msg']}{more}")
