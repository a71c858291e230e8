"""A comparison for the terminal, readable at 80 columns without colours. English only."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from edgebench.harness.compare.verdicts import settling
from edgebench.harness.gate.wording import about, percent
from edgebench.reports.comparing import words
from edgebench.reports.comparing.wrapping import INDENT, WIDTH, fact, hanging, wrapped
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.compare.model import Compared, Comparison, Pair, SideCell, Verdict

_HEADS: Final = ("metric", "baseline", "candidate", "change", "95 % interval", "verdict")
_RIGHT: Final = frozenset({1, 3})
_ORDER: Final[tuple[Verdict, ...]] = ("worse", "better", "same", "cant_tell", "not_compared")


def comparison_text(comparison: Comparison, *, width: int = WIDTH) -> str:
    """The whole comparison.

    Args:
        comparison: what there is to say.
        width: how many columns the terminal has.

    Returns:
        Lines without trailing blanks: the headline, the two sides and what differs, a table of all
        cells, what could not be told and what would settle it, what has no counterpart.
    """
    whole, rest = _whole(comparison.rows)
    parts = [
        wrapped(headline(comparison), width),
        _sides(comparison, width),
        list(_table(rest, width)),
        list(_untold(rest, comparison.margin, width)),
        list(_refused(rest, width)),
        list(_cells("not compared", [(pair.name, why) for pair, why in whole], width)),
        list(_unanswered(comparison, width)),
        [line for note in _notes(comparison, rest) for line in fact("note", note, width)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def headline(comparison: Comparison) -> str:
    """How many are worse, better, the same and untold, in a sentence."""
    counts = Counter(row.verdict for row in comparison.rows)
    if not counts:
        return "Nothing was compared: neither side has a value of what was asked about."
    said = [f"{counts[each]} {words.VERDICTS[each]}" for each in _ORDER if counts[each]]
    certain = percent(comparison.confidence)
    same = percent(comparison.margin)
    across = comparison.matched.across_machines
    return (
        f"{', '.join(said)} ({certain} certain, over all of them together; a change within {same} "
        f"counts as the same){', ' + one_line(across) if across else ''}."
    )


def _sides(comparison: Comparison, width: int) -> list[str]:
    matched = comparison.matched
    facts = [
        ("baseline", words.side(matched.baseline)),
        ("candidate", words.side(matched.candidate)),
        ("machine", words.machine(matched.candidate.machine)),
    ]
    if matched.across_machines:
        facts[2:] = [
            ("machines", one_line(matched.across_machines).removeprefix("across machines: "))
        ]
    when = "in the same blocks, in random order" if matched.interleaved else "at different times"
    facts.append(("measured", when))
    head = "differs"
    for text in words.differing(matched.differing):
        facts.append((head, text))
        head = ""
    return [line for head, text in facts for line in fact(head, text, width)]


def _notes(comparison: Comparison, rows: Sequence[Compared]) -> Iterator[str]:
    for note in comparison.notes:
        yield one_line(note)
    if any(_medians_disagree(row) for row in rows):
        pairs = (
            "repetitions of the same block"
            if comparison.matched.interleaved
            else "each repetition of one and each of the other"
        )
        yield (
            f"Values are the medians of each side; a change is the typical one between {pairs}, "
            "which may point the other way."
        )


def _medians_disagree(row: Compared) -> bool:
    """Whether a reader who compares both values finds another direction than the change's."""
    if row.baseline is None or row.candidate is None or row.answer.ratio is None:
        return False
    return (row.candidate - row.baseline) * (row.answer.ratio - 1) < 0


def _whole(rows: Sequence[Compared]) -> tuple[list[tuple[Pair, str]], list[Compared]]:
    """Cells of which nothing is compared for one reason, and the rows of all others."""
    by_cell: dict[str, list[Compared]] = {}
    for row in rows:
        by_cell.setdefault(row.pair.name, []).append(row)
    whole = {
        name: (found[0].pair, found[0].why)
        for name, found in by_cell.items()
        if {row.verdict for row in found} == {"not_compared"}
        and len({row.why for row in found}) == 1
    }
    return list(whole.values()), [row for row in rows if row.pair.name not in whole]


def _table(rows: Sequence[Compared], width: int) -> Iterator[str]:
    lines = [_columns(row) for row in rows]
    if not lines:
        return
    shown = [_HEADS, *lines]
    wide = [max(cell_len(line[place]) for line in shown) for place in range(len(_HEADS))]
    gap = INDENT if sum(wide) + 2 * len(wide) <= width else " "
    name = ""
    yield _line(_HEADS, wide, gap)
    for row, line in zip(rows, lines, strict=True):
        if row.pair.name != name:
            name = row.pair.name
            yield from hanging(one_line(name), width)
            yield from _pair(row.pair, width)
        yield _line(line, wide, gap)


