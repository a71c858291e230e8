"""``edgebench compare``: two runs, and what their difference is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.files import write_text
from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.quantities import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.harness.compare.model import Comparison

EPILOG = """\
BASELINE and CANDIDATE are run folders, folders that hold the runs of one scenario, or saved
baselines; a run that was interleaved (`edgebench run --against`) may stand alone. Exit status: 0
compared, whatever came of it; 2 the command line is wrong, or the candidate can't be read; 5 the
baseline is missing, or the two don't compare.
"""

_MOST_NAMED = 8


def _share(least: float, most: float) -> Callable[[click.Context, click.Parameter, str], float]:
    """A callback that reads ``5%`` or ``0.05``."""

    def read(_: click.Context, __: click.Parameter, value: str) -> float:
        found = share(value)
        if found is None:
            try:
                found = float(value)
            except ValueError:
                found = None
        if found is None or not least <= found <= most:
            msg = (
                f"{value!r} is no share from {100 * least:g}% to {100 * most:g}%; write 5% or 0.05"
            )
            raise click.BadParameter(msg)
        return found

    return read


@click.command(epilog=EPILOG)
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", required=False, type=click.Path(path_type=Path))
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATTERN",
    help="Only these metrics, such as 'itl_*'; by default those that people choose by.",
)
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="PATTERN",
    help="Only these cells, such as 'llama.cpp* / chat'.",
)
@click.option(
    "--across-machines", is_flag=True, help="Compare results of different machines, labelled so."
)
@click.option(
    "--confidence",
    callback=_share(least=0.5, most=0.9999),
    default="95%",
    show_default=True,
    metavar="SHARE",
    help="How certain better and worse are, over all cells and metrics together.",
)
@click.option(
    "--margin",
    callback=_share(least=0.0, most=1.0),
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="Up to which a change counts as the same.",
)
@click.option(
    "--noise-floor",
    callback=_share(least=0.0, most=1.0),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="How much two runs of the same thing may differ that were not interleaved.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it as Markdown too.",
)
def compare(
    baseline: Path,
    candidate: Path | None,
    metrics: tuple[str, ...],
    cells: tuple[str, ...],
    across_machines: bool,  # noqa: FBT001 - click's own way
    confidence: float,
    margin: float,
    noise_floor: float,
    as_json: bool,  # noqa: FBT001
    markdown: Path | None,
) -> None:
    """Compare CANDIDATE with BASELINE: better, worse, the same, or can't tell."""
    # Late: reading and deciding need libraries that --help does not.
    from edgebench.harness.compare import compare as comparing  # noqa: PLC0415
    from edgebench.harness.compare.matching import match  # noqa: PLC0415
    from edgebench.harness.compare.partner import interleaved_pair  # noqa: PLC0415
    from edgebench.harness.compare.sides import read_baseline_side, read_side  # noqa: PLC0415
    from edgebench.harness.compare.wanted import by_patterns  # noqa: PLC0415

    if candidate is None:
        baseline, candidate = interleaved_pair(baseline)
    theirs = read_side([candidate])
    fingerprint = theirs.machine.fingerprint
    mine = read_baseline_side([baseline], fingerprint=fingerprint, across_machines=across_machines)
    matched = match(mine, theirs, across_machines=across_machines)
    found = comparing.compare(
        matched,
        confidence=confidence,
        margin=margin,
        noise_floor=noise_floor,
        wanted=by_patterns(cells, metrics),
    )
    _refuse_nothing(found, metrics, cells)
    if markdown is not None:
        from edgebench.reports.comparing.markdown import comparison_markdown  # noqa: PLC0415

        write_text(markdown, comparison_markdown(found))
    if as_json:
        from edgebench.reports.comparing.as_json import comparison_json  # noqa: PLC0415

        click.echo(json.dumps(comparison_json(found), indent=2, allow_nan=False))
        return
    from edgebench.reports.comparing.terminal import comparison_text  # noqa: PLC0415

    click.echo(comparison_text(found))


def _refuse_nothing(found: Comparison, metrics: tuple[str, ...], cells: tuple[str, ...]) -> None:
    """Raise where patterns leave nothing, which a script would take for no difference."""
    if found.rows or not (metrics or cells):
        return
    from edgebench.harness.metrics.definitions import metric  # noqa: PLC0415
    from edgebench.reports.text import one_line  # noqa: PLC0415

    names = [one_line(pair.name) for pair in found.matched.pairs]
    more = f"; and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    both = [side for pair in found.matched.pairs for side in (pair.candidate, pair.baseline)]
    keys = sorted({key for cell in both for key in cell.metrics if metric(key).better})
    msg = "no cell and metric that both patterns ask about has a value"
    remedy = (
        f"Cells: {'; '.join(names[:_MOST_NAMED])}{more}.\n"
        f"Metrics: {', '.join(map(one_line, keys))}."
    )
    raise UsageError(msg, remedy=remedy)
