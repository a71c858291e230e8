"""``edgebench baseline``: save what was measured as a small file for git, list and show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.baseline_options import checked_name, folder_option, save
from edgebench.harness.errors import BaselineError, EdgebenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Side


@click.group()
def baseline() -> None:
    """Save, list or show baselines, small files for git.

    A baseline holds all samples of a run, or of several, on one machine: what `edgebench gate` and
    `edgebench compare` need of it. Each machine has its own: DIR/NAME/FINGERPRINT.json.
    """


@baseline.command("save")
@click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(file_okay=False, path_type=Path),
)
@click.option("--name", metavar="NAME", help="Its name; the scenario's by default.")
@folder_option
def save_command(run_dirs: tuple[Path, ...], name: str | None, folder: Path) -> None:
    """Save runs of one machine as its baseline.

    Several count together, with all their samples.
    One that is there already by this name is replaced, and said.
    """
    from edgebench.harness.compare.sides import measured, read_side  # noqa: PLC0415

    if name is not None:
        checked_name(name)
    side = read_side(run_dirs)
    if any(run.quick for run in side.runs):
        msg = f"{side.label} is a quick look, which is no measurement"
        raise UsageError(msg, remedy="Run it again without --quick.")
    if not measured(side):
        msg = f"{side.label} holds no measured repetition, so nothing could be compared with it"
        raise UsageError(msg, remedy="Look at its report, or run the scenario again.")
    save(side, checked_name(name or side.runs[-1].scenario_name), folder, candidate="RUN_DIR")


@baseline.command("list")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_command(*, folder: Path, as_json: bool) -> None:
    """List baselines; a star marks this machine's."""
    from edgebench.devices.machine import describe_machine  # noqa: PLC0415
    from edgebench.harness.compare.baselines import baseline_files, read_baseline  # noqa: PLC0415

    found: list[tuple[str, Side]] = []
    damaged: list[tuple[str, EdgebenchError]] = []
    for path in baseline_files(folder) if folder.is_dir() else []:
        try:
            found.append((str(path), read_baseline(path)))
        except BaselineError as error:
            damaged.append((str(path), error))
    fingerprint = describe_machine().fingerprint
    if as_json:
        click.echo(json.dumps(_listed(found, damaged, fingerprint), indent=2))
        return
    if not found and not damaged:
        click.echo(f"There are no baselines in {folder}; `edgebench baseline save` makes one.")
        return
    from rich.console import Console  # noqa: PLC0415

    from edgebench.reports.comparing.baselines import baselines_table  # noqa: PLC0415
    from edgebench.reports.text import one_line  # noqa: PLC0415

    if found:
        Console(highlight=False).print(baselines_table(found, fingerprint))
    for _, problem in damaged:
        click.echo(one_line(str(problem)), err=True)


@baseline.command("show")
@click.argument("which", metavar="FILE|NAME")
@folder_option
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATTERN",
    help="Metrics to show, such as 'itl_*'; several times. The usual ones by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every metric.")
def show_command(*, which: str, folder: Path, metrics: Sequence[str], as_json: bool) -> None:
    """Show a baseline's cells.

    Of each metric the median, its 95 % interval, and how many samples are behind them.

    FILE is a saved baseline. NAME is one in the folder of baselines: this machine's, or where only
    another machine has one, that.
    """
    from edgebench.harness.compare.baselines import read_baseline  # noqa: PLC0415

    path = _found(which, folder)
    side = read_baseline(path)
    from edgebench.reports.comparing.baselines import (  # noqa: PLC0415
        baseline_json,
        baseline_view,
    )

    if as_json:
        click.echo(json.dumps(baseline_json(side, str(path)), indent=2))
        return
    from rich.console import Console  # noqa: PLC0415

    from edgebench.harness.compare.wanted import by_patterns  # noqa: PLC0415

    view = baseline_view(side, str(path), by_patterns([], list(metrics)))
    Console(highlight=False).print(view)


def _found(which: str, folder: Path) -> Path:
    """The file that is meant."""
    from edgebench.devices.machine import describe_machine  # noqa: PLC0415
    from edgebench.harness.compare.baselines import baseline_files, find_baseline  # noqa: PLC0415

    given = Path(which)
    if given.is_file():
        return given
    named = given if given.is_dir() else folder / which
    if not named.is_dir():
        there = sorted({each.parent.name for each in baseline_files(folder)})
        names = f"{folder} holds {', '.join(there)}." if there else f"{folder} holds none."
        msg = f"There is no file and no baseline {which!r}."
        raise BaselineError(msg, remedy=f"{names} `edgebench baseline save RUN_DIR` makes one.")
    files = baseline_files(named)
    return files[0] if len(files) == 1 else find_baseline(named, describe_machine().fingerprint)


def _listed(
    found: Sequence[tuple[str, Side]],
    damaged: Sequence[tuple[str, EdgebenchError]],
    fingerprint: str,
) -> dict[str, object]:
    from edgebench.reports.comparing.baselines import fewest_and_most  # noqa: PLC0415

    return {
        "machine": fingerprint,
        "baselines": [
            {
                "path": path,
                "name": side.label,
                "fingerprint": side.machine.fingerprint,
                "this_machine": side.machine.fingerprint == fingerprint,
                "cpu_model": side.machine.cpu_model,
                "created_at": side.runs[-1].created_at,
                "commit": commit.sha if (commit := side.runs[-1].commit) else None,
                "runs": [run.id for run in side.runs],
                "cells": len(side.cells),
                "repetitions": dict(zip(("fewest", "most"), counts, strict=True))
                if (counts := fewest_and_most(side))
                else None,
            }
            for path, side in found
        ],
        "damaged": [{"path": path, "problem": str(error)} for path, error in damaged],
    }
