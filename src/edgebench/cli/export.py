"""``edgebench export``: results in another tool's format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

EPILOG = """\
pytest-benchmark's numbers are seconds, so times are exported and nothing else, each cell and time
as one benchmark. `pytest-benchmark compare A.json B.json` reads the files.
"""


@click.command(epilog=EPILOG)
@click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(path_type=Path),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["pytest-benchmark"]),
    required=True,
    help="Whose format.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATTERN",
    help="Times to export, such as 'ttft_s' or 'itl_*'; several times. All by default.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write; standard output by default.",
)
def export(run_dirs: tuple[Path, ...], form: str, metrics: Sequence[str], out: Path | None) -> None:
    """Write what RUN_DIR measured in another tool's format.

    RUN_DIR may be a saved baseline too. Several are one, as for a baseline.
    """
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.compare.baseline_format import written  # noqa: PLC0415
    from edgebench.harness.compare.pytest_benchmark import (  # noqa: PLC0415
        export_pytest_benchmark,
    )
    from edgebench.harness.compare.sides import read_side  # noqa: PLC0415
    from edgebench.harness.results.writer import write_atomically  # noqa: PLC0415

    assert form == "pytest-benchmark"
    data = written(export_pytest_benchmark(read_side(run_dirs), metrics))
    if out is None:
        click.echo(data, nl=False)
    else:
        write_atomically(out, data)
        click.echo(out)
