"""A comparison for the terminal, readable at 80 columns without colours. English only."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from edgebench.harness.gate.wording import percent
from edgebench.reports.comparing import words
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgebench.harness.compare.model import Compared, Comparison, Pair, SideCell, Verdict

WIDTH: Final = 80

_HEADS: Final = ("metric", "baseline", "candidate", "change", "95 %", "verdict")
_RIGHT: Final = frozenset({1, 3})
_INDENT: Final = "  "
_HEAD: Final = 11
_ORDER: Final[tuple[Verdict, ...]] = ("worse", "better", "same", "cant_tell", "not_compared")


def comparison_text(comparison: Comparison, *, width: int = WIDTH) -> str:
    """The whole comparison.

    Args:
        comparison: what there is to say.
        width: how many columns the terminal has.

    Returns:
        Lines without trailing blanks, the last one the headline: two sides, a table of all cells,
        what differs, what could not be told and what would settle it, what has no counterpart.
    """
    rows = told(comparison.rows)
    whole, rest = _whole(rows)
    parts = [
        _sides(comparison, width),
        list(_table(rest, width)),
        list(_reasons("can't tell", rest, "cant_tell", width)),
        list(_reasons("not compared", rest, "not_compared", width)),
        list(_cells("not compared", [(pair.name, why) for pair, why in whole], width)),
        list(_unanswered(comparison, width)),
        [line for note in comparison.notes for line in _wrapped(note, width, "note       ")],
        _wrapped(headline(comparison), width, hanging=0),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def headline(comparison: Comparison) -> str:
    """How many are worse, better, the same and untold, in a sentence."""
    counts = Counter(row.verdict for row in told(comparison.rows))
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


def told(rows: Iterable[Compared]) -> list[Compared]:
    """The rows, but what is one thing of several workloads, such as a load, only once."""
    seen: set[tuple[object, ...]] = set()
    found = []
    for row in rows:
        mine, theirs = (
            each.metrics.get(row.metric) for each in (row.pair.baseline, row.pair.candidate)
        )
        if mine is not None and theirs is not None and row.verdict != "not_compared":
            variants = row.pair.baseline.variant.id, row.pair.candidate.variant.id
            key = (*variants, row.metric, mine.blocks, mine.values, theirs.blocks, theirs.values)
            if key in seen:
                continue
            seen.add(key)
        found.append(row)
    return found


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
    lines = [line for head, text in facts for line in _wrapped(text, width, f"{head:<{_HEAD}}")]
    head = f"{'differs':<{_HEAD}}"
    for text in words.differing(matched.differing):
        lines += _wrapped(text, width, head)
        head = " " * _HEAD
    return lines


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
    gap = _INDENT if sum(wide) + 2 * len(wide) <= width else " "
    name = ""
    yield _line(_HEADS, wide, gap)
    for row, line in zip(rows, lines, strict=True):
        if row.pair.name != name:
            name = row.pair.name
            yield from _wrapped(one_line(name), width)
            yield from _pair(row.pair, width)
        yield _line(line, wide, gap)


def _pair(pair: Pair, width: int) -> Iterator[str]:
    """What of a pair is not alike, below its name."""
    if pair.baseline.key != pair.candidate.key:
        name = _name(pair.baseline)
        yield from _wrapped(f"against {name}", width, _INDENT)
    for text in words.differing(pair.differing):
        yield from _wrapped(f"differs: {text}", width, _INDENT)


def _columns(row: Compared) -> tuple[str, ...]:
    baseline, candidate = words.figures(row)
    value, _, unit = baseline.partition(" ")
    if unit and candidate.endswith(f" {unit}"):
        # Both are in one unit, which stands once.
        baseline = value
    return (
        words.metric_name(row.metric),
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
    return (_INDENT + gap.join(padded)).rstrip()


def _reasons(title: str, rows: Sequence[Compared], verdict: Verdict, width: int) -> Iterator[str]:
    """By cell, why of each metric."""
    found = [row for row in rows if row.verdict == verdict and row.why]
    if found:
        yield title
    name = ""
    for row in found:
        if row.pair.name != name:
            name = row.pair.name
            yield from _wrapped(one_line(name), width, _INDENT)
        said = f"{words.metric_name(row.metric)}: {one_line(row.why)}"
        yield from _wrapped(said, width, 2 * _INDENT)


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
        yield from _wrapped(one_line(f"{name}: {why}" if why else name), width, _INDENT)


def _name(cell: SideCell) -> str:
    return one_line(f"{cell.variant.id} / {cell.workload.name}")


def _state(cell: SideCell) -> str:
    if cell.failure is not None:
        lines = cell.failure.message.splitlines()
        return f"failed: {lines[0]}" if lines else "failed"
    return "not run" if cell.status == "not_run" else ""


def _wrapped(text: str, width: int, head: str = "", hanging: int | None = None) -> list[str]:
    """Lines of at most `width`; all but the first are as far in as its text, or as `hanging`."""
    if hanging is None:
        hanging = _HEAD if len(head) == _HEAD else len(head) + len(_INDENT)
    lines = textwrap.wrap(
        # A number and its percent sign stay together.
        text.replace(" %", "\N{NO-BREAK SPACE}%"),
        width,
        initial_indent=head,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]