def _pair(pair: Pair, width: int) -> Iterator[str]:
    """What of a pair is not alike, below its name."""
    if pair.baseline.key != pair.candidate.key:
        name = _name(pair.baseline)
        yield from hanging(f"against {name}", width, len(INDENT))
    for text in words.differing(pair.differing):
        yield from hanging(f"differs: {text}", width, len(INDENT))


def _columns(row: Compared) -> tuple[str, ...]:
    baseline, candidate = words.figures(row)
    value, _, unit = baseline.partition(" ")
    if unit and candidate.endswith(f" {unit}"):
        # Both are in one unit, which stands once.
        baseline = value
    return (
        words.row_name(row),
        baseline,
        candidate,
        words.change(row.answer),
        words.interval(row.answer),
        words.VERDICTS[row.verdict],
    )


def _line(cells: Sequence[str], wide: Sequence[int], gap: str) -> str:
    padded = (
        " " * (size - cell_len(cell)) + cell
        if place in _RIGHT
        else cell + " " * (size - cell_len(cell))
        for place, (cell, size) in enumerate(zip(cells, wide, strict=True))
    )
    return (INDENT + gap.join(padded)).rstrip()


def _untold(rows: Sequence[Compared], margin: float, width: int) -> Iterator[str]:
    """By cell, what could not be told: how much would have been noticed, and what settles it."""
    by_cell: dict[str, list[Compared]] = {}
    for row in rows:
        if row.verdict == "cant_tell":
            by_cell.setdefault(row.pair.name, []).append(row)
    if by_cell:
        yield "can't tell"
    for name, found in by_cell.items():
        yield from hanging(one_line(name), width, len(INDENT))
        alike = [row for row in found if _is_noticed(row)]
        if len(alike) > 1:
            yield from hanging(_noticed(alike, margin), width, 2 * len(INDENT))
        others = [row for row in found if len(alike) < 2 or row not in alike]  # noqa: PLR2004
        yield from _by_reason(others, width)


def _is_noticed(row: Compared) -> bool:
    noticeable = row.answer.noticeable
    repeatable = row.pair.candidate.workload.kind != "quality" and row.answer.n > 1
    return repeatable and noticeable is not None and noticeable <= 1


def _noticed(rows: Sequence[Compared], margin: float) -> str:
    """Of several metrics of a cell in one sentence."""
    changes = ", ".join(
        f"{about(row.answer.noticeable or 0.0)} ({words.row_name(row)})" for row in rows
    )
    said = f"changes of {changes} would have been noticed"
    needed = [row.repetitions for row in rows if row.repetitions is not None]
    if len(needed) < len(rows):
        return said
    count = settling(max(needed))
    return f"{said}; {count} repetitions on each side would settle {percent(margin)} in all of them"


def _refused(rows: Sequence[Compared], width: int) -> Iterator[str]:
    """By cell, why a metric was not compared."""
    by_cell: dict[str, list[Compared]] = {}
    for row in rows:
        if row.verdict == "not_compared":
            by_cell.setdefault(row.pair.name, []).append(row)
    if by_cell:
        yield "not compared"
    for name, found in by_cell.items():
        yield from hanging(one_line(name), width, len(INDENT))
        yield from _by_reason(found, width)


def _by_reason(rows: Sequence[Compared], width: int) -> Iterator[str]:
    """Metrics of one reason stand together."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.why:
            by_reason.setdefault(row.why, []).append(words.row_name(row))
    for why, metrics in by_reason.items():
        said = f"{', '.join(metrics)}: {one_line(why)}"
        yield from hanging(said, width, 2 * len(INDENT))


def _unanswered(comparison: Comparison, width: int) -> Iterator[str]:
    """Cells without a counterpart, and those that failed on both sides."""
    matched = comparison.matched
    for title, cells in (
        ("only in the baseline", matched.vanished),
        ("only in the candidate", matched.added),
    ):
        yield from _cells(title, [(_name(each), _state(each)) for each in cells], width)
    failed = [
        (pair.name, _state(pair.candidate))
        for pair in matched.pairs
        if not pair.candidate.metrics and not pair.baseline.metrics
    ]
    yield from _cells("no result on either side", failed, width)


def _cells(title: str, found: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    if found:
        yield title
    for name, why in found:
        yield from hanging(one_line(f"{name}: {why}" if why else name), width, len(INDENT))


def _name(cell: SideCell) -> str:
    return one_line(f"{cell.variant.id} / {cell.workload.name}")


def _state(cell: SideCell) -> str:
    if cell.failure is not None:
        lines = cell.failure.message.splitlines()
        return f"failed: {lines[0]}" if lines else "failed"
    return "not run" if cell.status == "not_run" else ""
