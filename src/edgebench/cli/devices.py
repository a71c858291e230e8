"""``edgebench devices``: what is known of devices, and from where."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from edgebench.harness.device_profiles import DeviceProfile
    from edgebench.harness.results.device import BandwidthRecord

_LAST = "–: nobody publishes it; `edgebench devices show NAME` has reasons and sources."


@click.group()
def devices() -> None:
    """List, show or probe device profiles.

    A profile says what is known of a device: its cores, memory, bandwidth, power and storage, each
    figure with its source. `device: {profile: NAME}` in a scenario names one.
    """


@devices.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print all profiles as JSON.")
def list_(as_json: bool) -> None:  # noqa: FBT001 - click's own way
    """List the profiles that edgebench ships."""
    # Imported late: `edgebench --help` needs no models.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from edgebench.harness.device_profiles import list_profiles  # noqa: PLC0415
    from edgebench.harness.device_profiles.figures import GIB  # noqa: PLC0415
    from edgebench.harness.device_profiles.listing import UNKNOWN, amount  # noqa: PLC0415
    from edgebench.harness.device_profiles.written import as_json as to_json  # noqa: PLC0415

    profiles = list_profiles()
    if as_json:
        click.echo(json.dumps([to_json(each) for each in profiles], indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("SoC", overflow="fold")
    for heading in ("RAM, GiB", "GB/s", "W"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in profiles:
        bandwidth = each.memory.bandwidth_bytes_per_s.value
        ram = each.ram_bytes
        sizes = ram.choices or ([] if ram.value is None else [ram.value])
        cells = [
            each.key,
            UNKNOWN if each.soc.value is None else amount(each.soc),
            "–".join(f"{size / GIB:g}" for size in dict.fromkeys((min(sizes), max(sizes))))
            if sizes
            else UNKNOWN,
            UNKNOWN if bandwidth is None else f"{bandwidth / 1e9:.4g}",
            _power(each),
        ]
        table.add_row(*map(Text, cells))
    _print_table(table, Console())
    click.echo("W: TDP, or else the sustained or the peak power; of boards the whole board's.")
    click.echo(_LAST)


@devices.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(name: str, as_json: bool) -> None:  # noqa: FBT001 - click's own way
    """Show all figures of a profile with their sources.

    NAME is one of `edgebench devices list`, with the size of its memory after a colon where there
    are several (raspberry-pi-5:4GiB); or the path of a file.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from edgebench.harness.device_profiles import find_profile  # noqa: PLC0415
    from edgebench.harness.device_profiles.listing import lines  # noqa: PLC0415
    from edgebench.harness.device_profiles.written import as_json as to_json  # noqa: PLC0415
    from edgebench.reports.text import one_line  # noqa: PLC0415

    profile = find_profile(name)
    if as_json:
        click.echo(json.dumps(to_json(profile), indent=2))
        return
    click.echo(f"{one_line(profile.name)} ({one_line(profile.key)}, {profile.kind})\n")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=24)
    table.add_column(overflow="fold", style="dim")
    for line in lines(profile):
        why = f"{line.basis}: {line.why}" if line.basis else line.why
        table.add_row(Text(line.name), Text(one_line(line.value)), Text(one_line(why)))
    console = Console(highlight=False)
    _print_table(table, console)
    for note in profile.notes:
        click.echo(f"\n{textwrap.fill(one_line(note), console.width)}")


@devices.command()
@click.option("--key", metavar="NAME", help="Its name, in place of one made of the processor's.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to a file instead."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def probe(key: str | None, out: Path | None, force: bool) -> None:  # noqa: FBT001 - click's own way
    """Fill a profile from this machine itself, and print it.

    What the machine does not tell is null with the reason: add it by hand, with its source. The
    memory's bandwidth is what `edgebench probe bandwidth` measured here.
    """
    from edgebench.cli.files import write_text  # noqa: PLC0415
    from edgebench.harness.device_profiles.probe import probe_profile  # noqa: PLC0415
    from edgebench.harness.device_profiles.written import as_yaml  # noqa: PLC0415
    from edgebench.harness.errors import UsageError  # noqa: PLC0415

    if key is not None:
        _refuse_wrong_key(key)
    if out is not None and out.exists() and not force:
        msg = f"{out} is there already, and may have been written by hand"
        raise UsageError(msg, remedy="Name another file, or give --force to write over it.")
    text = as_yaml(probe_profile(_measured_bandwidth(), key=key))
    if out is None:
        click.echo(text, nl=False)
        return
    write_text(out, text)
    click.echo(f"profile  {out}")


def _print_table(table: Table, console: Console) -> None:
    """Without the blanks that fill a table's lines, which wrap on a narrow terminal."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _measured_bandwidth() -> BandwidthRecord | None:
    """The most that was measured on this machine, with however many threads; if anything was."""
    from edgebench.devices.machine import describe_machine  # noqa: PLC0415
    from edgebench.harness.bandwidth import stored_bandwidth  # noqa: PLC0415

    return stored_bandwidth(describe_machine().fingerprint)


def _refuse_wrong_key(key: str) -> None:
    import re  # noqa: PLC0415

    from edgebench.harness.device_profiles import builtin_profiles  # noqa: PLC0415
    from edgebench.harness.errors import UsageError  # noqa: PLC0415
    from edgebench.harness.scenario.values import PATTERN_WORDS, SLUG  # noqa: PLC0415

    if not re.fullmatch(SLUG, key):
        msg = f"--key {PATTERN_WORDS[SLUG]}"
        raise UsageError(msg, remedy="Such as my-board.")
    if key in builtin_profiles():
        msg = f"--key {key} is the name of a profile that edgebench ships"
        raise UsageError(msg, remedy="Take another one, such as my-board.")


def _power(profile: DeviceProfile) -> str:
    limits = profile.power
    for figure in (limits.tdp_w, limits.sustained_w, limits.peak_w):
        if figure.value is not None:
            return f"{figure.value:g}"
    return "–"
