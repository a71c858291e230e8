"""Reading what is compared: run folders, folders of runs, saved baselines, imported results.

What a path is, its content tells, not its name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.json_file import decoded
from edgebench.harness.compare.merging import merged
from edgebench.harness.compare.model import FACTS
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.errors import BaselineError, ResultError
from edgebench.harness.results.run import RUN_FILE, read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Side
    from edgebench.harness.results.trial import Trial

__all__ = ["read_baseline_side", "read_side", "side_of_run"]

_LEVELS: Final = ("*.json", "*/*.json")
"""Where a folder of baselines holds its files: FOLDER/NAME/FINGERPRINT.json."""

_MOST_NAMED: Final = 2
_MOST_SCENARIOS: Final = 4

DEFAULT_FOLDER: Final = "baselines"
"""Where `edgebench baseline save` puts them."""

_REMEDY: Final = (
    "Name a run's folder, as `edgebench run` printed it, or a baseline that `edgebench baseline "
    "save` wrote; `edgebench baseline list` shows those there are."
)


def read_side(paths: Sequence[Path], *, fingerprint: str | None = None) -> Side:
    """Read what is to be compared, from one or several places.

    Args:
        paths: of each a run's folder; a folder that holds such folders, of which all finished runs
            in full count; a saved baseline or a folder of them; a file of pytest-benchmark.
        fingerprint: of the machine whose baseline is wanted where a folder holds several.

    Returns:
        One side; several runs are one, with all their samples.

    Raises:
        ResultError: there is nothing at a path, or what is there can't be read, be it a baseline.
        NotComparableError: several runs can't be one side; it names the two.
    """
    try:
        return _read_all(paths, fingerprint)
    except BaselineError as error:
        raise ResultError(error.message, remedy=error.remedy) from error


def _read_all(paths: Sequence[Path], fingerprint: str | None) -> Side:
    sides = [side for path in paths for side in _read(path, fingerprint)]
    return sides[0] if len(sides) == 1 else merged(sides, _label(paths))


def read_baseline_side(
    paths: Sequence[Path], *, fingerprint: str | None = None, across_machines: bool = False
) -> Side:
    """The same, of what others are measured by: without it nothing can be compared.

    Args:
        paths: as of `read_side`.
        fingerprint: as of `read_side`.
        across_machines: whether the only baseline in a folder will do, of whatever machine it is.

    Raises:
        BaselineError: it is missing, can't be read or holds no measurement.
        NotComparableError: several runs can't be one side.
    """
    try:
        side = _read_all(paths, fingerprint)
    except BaselineError:
        if not across_machines:
            raise
        side = _read_all(paths, None)
    except ResultError as error:
        msg = f"There is no baseline to compare with: {error.message}"
        raise BaselineError(msg, remedy=error.remedy) from error
    if not measured(side):
        msg = f"{side.label} holds no measurement, so nothing can be compared with it."
        remedy = "Look at its report, or run the scenario again, and name that run."
        raise BaselineError(msg, remedy=remedy)
    return side


def measured(side: Side) -> bool:
    """Whether a side has a sample or a rated text at all; what is known of a file is neither."""
    return any(
        cell.windows or any(each.values for key, each in cell.metrics.items() if key not in FACTS)
        for cell in side.cells.values()
    )


def _label(paths: Sequence[Path]) -> str:
    names = [str(each) for each in paths]
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def _read(path: Path, fingerprint: str | None) -> list[Side]:
    if path.is_dir():
        return _read_folder(path, fingerprint)
    if path.is_file():
        return [_read_file(path)]
    msg = f"{path} does not exist."
    inside = Path(DEFAULT_FOLDER) / path
    if not path.is_absolute() and inside.is_dir():
        raise ResultError(msg, remedy=f"Name {inside}, which is a saved baseline.")
    raise ResultError(msg, remedy=_REMEDY)


def _read_folder(folder: Path, fingerprint: str | None) -> list[Side]:
    if (folder / RUN_FILE).exists():
        return [_read_run(folder)]
    runs = sorted(each.parent for each in folder.glob(f"*/{RUN_FILE}"))
    if runs:
        return _finished(folder, runs)
    files = [each for level in _LEVELS for each in sorted(folder.glob(level))]
    if files:
        return [_read_baselines(folder, files, fingerprint)]
    deeper = sorted({each.parent.parent for each in folder.glob(f"*/*/{RUN_FILE}")})
    if deeper:
        names = ", ".join(str(each) for each in deeper[:_MOST_SCENARIOS])
        msg = f"{folder} holds no run itself, only folders of runs."
        raise ResultError(msg, remedy=f"Name the runs of one scenario: {names}.")
    msg = f"{folder} holds no run and no baseline."
    remedy = (
        "Name a run's folder, as `edgebench run` printed it, or the folder that holds the runs of "
        "one scenario; of baselines, the one that `edgebench baseline save` wrote into."
    )
    raise ResultError(msg, remedy=remedy)


def _read_run(folder: Path) -> Side:
    return side_of_run(read_run(folder, reduce=_without_raw))


def _without_raw(trial: Trial) -> Trial:
    """Time stamps and timelines of a large run take most of its memory, and are not compared."""
    return trial.model_copy(update={"tokens": None, "timeline": None, "output": None})


def _finished(folder: Path, runs: Sequence[Path]) -> list[Side]:
    """All runs in a folder that can be measured by."""
    left_out: list[str] = []
    found: list[Side] = []
    for each in runs:
        run = read_run(each, reduce=_without_raw)
        record = run.record
        if record.quick:
            left_out.append(f"{each.name} is left out: it is a quick look.")
        elif record.status != "finished":
            left_out.append(f"{each.name} is left out: it is not finished ({record.status}).")
        elif record.interleaved is not None and record.interleaved.side == "baseline":
            left_out.append(
                f"{each.name} is left out: it is the baseline side of an interleaved run."
            )
        else:
            found.append(side_of_run(run))
    if not found:
        msg = f"{folder} holds no run that counts. {' '.join(left_out)}"
        raise ResultError(msg, remedy="Name the folder of a run, which is taken as it is.")
    return [replace(found[0], notes=(*left_out, *found[0].notes)), *found[1:]]


def _read_baselines(folder: Path, files: Sequence[Path], fingerprint: str | None) -> Side:
    from edgebench.harness.compare.baselines import (  # noqa: PLC0415 - runs need none of it
        find_baseline,
        read_baseline,
    )

    if fingerprint is not None:
        return read_baseline(find_baseline(folder, fingerprint))
    if len(files) == 1:
        return _read_file(files[0])
    msg = f"{folder} holds {len(files)} files, and nothing tells which of them is meant."
    raise BaselineError(msg, remedy="Name one of the files.")


def _read_file(path: Path) -> Side:
    if path.name == RUN_FILE:
        # Completed by a shell that went one too far.
        return _read_run(path.parent)
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path} can't be read ({error.strerror or error})."
        raise ResultError(msg) from error
    try:
        text = decoded(data)
    except ValueError:
        text = "?"
    if text.strip() and not text.lstrip().startswith("{"):
        msg = f"{path} is no result: neither a run's folder nor a saved baseline."
        raise ResultError(msg, remedy=_REMEDY)
    if _is_pytest_benchmark(text):
        from edgebench.harness.compare.pytest_benchmark import (  # noqa: PLC0415
            read_pytest_benchmark,
        )

        return read_pytest_benchmark(path)
    from edgebench.harness.compare.baselines import read_baseline  # noqa: PLC0415

    return read_baseline(path)


def _is_pytest_benchmark(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False  # Not JSON: who reads baselines says so.
    return isinstance(value, dict) and "benchmarks" in value and "machine_info" in value
