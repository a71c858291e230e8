"""How predictions are shown on the terminal, and as JSON."""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import asdict
from math import floor, log10
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgebench.harness.predict.estimate import PREDICTED, tokens_in_words
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgebench.harness.predict.estimate import Estimate
    from edgebench.harness.predict.memory import MemoryWall
    from edgebench.harness.predict.predict import Prediction

SCHEMA_VERSION: Final = 1
"""Of what ``--json`` prints. 1: the first."""

WIDTH: Final = 80
"""No line is longer, where the terminal is not narrower still."""
NARROWEST: Final = 30

HEADLINE: Final = "Predicted, not measured."
DASH: Final = "–"


def as_document(predictions: Sequence[Prediction]) -> dict[str, object]:
    """What scripts get; sizes in bytes, rates in tokens/s, times in seconds."""
    return {
        "schema_version": SCHEMA_VERSION,
        "source": PREDICTED,
        "predictions": [
            {
                **asdict(each),
                "memory": {
                    **asdict(each.memory),
                    "needed": each.memory.needed,
                    "available": each.memory.available,
                    "spare": each.memory.spare,
                },
            }
            for each in predictions
        ],
    }


def show(predictions: Sequence[Prediction]) -> None:
    """Print one in full, several as a table; with all that they assume."""
    click.echo(HEADLINE)
    if len(predictions) == 1:
        for line in _in_full(predictions[0]):
            click.echo(line)
    else:
        first = predictions[0]
        said = (
            f"{one_line(first.model)} on the {first.processor.upper()}, "
            f"{tokens_in_words(first.context)} of context, a prompt of {first.prompt}"
        )
        for line in textwrap.wrap(said, _width()):
            click.echo(line)
        _show_table(predictions)
        for line in _reasons(predictions):
            click.echo(line)
    click.echo("\nAssumptions")
    for line in _assumptions(predictions):
        click.echo(line)


def number(value: float) -> str:
    """Two digits that count, and no more: a prediction has no more to say."""
    if value <= 0:
        return "0"
    rounded = round(value, 1 - floor(log10(value)))
    # Rounding up may have made it a digit longer.
    return f"{rounded:.{max(0, 1 - floor(log10(rounded)))}f}"


def span(estimate: Estimate) -> str:
    """A range; one number where both ends are the same; a dash where there is none."""
    if estimate.low is None or estimate.high is None:
        return DASH
    low, high = number(estimate.low), number(estimate.high)
    return low if low == high else f"{low} to {high}"


def _gib(nbytes: float) -> str:
    return f"{nbytes / 2**30:.2f} GiB"


def _verdict(wall: MemoryWall) -> str:
    if wall.fits is None or wall.spare is None:
        return "not known"
    if wall.fits:
        return f"fits, {_gib(wall.spare)} to spare"
    return f"does not fit: {_gib(-wall.spare)} too little"


def _in_full(found: Prediction) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{one_line(found.model)}, {one_line(found.quantization)} ({found.runner}), on "
        f"{one_line(found.device_name)} ({found.processor.upper()}), "
        f"{tokens_in_words(found.context)} of context, a prompt of {found.prompt}",
        _width(),
    )
    wall = found.memory
    yield f"\nMemory: {_verdict(wall)}"
    for what, nbytes in (
        ("weights", wall.weights),
        ("KV cache", wall.kv_cache),
        ("activations", wall.activations),
        ("process", wall.runtime),
        ("needed", wall.needed),
    ):
        yield f"  {what:<18}{_gib(nbytes):>12}"
    if wall.available is None or wall.ram is None:
        yield f"  available        {DASH}"
        yield from _wrapped(f"the device's memory is not known: {wall.reason}", "    ")
    else:
        available = f"  {'available':<18}{_gib(wall.available):>12}"
        of = f"of {_gib(wall.ram)}; others take {_gib(wall.reserved)}"
        if len(available) + 2 + len(of) <= _width():
            yield f"{available}  {of}"
        else:
            yield available
            yield from _wrapped(of, "    ")
    # The names alone would fill a narrow terminal.
    first = 34 if _width() == WIDTH else 1 + len("time to first token, s")
    yield f"\n{'Speed':<{first + 2}}{'at most':>10}   expected"
    reasons: list[str] = []
    hot = (("decode once hot, tokens/s", None, found.sustained_decode_rate),)
    rows: tuple[tuple[str, Estimate | None, Estimate], ...] = (
        ("decode, tokens/s", found.decode_bound, found.decode_rate),
        # Of a device that may always draw its TDP, or that nobody says it of, it is nothing new.
        *(hot if found.sustained_decode_rate != found.decode_rate and hot[0][2].low else ()),
        ("prefill, tokens/s", found.prefill_bound, found.prefill_rate),
        ("time to first token, s", None, found.ttft),
        ("energy, J/token", None, found.energy_per_token),
    )
    for what, bound, expected in rows:
        most = span(bound) if bound else ""
        marks = []
        for reason in filter(None, dict.fromkeys((bound.reason if bound else "", expected.reason))):
            if reason not in reasons:
                reasons.append(reason)
            marks.append(f" ({reasons.index(reason) + 1})")
        line = f"  {what:<{first}}{most:>10}   {span(expected)}{''.join(marks)}"
        yield line.rstrip()
    for place, reason in enumerate(reasons, 1):
        yield from _wrapped(reason, f"  ({place}) ")


