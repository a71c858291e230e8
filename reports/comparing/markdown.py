"""A comparison and a gate as Markdown, for a comment on a pull request. English only."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from edgebench.harness.gate.wording import percent, repetitions
from edgebench.reports.comparing import words
from edgebench.reports.comparing.blocks import Block, fitted, table
from edgebench.reports.comparing.markdown_words import name, sentence, within
from edgebench.reports.text import markdown_block, tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgebench.harness.compare.model import Compared, Comparison, Matched, SideCell
    from edgebench.harness.gate.model import Check, Gate, Status

MOST_BYTES: Final = 60_000
"""Of a comment. GitHub takes 65,536 characters; a poster may have something to add."""

_LOGS_SHOWN = 5
_FIGURES = ("cell", "metric", "baseline", "candidate", "change, 95 % interval")


def gate_markdown(gate: Gate, *, key: str = "") -> str:
    """A gate as a comment, at most `MOST_BYTES` long.

    Its first line is a marker that nobody sees, by which a poster finds the comment of the last
    time: the same for every gate of one scenario.

    Args:
        gate: what to show.
        key: tells several gates of one scenario in one pull request apart.
    """
    return f"{marker(gate, key=key)}\n{gate_text(gate, MOST_BYTES)}"


def marker(gate: Gate, *, key: str = "") -> str:
    """The line that a gate's comment begins with, such as ``<!-- edgebench-gate: smoke -->``."""
    return marker_of(gate.comparison.matched.candidate.runs[-1].scenario_name, key=key)


def marker_of(scenario: str, *, key: str = "") -> str:
    """The same of a scenario's name."""
    whole = f"{scenario}/{key}" if key else scenario
    # Two hyphens would end the comment in some readers, and a bracket in all of them.
    safe = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._/]+", "-", whole)).strip("-")
    if safe != whole:
        safe = f"{safe}-{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"<!-- edgebench-gate: {safe} -->"


def gate_text(gate: Gate, most_bytes: int) -> str:
    """A gate as Markdown without a marker, in UTF-8 at most so long."""
    matched = gate.comparison.matched
    scenario = within(matched.candidate.runs[-1].scenario_name)
    blocks = [
        Block(f"### edgebench gate {words.RESULTS[gate.outcome]}: {scenario}"),
        Block(f"**{sentence(gate.headline)}**"),
        *([Block(sentence(gate.remedy))] if gate.remedy else []),
        *_list("**Careful:**", map(sentence, words.unfinished(matched))),
        *_across(matched),
        *_limits(gate, "fail", ""),
        *_undecided(gate, "fail", "**The samples can't decide, which fails here:**"),
        *_limits(gate, "warn", "**Only warned of:**"),
        *_undecided(gate, "warn", "**The samples can't decide, which is warned of here:**"),
        *_undecided(gate, "undecided", "**The samples can't decide:**"),
        *_allowed(gate),
        *_list("**In the policy, but without effect:**", map(sentence, gate.unused)),
        *_matched(gate.comparison),
        *_in_words(gate),
        *_everything(gate.comparison),
        Block(_decided_by(gate)),
    ]
    return fitted(blocks, most_bytes)


def comparison_markdown(comparison: Comparison) -> str:
    """A comparison as Markdown, at most `MOST_BYTES` long."""
    matched = comparison.matched
    scenario = within(matched.candidate.runs[-1].scenario_name)
    open_rows = [row for row in comparison.rows if row.verdict == "cant_tell"]
    blocks = [
        Block(f"### edgebench compare: {scenario}"),
        Block(_counted(comparison.rows)),
        *_across(matched),
        replace(
            _rows(comparison.rows),
            after=f"Certain at {percent(comparison.confidence)} over all of it together; "
            f"up to {percent(comparison.margin)} counts as the same.",
        ),
        *_list(
            "**What can't be told:**",
            (
                f"{name(row.pair.name)}, {within(words.row_name(row))}: {within(row.why)}"
                for row in open_rows
                if row.why
            ),
        ),
        *_matched(comparison),
    ]
    return fitted(blocks, MOST_BYTES)


def _across(matched: Matched) -> Iterator[Block]:
    if matched.across_machines:
        yield Block(f"**Across machines:** {sentence(matched.across_machines)}")


def _limits(gate: Gate, status: Status, title: str) -> Iterator[Block]:
    checks = [each for each in gate.checks if each.status == status and not each.undecided]
    if checks:
        made = table((*_FIGURES, "limit", "verdict"), map(_broken, checks), numbers=(2, 3, 4))
        yield replace(made, before=f"{title}\n\n{made.before}" if title else made.before)


def _broken(check: Check) -> Sequence[str]:
    row = check.compared
    cell, metric, limit = name(check.cell), _metric(check), within(words.limit(check))
    if row is None or (row.baseline is None and row.candidate is None):
        return (cell, metric, "", "", "", limit, within(check.message))
    baseline, candidate = map(within, words.figures(row))
    changed = within(words.change_and_interval(row.answer))
    happened = within(_happened(check, row))
    return (cell, metric, baseline, candidate, changed, limit, happened)


def _happened(check: Check, row: Compared) -> str:
    if row.answer.ratio is None and check.kind == "worse_by":
        return check.message
    if check.kind == "worse_by":
        # That it is broken says as much, whatever the row is called by another margin.
        return "worse"
    return {"at_most": "above", "at_least": "below"}.get(check.kind, check.message)


