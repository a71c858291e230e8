"""What `edgebench noise` found, as text for a terminal. English only; no colours, no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from edgebench.harness.gate.wording import about, percent, worse
from edgebench.reports.comparing import words
from edgebench.reports.comparing.wrapping import INDENT, WIDTH, hanging, wrapped
from edgebench.reports.format import NOT_MEASURED
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.noise.model import Noise, NoiseReport, Suggestion

SHOWN: Final = (10, 20, 40)
APART: Final = 20
"""Repetitions of which the table tells what is noticed in the same blocks, and in separate runs."""

_NEVER: Final = "never"
_MOST: Final = 10.0
"""A share above which no figure tells more."""


def noise_text(report: NoiseReport, *, width: int = WIDTH) -> str:
    """What is suggested, whether it alarmed or drifted, and what would be noticed, in this order.

    Args:
        report: what was found.
        width: in columns.
    """
    if not report.rows:
        return "\n".join(wrapped("Nothing was measured twice or more on both sides.", width))
    parts = [
        list(_suggested(report, width)),
        [*_outcome(report, width), *_drift(report, width)],
        list(_noticed(report, width)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _suggested(report: NoiseReport, width: int) -> Iterator[str]:
    found = report.suggestion
    if found is None:
        return
    policy = found.policy(report.comparison.confidence)
    if policy is None:
        yield from wrapped(
            "Suggested: no gate on this machine as it is; everything is too noisy for a limit, "
            f"even of {found.repetitions} repetitions in the same blocks.",
            width,
        )
        return
    yield from wrapped(_how(found), width)
    yield ""
    for line in policy.splitlines():
        yield f"{INDENT}{line}"


def _how(found: Suggestion) -> str:
    count = found.repetitions
    return (
        f"Suggested: --repetitions {count}, in the same blocks (edgebench run --against), and "
        "this policy:"
    )


def _outcome(report: NoiseReport, width: int) -> Iterator[str]:
    confidence = percent(report.comparison.confidence)
    if not report.alarms:
        yield f"A/A check passed at {confidence}."
        return
    yield from wrapped(
        f"FALSE ALARM: at {confidence} a difference would have been called certain, and there is "
        "none:",
        width,
    )
    for row in report.alarms:
        change = percent(round(row.ratio - 1, 4))
        text = f"{one_line(row.cell)}: {words.metric_name(row.metric)} by {change}"
        yield from hanging(text, width, len(INDENT))
    yield from wrapped(
        "By chance that happens in one such run of fifty. If it happens again, the two sides are "
        "not alike: please report it, with both runs.",
        width,
    )


def _drift(report: NoiseReport, width: int) -> Iterator[str]:
    if not report.drifts:
        yield "No drift within the run stands out from its noise."
        return
    told = "; ".join(
        f"{words.metric_name(each.metric)} {worse(each.worsening)}" for each in report.drifts
    )
    yield from hanging(f"Drift within the run, second half against first: {told}.", width)


def _noticed(report: NoiseReport, width: int) -> Iterator[str]:
    counts = ", ".join(map(str, SHOWN[:-1]))
    yield from wrapped(
        "The smallest change for the worse that a gate would notice in 95 % of cases, "
        f"{percent(report.comparison.confidence)} certain over all of these together, with "
        f"{counts} or {SHOWN[-1]} repetitions on each side in the same blocks, or {APART} in "
        "separate runs; before it the noise of one repetition, its standard deviation:",
        width,
    )
    yield ""
    yield from _table(report.rows, width)


def _columns(row: Noise) -> tuple[str, ...]:
    by_count = {each.repetitions: each for each in row.noticed}
    return (
        words.metric_name(row.metric),
        _share(row.repetition_cv, NOT_MEASURED),
        *(_share(by_count[count].interleaved, _NEVER) for count in SHOWN),
        _share(by_count[APART].separate, _NEVER),
    )


def _table(rows: Sequence[Noise], width: int) -> Iterator[str]:
    """Metrics below the names of their cells; the first column is words, the others figures."""
    head = ("metric", "noise", *map(str, SHOWN), f"{APART} separate")
    lines = [_columns(row) for row in rows]
    wide = [max(cell_len(line[place]) for line in (head, *lines)) for place in range(len(head))]

    def line(cells: tuple[str, ...]) -> str:
        first = cells[0] + " " * (wide[0] - cell_len(cells[0]))
        others = (
            " " * (size - cell_len(cell)) + cell
            for cell, size in zip(cells[1:], wide[1:], strict=True)
        )
        return (INDENT + "  ".join([first, *others])).rstrip()

    yield line(head)
    name = ""
    for row, cells in zip(rows, lines, strict=True):
        if row.cell != name:
            name = row.cell
            yield from hanging(one_line(name), width)
        yield line(cells)


def _share(value: float | None, none: str) -> str:
    if value is None:
        return none
    return about(value) if value < _MOST else f"> {percent(_MOST)}"
