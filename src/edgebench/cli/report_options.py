"""The options of every command that writes a report."""

from __future__ import annotations

import click

from edgebench.reports.languages import ENGLISH, LANGUAGES
from edgebench.reports.write import DEFAULT_FORMATS, FORMATS, checked_formats


def _formats(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """The parts of a list that is separated by commas; an unknown one is refused at once."""
    return checked_formats([part.strip() for part in value.split(",") if part.strip()])


format_option = click.option(
    "--format",
    "formats",
    callback=_formats,
    default=",".join(DEFAULT_FORMATS),
    show_default=True,
    metavar="A,B",
    help=f"Forms of the report: {', '.join(FORMATS)}.",
)

lang_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default=ENGLISH,
    show_default=True,
    help="Language of the report.",
)