def _width() -> int:
    return max(NARROWEST, min(WIDTH, shutil.get_terminal_size().columns))


def _show_table(predictions: Sequence[Prediction]) -> None:
    """A table where there is room for all of it, else a paragraph for each prediction."""
    table, console = _table(predictions), Console()
    if console.measure(table, options=console.options.update(max_width=1000)).maximum <= (
        console.width
    ):
        with console.capture() as captured:
            console.print(table)
        for line in captured.get().splitlines():
            click.echo(line.rstrip())
        return
    for each in predictions:
        click.echo(f"\n{_name(each)}")
        for line in _in_words(each):
            for part in _wrapped(line, "  "):
                click.echo(part)


def _in_words(each: Prediction) -> Iterator[str]:
    wall = each.memory
    yield f"memory: needs {_gib(wall.needed)}, {_verdict(wall)}"
    yield f"decode: {span(each.decode_rate)} tokens/s, at most {span(each.decode_bound)}"
    yield f"prefill: {span(each.prefill_rate)} tokens/s"
    yield f"time to first token: {span(each.ttft)} s"
    yield f"energy: {span(each.energy_per_token)} J/token"


def _table(predictions: Sequence[Prediction]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("device", no_wrap=True)
    table.add_column("format", no_wrap=True)
    table.add_column("needs\nGiB", justify="right", no_wrap=True)
    table.add_column("fits", justify="left", no_wrap=True)
    table.add_column("decode\ntokens/s", justify="right", no_wrap=True)
    table.add_column("at\nmost", justify="right", no_wrap=True)
    table.add_column("prefill\ntokens/s", justify="right", no_wrap=True)
    table.add_column("TTFT\ns", justify="right", no_wrap=True)
    table.add_column("J/token", justify="right", no_wrap=True)
    for each in predictions:
        wall = each.memory
        fits = {None: "?", True: "yes", False: "no"}[wall.fits]
        cells = (
            one_line(each.device),
            one_line(each.quantization),
            f"{wall.needed / 2**30:.2f}",
            fits,
            *(
                span(of).replace(" to ", "–")
                for of in (
                    each.decode_rate,
                    each.decode_bound,
                    each.prefill_rate,
                    each.ttft,
                    each.energy_per_token,
                )
            ),
        )
        table.add_row(*map(Text, cells))
    return table


def _reasons(predictions: Sequence[Prediction]) -> Iterator[str]:
    """Why something is missing, each reason once with the rows that it is of."""
    by_reason: dict[str, list[str]] = {}
    for each in predictions:
        wall = each.memory
        missing = [
            of.reason
            for of in (
                each.decode_rate,
                each.decode_bound,
                each.prefill_rate,
                each.energy_per_token,
            )
            if of.reason
        ]
        if wall.spare is not None and wall.spare < 0:
            missing.insert(0, f"{_gib(-wall.spare)} too little memory")
        if wall.fits is None:
            missing.append(f"its memory is not known: {wall.reason}")
        for reason in dict.fromkeys(missing):
            by_reason.setdefault(reason, []).append(_name(each))
    for reason, rows in by_reason.items():
        yield from _wrapped(f"{_whose(rows, predictions)}: {reason}", f"{DASH} ")


def _assumptions(predictions: Sequence[Prediction]) -> Iterator[str]:
    """Those that all share, then what else the others rest on, by what they are of."""
    shared = [
        note
        for note in predictions[0].assumptions
        if all(note in each.assumptions for each in predictions)
    ]
    for note in shared:
        yield from _wrapped(note, "  • ")
    own: dict[str, list[str]] = {}
    for each in predictions:
        for note in each.assumptions:
            if note not in shared:
                own.setdefault(note, []).append(_name(each))
    for note, rows in own.items():
        yield from _wrapped(f"{_whose(rows, predictions)}: {note}", "  • ")


def _whose(rows: Sequence[str], predictions: Sequence[Prediction]) -> str:
    """The devices, or the formats, where all rows of them share a note."""
    of_devices = {each.device for each in predictions if _name(each) in rows}
    if all(_name(each) in rows for each in predictions if each.device in of_devices):
        return ", ".join(sorted(of_devices))
    of_formats = {each.quantization for each in predictions if _name(each) in rows}
    if all(_name(each) in rows for each in predictions if each.quantization in of_formats):
        return ", ".join(sorted(of_formats))
    return ", ".join(rows)


def _name(each: Prediction) -> str:
    return f"{each.device} {each.quantization}"


def _wrapped(text: str, first: str) -> Iterable[str]:
    return textwrap.wrap(
        one_line(text), _width(), initial_indent=first, subsequent_indent=" " * len(first)
    )
