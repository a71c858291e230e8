"""Where baselines are kept, and how one is written, for the commands that make them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Side

DEFAULT_FOLDER = "baselines"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WIDTH = 9

folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="The folder of baselines.",
)


def checked_name(name: str) -> str:
    """A baseline's name, which a folder takes.

    Raises:
        UsageError: it is none.
    """
    if not _NAME.fullmatch(name):
        msg = f"a baseline's name can't be {name!r}"
        remedy = "It is letters, digits, '.', '_' and '-', a letter or digit first: --name NAME."
        raise UsageError(msg, remedy=remedy)
    return name


def save(side: Side, name: str, folder: Path, *, candidate: str) -> None:
    """Write a baseline and say where, of what, and what it replaced.

    Args:
        side: what was measured.
        name: as checked.
        folder: of all baselines.
        candidate: what may be compared with it, for the hint at the end.
    """
    from dataclasses import replace  # noqa: PLC0415

    from edgebench.harness.compare.baselines import (  # noqa: PLC0415
        SUFFIX,
        read_baseline,
        save_baseline,
    )
    from edgebench.harness.errors import BaselineError  # noqa: PLC0415
    from edgebench.harness.store.space import human_bytes  # noqa: PLC0415
    from edgebench.reports.comparing.baselines import moment, repetitions  # noqa: PLC0415
    from edgebench.reports.comparing.words import commit, machine  # noqa: PLC0415
    from edgebench.reports.text import one_line  # noqa: PLC0415

    path = folder / name / f"{side.machine.fingerprint}{SUFFIX}"
    old: Side | None = None
    if path.exists():
        try:
            old = read_baseline(path)
        except BaselineError as error:
            msg = f"{error.message}\nIt is not replaced."
            raise BaselineError(msg, remedy=f"Remove it first: {path}") from error
    save_baseline(replace(side, label=name), path)
    cells = len(side.cells)
    told = {
        "saved": f"{path} ({human_bytes(path.stat().st_size)})",
        "": f"{cells} {'cell' if cells == 1 else 'cells'}, repetitions: {repetitions(side)}",
        "machine": machine(side.machine),
    }
    if old is not None:
        newest = old.runs[-1]
        of = commit(newest.commit)
        told["replaced"] = f"the one of {moment(newest.created_at)}{f', commit {of}' if of else ''}"
    for head, text in told.items():
        click.echo(f"{head:<{_WIDTH}}{one_line(text)}")
    for note in side.notes:
        click.echo(f"{'note':<{_WIDTH}}{one_line(note)}")
    gate = f"edgebench gate --baseline {path.parent} --candidate {candidate}"
    click.echo(f"{'next':<{_WIDTH}}{gate}")
