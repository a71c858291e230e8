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
    from collections.abc import Callable, Sequence

    from edgebench.harness.compare.model import Comparison

EPILOG = """\
BASELINE and CANDIDATE are run folders, folders that hold the runs of one scenario, or saved
baselines; a run that was interleaved (`edgebench run --against`) may stand alone. Several runs of
one side are named by --baseline and --candidate, each once for each run. Exit status: 0
compared, whatever came of it; 2 the command line is wrong, or the candidate can't be read; 5 the
baseline is missing, or the two don't compare.
"""

_MOST_NAMED = 8
_SIDES = 2


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


def _confidence(context: click.Context, parameter: click.Parameter, value: str) -> float:
    from edgebench.harness.compare.decide import MOST_CONFIDENCE  # noqa: PLC0415

    certain = share(value)
    if certain is not None and MOST_CONFIDENCE < certain < 1:
        msg = (
            f"{value!r} is more than {100 * MOST_CONFIDENCE:g}%, and so rare a chance can't be "
            "told from as many random draws as are made"
        )
        raise click.BadParameter(msg)
    return _share(least=0.5, most=MOST_CONFIDENCE)(context, parameter, value)


@click.command(epilog=EPILOG)
@click.argument(
    "sides", nargs=-1, metavar="[BASELINE] [CANDIDATE]", type=click.Path(path_type=Path)
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A run of the baseline, in place of BASELINE. May be repeated.",
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A run of the candidate, in place of CANDIDATE. May be repeated.",
)
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
    callback=_confidence,
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
    callback=_share(least=0.0, most=0.499),
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
    sides: tuple[Path, ...],
    baselines: tuple[Path, ...],
    candidates: tuple[Path, ...],
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
    from edgebench.harness.compare.sides import read_baseline_side, read_side  # noqa: PLC0415
    from edgebench.harness.compare.wanted import by_patterns  # noqa: PLC0415

    before, after = _two(sides, baselines, candidates)
    theirs = read_side(after)
    fingerprint = theirs.machine.fingerprint
    mine = read_baseline_side(before, fingerprint=fingerprint, across_machines=across_machines)
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


def _two(
    sides: Sequence[Path], baselines: Sequence[Path], candidates: Sequence[Path]
) -> tuple[Sequence[Path], Sequence[Path]]:
    """The baseline's paths and the candidate's, in whichever way they were named."""
    if not baselines and not candidates:
        if len(sides) == 1:
            from edgebench.harness.compare.partner import interleaved_pair  # noqa: PLC0415

            baseline, candidate = interleaved_pair(sides[0])
            return [baseline], [candidate]
        if len(sides) == _SIDES:
            return sides[:1], sides[1:]
    elif baselines and candidates and not sides:
        return baselines, candidates
    how = (
        "Name two, the baseline first, or one that was interleaved. Of several runs on a side: "
        "--baseline PATH for each of one and --candidate PATH for each of the other; or the folder "
        "that holds them."
    )
    if not baselines and not candidates:
        named = f"{len(sides)} were named" if sides else "none was named"
        glob = ", as where the shell puts all that match in place of a pattern" if sides else ""
        msg = f"two things are compared, and {named}{glob}"
    elif sides:
        msg = f"{sides[0]} is neither --baseline nor --candidate, which name all that is compared"
    else:
        there, lacking = (
            ("--baseline", "--candidate") if baselines else ("--candidate", "--baseline")
        )
        msg = f"there is {there} without {lacking}"
    raise UsageError(msg, remedy=how)


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
