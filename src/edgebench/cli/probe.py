"""``edgebench probe``: what this machine can do, measured."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import click

from edgebench.harness.errors import EdgebenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.devices.bandwidth import Bandwidth
    from edgebench.harness.results.device import BandwidthRecord

MOST_THREADS = 1024
MOST_SECONDS = 600.0
GIGA = 1e9
MIB = 1 << 20


@click.group()
def probe() -> None:
    """Measure this machine: how fast its memory is read.

    `edgebench devices probe` makes a profile of a machine of it.
    """


@probe.command()
@click.option(
    "--threads",
    metavar="N[,N...]",
    help="How many threads read at once; 1 and all CPUs that may be used by default.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=MOST_SECONDS),
    default=2.0,
    show_default=True,
    help="How long to read with each number of threads.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def bandwidth(threads: str | None, seconds: float, as_json: bool) -> None:  # noqa: FBT001
    """Measure how fast memory is read, by as many threads as a runner uses.

    Runs on this machine hold their decode rates against it for a week; then, or where it was
    never measured, they measure it themselves. See docs/bandwidth.md.
    """
    from edgebench.devices import bandwidth as memory  # noqa: PLC0415
    from edgebench.devices.machine import describe_machine  # noqa: PLC0415
    from edgebench.harness.bandwidth import measure_bandwidth  # noqa: PLC0415

    machine = describe_machine()
    cpus = len(machine.affinity) or machine.logical_cpus
    records: list[BandwidthRecord] = []
    failures: list[tuple[int, str]] = []

    def read(count: int) -> Bandwidth:
        return memory.measure_bandwidth(count, seconds=seconds)

    if math.isnan(seconds):
        msg = "--seconds: not a number"
        raise UsageError(msg, remedy="Name a time in seconds, such as --seconds 2.")
    for count in _threads(threads, cpus):
        found = measure_bandwidth(count, machine.fingerprint, read=read)
        if isinstance(found, str):
            failures.append((count, found))
        else:
            records.append(found)
    if as_json:
        click.echo(json.dumps(_as_json(records, failures), indent=2))
    else:
        _show(records, machine.cpu_model, cpus)
        for count, reason in failures:
            click.echo(f"{_with(count)}: not measured, for {reason}", err=True)
    if not records:
        msg = "the bandwidth of this machine's memory could not be measured"
        raise EdgebenchError(msg, remedy="Close what takes the memory, and try again.")


def _threads(text: str | None, cpus: int) -> list[int]:
    """The numbers that were asked for, each once.

    Raises:
        UsageError: one of them is none.
    """
    if text is None:
        return sorted({1, cpus})
    found: dict[int, None] = {}
    for part in text.split(","):
        number = part.strip()
        if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_THREADS):
            msg = f"--threads {text}: {number or 'nothing'} is no number from 1 to {MOST_THREADS}"
            raise UsageError(msg, remedy="Name one number, or several as in --threads 1,2,4.")
        found[int(number)] = None
    return list(found)


def _show(records: Sequence[BandwidthRecord], cpu_model: str, cpus: int) -> None:
    import textwrap  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from edgebench.reports.text import one_line  # noqa: PLC0415

    if not records:
        return
    click.echo(f"Memory read on {one_line(cpu_model)}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("threads", "GB/s", "95 % interval", "fastest", "repetitions"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("read by", no_wrap=True)
    for each in records:
        table.add_row(
            str(each.threads),
            _gigabytes(each.bytes_per_s),
            "-"
            if each.ci_low is None or each.ci_high is None
            else f"{_gigabytes(each.ci_low)} to {_gigabytes(each.ci_high)}",
            _gigabytes(max(each.samples)),
            str(len(each.samples)),
            one_line(each.reader) + (" (disturbed)" if each.disturbed else ""),
        )
    Console().print(table)
    for paragraph in _said(records, cpus):
        click.echo()
        click.echo(textwrap.fill(paragraph, 80))


def _said(records: Sequence[BandwidthRecord], cpus: int) -> list[str]:
    best = max(records, key=lambda each: (not each.disturbed, each.bytes_per_s))
    size = f"{best.array_bytes / MIB:.0f} MiB"
    caches = "whatever caches there are, of which this system does not tell"
    if best.cache_bytes:
        times = math.floor(10 * best.array_bytes / best.cache_bytes) / 10
        caches = (
            f"{times:g} times its last-level caches ({best.cache_bytes / MIB:.0f} MiB), so that "
            "they don't serve it"
        )
    said = [f"Medians of repetitions that read {size} each: {caches}."]
    if not best.disturbed:
        said.append(
            "Decoding a token reads all weights. So a model of 1 GB can't be decoded faster than "
            f"{max(best.samples) / GIGA:.1f} tokens/s here, with {_with(best.threads)}: that is "
            "the fastest repetition. The share of the median that it reaches is the MBU of reports."
        )
    disturbed = [each for each in records if each.disturbed]
    kept = [each for each in records if not each.disturbed]
    if disturbed:
        said.append(
            f"Disturbed, {_with_each(disturbed)}: other processes took the CPUs meanwhile. The "
            "memory is faster than that, so nothing is held against it, and it is not kept. "
            "`edgebench doctor` names them."
        )
    if any(each.threads > cpus for each in records):
        said.append(f"More threads than CPUs that may be used here, {cpus}, take turns.")
    if kept:
        which = f": what was read {_with_each(kept)}" if disturbed else ""
        said.append(f"Kept for runs on this machine, for a week{which}.")
    return said


def _with_each(records: Sequence[BandwidthRecord]) -> str:
    counts = [_with(each.threads) for each in records]
    return f"with {' and '.join(counts)}"


def _with(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _gigabytes(value: float) -> str:
    return f"{value / GIGA:.1f}"


def _as_json(
    records: Sequence[BandwidthRecord], failures: Sequence[tuple[int, str]]
) -> list[dict[str, object]]:
    measured = [each.model_dump(mode="json") for each in records]
    return measured + [
        {"threads": count, "bytes_per_s": None, "reason": reason} for count, reason in failures
    ]
