"""``edgebench report``: write the reports of finished runs again."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(file_okay=False, path_type=Path),
)
def report(run_dirs: tuple[Path, ...]) -> None:
    """Write report.md and report.html of each RUN_DIR from its trials."""
    from edgebench.reports.write import write_reports  # noqa: PLC0415 - plots are slow to import

    for folder in run_dirs:
        for path in write_reports(folder):
            click.echo(path)
