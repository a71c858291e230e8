"""``edgebench history``: how results changed over time, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from edgebench.harness.history.findings import Findings
    from edgebench.harness.history.index import Contents, Index
    from edgebench.harness.history.model import Selection, Series

METRICS = (
    "decode_rate",
    "ttft_s",
    "prefill_rate",
    "sustained_rate",
    "peak_rss_bytes",
    "perplexity",
)
"""What is shown where no metric is asked for."""

EPILOG = """\
Runs are of one series where machine, model, variant with its options, and workload are the same;
engines and commits may change along it. Shown are steps that are certain (one false alarm in 100
histories at most) and slow drift. Quick looks and unfinished runs are left out.
"""


@click.command(epilog=EPILOG)
@click.argument(
    "results", default=Path("results"), type=click.Path(path_type=Path), metavar="[RESULTS]"
)
@click.option("--metric", "metrics", multiple=True, metavar="KEY", help="May be repeated; or all.")
@click.option("--variant", metavar="PATTERN", help="Part of its name, or a pattern with * and ?.")
@click.option("--workload", metavar="PATTERN", help="The same of the workload.")
@click.option("--scenario", metavar="NAME", help="Of this scenario only.")
@click.option(
    "--machine",
    default="all",
    show_default=True,
    metavar="FINGERPRINT|this|all",
    help="Of which machine; the beginning of a fingerprint is enough.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="DATE",
    help="Only runs from this day on (UTC).",
)
@click.option("--branch", metavar="NAME", help="Only runs of commits on this branch.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with a plot of every series.",
)
@click.option("--rebuild", is_flag=True, help="Read all records again.")
def history(
    results: Path,
    metrics: tuple[str, ...],
    variant: str | None,
    workload: str | None,
    scenario: str | None,
    machine: str,
    since: datetime | None,
    branch: str | None,
    html: Path | None,
    *,
    as_json: bool,
    rebuild: bool,
) -> None:
    """Show how the results below RESULTS changed over time, and between which commits."""
    # Imported late: `edgebench --help` needs none of it.
    from datetime import UTC  # noqa: PLC0415

    from edgebench.harness.history.index import Index  # noqa: PLC0415
    from edgebench.harness.history.model import Selection  # noqa: PLC0415

    selection = Selection(
        metrics=() if "all" in metrics else metrics or METRICS,
        variant=variant,
        workload=workload,
        scenario=scenario,
        machine=_fingerprint(machine),
        since=since.replace(tzinfo=UTC) if since else None,
        branch=branch,
    )
    with Index(results, rebuild=rebuild) as index:
        contents = index.update()
        series = index.series(selection)
        if not series:
            raise _nothing(index, contents, selection)
    found = _findings(series)
    if html is not None:
        _write_page(html, found)
    if as_json:
        from edgebench.reports.history_json import history_json  # noqa: PLC0415

        click.echo(json.dumps(history_json(contents, found), indent=2, ensure_ascii=False))
        return
    from edgebench.reports.history_terminal import head, one_series, overview  # noqa: PLC0415

    for line in head(contents):
        click.echo(line)
    for line in one_series(*found[0]) if len(found) == 1 else overview(found):
        click.echo(line)
    if html is not None:
        click.echo(f"\npage  {html}")


def _findings(series: Sequence[Series]) -> list[tuple[Series, Findings]]:
    from edgebench.harness.history.changes import find  # noqa: PLC0415

    return [(each, find(each.medians, family=len(series))) for each in series]


def _fingerprint(machine: str) -> str | None:
    if machine == "all":
        return None
    if machine != "this":
        return machine
    from edgebench.devices.machine import describe_machine  # noqa: PLC0415

    return describe_machine().fingerprint


def _nothing(index: Index, contents: Contents, selection: Selection) -> UsageError:
    """Why there is nothing to show."""
    unknown = sorted(set(selection.metrics) - set(index.metrics()))
    if not contents.runs:
        left = ", ".join(f"{count} x {why}" for why, count in contents.left_out.items())
        skipped = f"{len(contents.skipped)} unreadable" if contents.skipped else ""
        why = "; ".join(filter(None, (left, skipped)))
        return UsageError(
            f"{index.results} holds no finished run{f' ({why})' if why else ''}.",
            remedy="Name the folder that `edgebench run` writes to: its --out, or results.",
        )
    if selection.metrics and len(unknown) == len(set(selection.metrics)):
        return UsageError(
            f"No run below {index.results} has a value of {', '.join(unknown)}.",
            remedy=f"There are: {', '.join(sorted(index.metrics()))}.",
        )
    return UsageError(
        f"No series of the {contents.runs} runs below {index.results} is selected.",
        remedy="Leave out one of --metric, --variant, --workload, --scenario, --machine, --since "
        "and --branch.",
    )


def _write_page(file: Path, found: Sequence[tuple[Series, Findings]]) -> None:
    from edgebench.harness.errors import OutputError  # noqa: PLC0415
    from edgebench.harness.results.writer import write_atomically  # noqa: PLC0415
    from edgebench.reports.history_page import history_page  # noqa: PLC0415

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{file.parent} can't be made ({error.strerror or error})."
        raise OutputError(msg, remedy="Name another file by --html.") from error
    write_atomically(file, history_page(found).encode())
