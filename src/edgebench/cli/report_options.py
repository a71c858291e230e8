"""The options of every command that writes a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from edgebench.reports.languages import ENGLISH, LANGUAGES
from edgebench.reports.write import DEFAULT_FORMATS, FORMATS, checked_formats

if TYPE_CHECKING:
    from edgebench.harness.predict.device import DeviceFacts


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


def _devices(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> tuple[DeviceFacts, ...]:
    """What the profiles of devices say; an unknown one is refused at once."""
    if not value:
        return ()
    from edgebench.harness.device_profiles import find_profile  # noqa: PLC0415 - seldom asked for
    from edgebench.harness.predict.device import facts_of  # noqa: PLC0415

    return tuple(facts_of(find_profile(each)) for each in dict.fromkeys(value))


predict_option = click.option(
    "--predict",
    multiple=True,
    callback=_devices,
    metavar="NAME|FILE",
    help="Add a device that is not at hand to the table of platforms, predicted from its profile. "
    "May be repeated.",
)

lang_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default=ENGLISH,
    show_default=True,
    help="Language of the report.",
)
