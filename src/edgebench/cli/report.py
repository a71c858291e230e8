"""``edgebench report``: write the reports of finished runs again, or one report of several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.report_options import format_option, lang_option, predict_option
from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.predict.device import DeviceFacts

EPILOG = """\
Several runs make one report: of other machines, dates or versions, side by side. Runs whose
figures do not compare (another model, another prompt under the same name, a quick look) are
refused; --each reports on each by itself.
"""


@click.command(epilog=EPILOG)
@click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(file_okay=False, path_type=Path),
)
@format_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to write; the run's own folder by default, of several ./combined-report.",
)
@lang_option
@predict_option
@click.option("--each", is_flag=True, help="A report of each run by itself, in its own folder.")
def report(
    run_dirs: tuple[Path, ...],
    formats: Sequence[str],
    out: Path | None,
    lang: str,
    predict: tuple[DeviceFacts, ...],
    each: bool,  # noqa: FBT001 - click's own way
) -> None:
    """Write the report of RUN_DIR from its trials; of several, one report that combines them."""
    from edgebench.reports.write import write_reports  # noqa: PLC0415 - plots are slow to import

    if each and out is not None:
        msg = "--each writes into each run's own folder"
        raise UsageError(msg, remedy="Leave out --out or --each.")
    groups = [(folder,) for folder in run_dirs] if each else [run_dirs]
    for group in groups:
        for path in write_reports(*group, out=out, formats=formats, language=lang, predict=predict):
            click.echo(path)
