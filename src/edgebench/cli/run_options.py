"""The options of every command that measures a scenario."""

from __future__ import annotations

from pathlib import Path

import click


def _names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The parts of a list that is separated by commas."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


out_option = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for results.",
)

runners_option = click.option(
    "--runners", callback=_names, metavar="A,B", help="Only these frameworks."
)

workloads_option = click.option(
    "--workloads", callback=_names, metavar="A,B", help="Only these workloads."
)

time_budget_option = click.option(
    "--time-budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Most time to measure, in place of the scenario's.",
)