def _undecided(gate: Gate, status: Status, title: str) -> Iterator[Block]:
    checks = [each for each in gate.checks if each.status == status and each.undecided]
    if not checks:
        return
    made = table(
        ("cell", "metric", "change, 95 % interval", "limit", "why", "repetitions to settle it"),
        (
            (
                name(check.cell),
                _metric(check),
                within(words.change_and_interval(check.compared.answer)) if check.compared else "",
                within(words.limit(check)),
                within(check.message),
                _repetitions(check.compared),
            )
            for check in checks
        ),
        numbers=(2, 5),
    )
    yield replace(made, before=f"{title}\n\n{made.before}")


def _repetitions(row: Compared | None) -> str:
    return "" if row is None or row.repetitions is None else repetitions(row.repetitions)


def _allowed(gate: Gate) -> Iterator[Block]:
    checks = [each for each in gate.checks if each.status == "allowed"]
    if not checks:
        return
    made = table(
        ("cell", "metric", "change, 95 % interval", "allowed until", "reason"),
        (
            (
                name(check.cell),
                _metric(check),
                within(words.change_and_interval(check.compared.answer))
                if check.compared
                else within(check.message),
                "" if check.allowance is None else check.allowance.until.isoformat(),
                "" if check.allowance is None else within(check.allowance.reason),
            )
            for check in checks
        ),
        numbers=(2,),
    )
    yield replace(made, before=f"**Allowed for a while:**\n\n{made.before}")


def _in_words(gate: Gate) -> Iterator[Block]:
    """What happened in sentences, and the last lines of what crashed, folded."""
    told = [each for each in gate.checks if each.status in {"fail", "warn"} and not each.undecided]
    if not told:
        return
    lines = [
        f"- {name(each.cell)}: {sentence(each.message)}"
        + (f" {sentence(each.detail)}" if each.detail and each.kind != "failed" else "")
        for each in told
    ]
    logs = [
        f"{name(each.cell)} said at its end:\n\n{markdown_block(last)}"
        for each, last in _logs(told)
    ]
    yield _folded("What happened, in words", Block("", tuple(lines)), "\n\n".join(logs))


def _logs(checks: Iterable[Check]) -> Iterator[tuple[Check, str]]:
    shown = 0
    for check in checks:
        failure = check.gone.failure if check.gone is not None else None
        last = tail(failure.log_tail, lines=10, characters=1000) if failure is not None else ""
        if last and check.kind == "failed" and shown < _LOGS_SHOWN:
            shown += 1
            yield check, last


def _everything(comparison: Comparison) -> Iterator[Block]:
    count = len(comparison.rows)
    if count:
        title = f"All {count} figures" if count > 1 else "The one figure"
        yield _folded(title, _rows(comparison.rows))


def _rows(rows: Sequence[Compared]) -> Block:
    return table((*_FIGURES, "verdict"), map(_row, rows), numbers=(2, 3, 4))


def _row(row: Compared) -> Sequence[str]:
    baseline, candidate = map(within, words.figures(row))
    verdict = words.VERDICTS[row.verdict]
    if row.verdict == "not_compared" and row.why:
        verdict = f"{verdict}: {row.why}"
    elif row.verdict == "worse":
        return (*_named(row), baseline, candidate, _changed(row), f"**{verdict}**")
    return (*_named(row), baseline, candidate, _changed(row), within(verdict))


def _named(row: Compared) -> tuple[str, str]:
    return name(row.pair.name), within(words.row_name(row))


def _changed(row: Compared) -> str:
    return within(words.change_and_interval(row.answer))


def _counted(rows: Sequence[Compared]) -> str:
    counts = Counter(row.verdict for row in rows)
    told = ", ".join(f"{counts[key]} {said}" for key, said in words.VERDICTS.items() if counts[key])
    return f"{told}." if told else "There is nothing to compare."


def _matched(comparison: Comparison) -> Iterator[Block]:
    """What both sides are, what differs between them, and what to know of them."""
    matched = comparison.matched
    by_pair = [
        f"{name(pair.name)}: {within(', '.join(words.differing(pair.differing)))}"
        for pair in matched.pairs
        if pair.differing
    ]
    everywhere = list(map(within, words.differing(matched.differing)))
    yield from _list("**Not run alike:**", [*everywhere, *by_pair])
    yield from _list("**No longer there:**", map(_cell, matched.vanished))
    yield from _list("**New, so without a baseline:**", map(_cell, matched.added))
    notes = (*matched.baseline.notes, *matched.candidate.notes, *comparison.notes)
    yield from _list("**Notes:**", map(sentence, dict.fromkeys(notes)))
    where = words.machine(matched.candidate.machine)
    there = words.machine(matched.baseline.machine)
    machines = where if where == there else f"{where}, and the baseline: {there}"
    yield Block(
        f"Baseline: {within(words.side(matched.baseline))}. "
        f"Candidate: {within(words.side(matched.candidate))}. Machine: {within(machines)}."
    )


def _cell(cell: SideCell) -> str:
    return name(" / ".join(cell.key))


def _decided_by(gate: Gate) -> str:
    return f"Decided by {within(gate.policy)}. {words.decided(gate)}"


def _metric(check: Check) -> str:
    return within(words.check_metric(check))


def _list(title: str, lines: Iterable[str]) -> Iterator[Block]:
    rows = tuple(f"- {line}" for line in lines if line)
    if rows:
        yield Block(f"{title}\n" if title else "", rows)


def _folded(title: str, block: Block, below: str = "") -> Block:
    """A block that opens at a click; GitHub and GitLab both know these two elements."""
    head = f"<details>\n<summary>{title}</summary>\n"
    before = f"{head}\n{block.before}" if block.before else head
    return Block(before, block.rows, f"{below}\n\n</details>" if below else "</details>")
