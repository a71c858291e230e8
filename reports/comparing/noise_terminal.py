"""What `edgebench noise` found, as text for a terminal. English only; no colours, no markup."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from edgebench.harness.gate.wording import about, percent
from edgebench.reports.comparing import words
from edgebench.reports.format import NOT_MEASURED
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from edgebench.harness.noise import Noise, NoiseReport, Noticed

WIDTH: Final = 80

_INDENT: Final = "  "
_NEVER: Final = "never"
_MOST: Final = 10.0
"""A share above which no figure tells more."""


def noise_text(report: NoiseReport, *, width: int = WIDTH) -> str:
    """The noise by cell and metric, what could be noticed, whether it alarmed, what is suggested.

    Args:
        report: what was found.
        width: in columns.
    """
    if not report.rows:
        return "\n".join(
            _wrapped("Nothing was measured in two blocks or more on both sides.", width)
        )
    parts = [
        [*_wrapped("The same thing twice, in the same blocks, in random order.", width)],
        list(_noise(report, width)),
        list(_noticed(report, width)),
        list(_outcome(report, width)),
        list(_suggested(report, width)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _noise(report: NoiseReport, width: int) -> Iterator[str]:
    head = ("noise", "pairs", "repetition", "pair", "lag 1", "halves")
    yield from _table(report.rows, head, _noise_columns, width)
    yield ""
    yield from _wrapped(
        "repetition: standard deviation of one, over its mean. pair: of the ratio of the two "
        "sides in one block. lag 1: correlation of a block with the next one; near 1 the "
        "machine's pace drifts. halves: by how much the second half of the blocks was worse than "
        "the first: what two runs made one after the other would differ by.",
        width,
    )


def _noise_columns(row: Noise) -> tuple[str, ...]:
    halves = row.halves
    signed = "" if halves is None or halves == 0 else "+" if halves > 0 else "-"
    return (
        words.metric_name(row.metric),
        str(row.pairs),
        _share(row.repetition_cv),
        _share(row.pair_spread),
        NOT_MEASURED if row.lag1 is None else f"{row.lag1:.2f}",
        NOT_MEASURED if halves is None else f"{signed}{_share(abs(halves))}",
    )


def _noticed(report: NoiseReport, width: int) -> Iterator[str]:
    confidence = percent(report.comparison.confidence)
    yield from _wrapped(
        f"The smallest change for the worse that a gate would notice in 95 % of cases, "
        f"{confidence} certain over all of these together, by repetitions:",
        width,
    )
    for title, value in (
        ("same blocks", lambda each: each.interleaved),
        ("separate runs", lambda each: each.separate),
    ):
        counts = sorted({each.repetitions for row in report.rows for each in row.noticed})

        def columns(
            row: Noise, value: Callable[[Noticed], float | None] = value, counts: list[int] = counts
        ) -> tuple[str, ...]:
            by_count = {each.repetitions: value(each) for each in row.noticed}
            return (
                words.metric_name(row.metric),
                *(
                    NOT_MEASURED if count not in by_count else _share(by_count[count], _NEVER)
                    for count in counts
                ),
            )

        yield ""
        yield from _table(report.rows, (title, *map(str, counts)), columns, width)


def _outcome(report: NoiseReport, width: int) -> Iterator[str]:
    confidence = percent(report.comparison.confidence)
    if not report.alarms:
        yield from _wrapped(
            f"No difference was called certain at {confidence}, as it must be: there is none.",
            width,
        )
        return
    yield from _wrapped(
        f"FALSE ALARM: at {confidence} a difference would have been called certain, and there is "
        "none:",
        width,
    )
    for row in report.alarms:
        change = percent(round(row.ratio - 1, 4))
        text = f"{one_line(row.cell)}: {words.metric_name(row.metric)} by {change}"
        yield from _wrapped(text, width, _INDENT)
    yield from _wrapped(
        "By chance that happens in one such run of fifty. If it happens again, the two sides are "
        "not alike: please report it, with both runs.",
        width,
    )


def _suggested(report: NoiseReport, width: int) -> Iterator[str]:
    found = report.suggestion
    if found is None:
        return
    count = found.repetitions
    yield from _wrapped(
        f"Suggested: {count} repetitions of each cell (`--repetitions {count}`, or in the scenario "
        f"measure: {{repetitions: {{min: {count}, max: {count}}}}}), in the same blocks, with this "
        "policy:",
        width,
    )
    yield ""
    for line in found.policy(report.comparison.confidence).splitlines():
        yield f"{_INDENT}{line}"


def _table(
    rows: Sequence[Noise],
    head: tuple[str, ...],
    columns: Callable[[Noise], tuple[str, ...]],
    width: int,
) -> Iterator[str]:
    """Metrics below the names of their cells; the first column is words, the others figures."""
    lines = [columns(row) for row in rows]
    wide = [max(cell_len(line[place]) for line in (head, *lines)) for place in range(len(head))]

    def line(cells: tuple[str, ...]) -> str:
        first = cells[0] + " " * (wide[0] - cell_len(cells[0]))
        others = (
            " " * (size - cell_len(cell)) + cell
            for cell, size in zip(cells[1:], wide[1:], strict=True)
        )
        return (_INDENT + "  ".join([first, *others])).rstrip()

    yield line(head)
    name = ""
    for row, cells in zip(rows, lines, strict=True):
        if row.cell != name:
            name = row.cell
            yield from _wrapped(one_line(name), width, hanging=True)
        yield line(cells)


def _share(value: float | None, none: str = NOT_MEASURED) -> str:
    if value is None:
        return none
    return about(value) if value < _MOST else f"> {percent(_MOST)}"


def _wrapped(text: str, width: int, indent: str = "", *, hanging: bool = False) -> list[str]:
    lines = textwrap.wrap(
        # A number and its percent sign stay together.
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        width,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT if indent or hanging else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [each.replace("\N{NO-BREAK SPACE}%", " %") for each in lines]
