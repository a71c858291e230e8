"""``edgebench import``: a baseline of another tool's results."""

from __future__ import annotations

import re
from pathlib import Path

import click

from edgebench.cli.baseline_options import checked_name, folder_option, save

EPILOG = """\
Of a file that edgebench exported the cells come back. Of any other each benchmark is a cell: its
name on its group, or on its module where it has none, with the metric duration_s.
"""


@click.command("import", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["pytest-benchmark"]),
    required=True,
    help="Whose format.",
)
@click.option("--name", metavar="NAME", help="The baseline's name; the project's by default.")
@folder_option
def import_results(file: Path, form: str, name: str | None, folder: Path) -> None:
    """Make a baseline of FILE, which another tool wrote."""
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.compare.pytest_benchmark import (  # noqa: PLC0415
        WITHOUT_DATA,
        read_pytest_benchmark,
    )
    from edgebench.harness.errors import BaselineError  # noqa: PLC0415

    assert form == "pytest-benchmark"
    if name is not None:
        checked_name(name)
    side = read_pytest_benchmark(file)
    if not any(each.values for cell in side.cells.values() for each in cell.metrics.values()):
        msg = f"Nothing could be compared with {file}: {WITHOUT_DATA}."
        raise BaselineError(msg)
    known = re.sub(r"[^A-Za-z0-9._-]+", "-", side.runs[-1].scenario_name).strip("-._")
    save(side, checked_name(name or known or form), folder, candidate="FILE")
