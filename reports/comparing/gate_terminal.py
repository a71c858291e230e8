"""A gate's outcome as text for a terminal. English only; no colours, no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.gate.wording import percent
from edgebench.reports.comparing import words
from edgebench.reports.comparing.wrapping import WIDTH, fact, hanging
from edgebench.reports.text import clean, one_line, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.gate.model import Check, Gate, Result, Status

_MOST_CHECKS: Final = 40
_LOG_LINES: Final = 6
_RESULTS: Final[dict[Result, str]] = {
    "passed": "passed",
    "failed": "FAILED",
    "undecided": "UNDECIDED",
}
_SECTIONS: Final[tuple[tuple[Status, bool, str], ...]] = (
    ("fail", False, "broken"),
    ("fail", True, "undecided, which fails here"),
    ("warn", False, "warnings"),
    ("warn", True, "undecided, which is warned of here"),
    ("allowed", False, "allowed"),
    ("allowed", True, "allowed, and undecided"),
    ("undecided", True, "undecided"),
)
_WITH_DETAIL: Final = frozenset({"fail", "warn"})


def gate_text(gate: Gate, *, width: int = WIDTH) -> str:
    """The outcome: the headline, what is broken, what is undecided or allowed, what was compared.

    Args:
        gate: the outcome.
        width: in columns; 40 at least.
    """
    lines = _fields(_RESULTS[gate.outcome], gate.headline, width)
    if gate.remedy:
        lines += _fields("", gate.remedy, width)
    for text in words.unfinished(gate.comparison.matched):
        lines += _fields("careful", text, width)
    lines.append("")
    if gate.comparison.matched.across_machines:
        label = one_line(gate.comparison.matched.across_machines)
        lines += [*_fields("machines", label, width), ""]
    for status, undecided, title in _SECTIONS:
        checks = [
            check
            for check in gate.checks
            if check.status == status and check.undecided == undecided
        ]
        if checks:
            lines += [title, *_section(checks, width), ""]
    lines += _foot(gate, width)
    return "\n".join(lines).rstrip()


def _section(checks: Sequence[Check], width: int) -> Iterator[str]:
    """Checks under the names of their cells."""
    shown = checks[:_MOST_CHECKS]
    for cell in dict.fromkeys(check.cell for check in shown):
        yield from _wrapped(one_line(cell), width, 2)
        for text in _differing(shown, cell):
            yield from _wrapped(f"({text})", width, 4)
        for check in shown:
            if check.cell == cell:
                yield from _check(check, width)
    if len(checks) > len(shown):
        more = f"and {len(checks) - len(shown)} more; --json and --markdown hold them all"
        yield from _wrapped(more, width, 2)


def _differing(checks: Sequence[Check], cell: str) -> list[str]:
    """What the two sides of a cell did not run alike."""
    found = (each.compared for each in checks if each.cell == cell)
    row = next((row for row in found if row is not None), None)
    return [] if row is None else words.differing(row.pair.differing)


def _check(check: Check, width: int) -> Iterator[str]:
    yield from _wrapped(one_line(check.message), width, 4)
    allowance = check.allowance
    if check.status == "allowed" and allowance is not None:
        up_to = "" if allowance.worse_by is None else f"up to {percent(allowance.worse_by)} "
        told = f"allowed {up_to}until {allowance.until.isoformat()}: {one_line(allowance.reason)}"
        yield from _wrapped(told, width, 6)
    if check.status in _WITH_DETAIL and not check.undecided and check.detail:
        if check.kind in {"failed", "vanished"}:
            for line in tail(clean(check.detail), lines=_LOG_LINES).splitlines():
                yield from _wrapped(line, width, 6)
        else:
            yield from _wrapped(one_line(check.detail), width, 6)
    settled = words.settled_by(check.compared)
    if check.undecided and settled:
        yield from _wrapped(f"{settled} would settle it", width, 6)


def _foot(gate: Gate, width: int) -> Iterator[str]:
    """What passed, what was compared, and how it was decided."""
    kept = sum(check.status == "pass" for check in gate.checks)
    matched = gate.comparison.matched
    limits = "limit" if len(gate.checks) == 1 else "limits"
    yield from _fields("kept", f"{kept} of {len(gate.checks)} {limits}", width)
    for check in gate.checks:
        if check.status == "pass" and not check.metric:
            yield from _fields("", f"{one_line(check.cell)} {one_line(check.message)}", width)
    if matched.added:
        names = ", ".join(f"{each.variant.id} / {each.workload.name}" for each in matched.added)
        yield from _fields("new", f"{one_line(names)}: not in the baseline", width)
    for text in words.differing(matched.differing):
        yield from _fields("differs", text, width)
    yield from _fields("baseline", words.side(matched.baseline), width)
    yield from _fields("candidate", words.side(matched.candidate), width)
    yield from _fields("policy", one_line(gate.policy), width)
    for note in gate.comparison.notes:
        yield from _fields("note", one_line(note), width)
    for text in gate.unused:
        yield from _fields("unused", one_line(text), width)
    yield from _fields("decided", words.decided(gate), width)


def _fields(head: str, text: str, width: int) -> list[str]:
    """A short word and a text beside it."""
    return fact(head, one_line(text), width)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    return hanging(text, width, indent)
