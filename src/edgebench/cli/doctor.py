"""``edgebench doctor``: what will spoil a measurement here, and how to fix it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgebench.cli.ssh_options import board_at, refuse_python, ssh_options
from edgebench.devices.doctor import examine
from edgebench.reports.text import one_line

STYLES = {"good": ("✓", "green"), "note": ("–", "yellow"), "problem": ("✗", "red")}


@click.command()
@ssh_options
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(
    ssh: str | None,
    python: str | None,
    as_json: bool,  # noqa: FBT001 - click's own way
) -> None:
    """Look for what will spoil a measurement on this machine, and say how to fix it.

    With --ssh, on another one.
    """
    refuse_python(ssh, python)
    if ssh is None:
        checks = examine()
    else:
        with board_at(ssh, python) as board:
            checks = board.doctor()
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], indent=2))
        return
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark, style = STYLES[check.status]
        text = Text(one_line(check.finding))
        if check.remedy:
            text.append(f"\n{one_line(check.remedy)}", style="bold")
        table.add_row(Text(mark, style=style), Text(check.name), text)
    Console().print(table)
    problems = sum(check.status == "problem" for check in checks)
    click.echo(
        "Nothing here will spoil a measurement."
        if not problems
        else f"{problems} of {len(checks)} will spoil a measurement."
    )
