"""A gate for GitHub Actions: annotations, and the job's summary. English only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.comparing import words
from edgebench.reports.comparing.markdown import gate_text
from edgebench.reports.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.gate.model import Check, Gate

MOST_OF_A_KIND: Final = 10
"""How many errors, how many warnings and how many notices of one step GitHub shows."""

MOST_SUMMARY_BYTES: Final = 900_000
"""GitHub drops a step's whole summary above 1 MiB, and other commands may add to it."""

_LEVELS = {"fail": "error", "warn": "warning", "undecided": "notice", "allowed": "notice"}


def gate_annotations(gate: Gate) -> str:
    """The workflow commands that make GitHub show what was broken, a line each; may be empty.

    A broken limit is an error, and so is a gate that could decide nothing; a warning is a warning;
    what is undecided or allowed, and what in the policy had no effect, a notice. Above ten of a
    kind the last one counts the others. To be written to standard output, each at the beginning of
    a line.
    """
    by_level: dict[str, list[tuple[str, str]]] = {"error": [], "warning": [], "notice": []}
    if gate.outcome == "undecided":
        message = f"{gate.headline}. {gate.remedy}."
        by_level["error"].append(("edgebench gate could not decide", message))
    made_up = words.made_up(gate.comparison.matched)
    weights = f" ({made_up})" if made_up else ""
    for check in gate.checks:
        if check.status != "pass":
            title = f"{_title(check)}{weights}"
            by_level[_LEVELS[check.status]].append((title, _message(check)))
    by_level["notice"] += [("edgebench gate: the policy", each) for each in gate.unused]
    lines = [
        annotation(level, title, message)
        for level, each in by_level.items()
        for title, message in _shown(each)
    ]
    return "".join(lines)


def annotation(level: str, title: str, message: str) -> str:
    """One workflow command with its line's end: ``error``, ``warning`` or ``notice``."""
    return f"::{level} title={_property(title)}::{_data(message)}\n"


def gate_summary(gate: Gate) -> str:
    """Markdown to append to the file that ``$GITHUB_STEP_SUMMARY`` names."""
    return gate_text(gate, MOST_SUMMARY_BYTES)


def _shown(each: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if len(each) <= MOST_OF_A_KIND:
        yield from each
        return
    yield from each[: MOST_OF_A_KIND - 1]
    rest = len(each) - MOST_OF_A_KIND + 1
    yield ("edgebench gate", f"{rest} more of this kind stand in the job's summary and in the log")


def _title(check: Check) -> str:
    if not check.metric:
        return check.cell
    estimated = words.ESTIMATED if check.estimated else ""
    return f"{check.cell}: {words.metric_label(check.metric)}{estimated}"


def _message(check: Check) -> str:
    said = "allowed: " if check.status == "allowed" else "undecided: " if check.undecided else ""
    settled = words.settled_by(check.compared) if check.undecided else ""
    lines = [
        f"{said}{check.message}",
        f"{settled} would settle it" if settled else check.detail,
    ]
    if check.allowance is not None:
        lines.append(
            f"allowance until {check.allowance.until.isoformat()}: {check.allowance.reason}"
        )
    return "\n".join(line for line in lines if line)


def _data(text: str) -> str:
    """A message with the command's own signs as GitHub's runner decodes them."""
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property, which a comma or a colon would end."""
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
