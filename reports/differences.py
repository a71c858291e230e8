"""Which variant rates a text better than which: perplexities compared window by window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from math import isfinite
from typing import TYPE_CHECKING, Literal

from edgebench.harness.quality.figures import holm, paired_difference
from edgebench.harness.results.cell import Summary
from edgebench.reports.format import CHANGE, NOT_MEASURED, shown
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import unstopped
from edgebench.reports.sentences import Sentence, fill, listed
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.quality.figures import Difference
    from edgebench.harness.results.quality import WindowRecord

LEVEL = 0.05
"""Of the adjusted p, up to which a difference counts as one."""

_LEAST = 2
_SMALLEST_P = 0.001

Verdict = Literal["better", "alike", "untested"]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A variant against the next one in the order of their perplexities.

    Attributes:
        first, second: their ids; the second's perplexity is the higher one, or as high.
        change: by how much it is higher, in percent; a dash where no number holds it.
        interval: the 95 % interval of that, or empty.
        p: adjusted, or a dash.
        verdict: whether the first is better, or can't be told apart from the second.
        words: the verdict in words; it names the better one.
    """

    first: str
    second: str
    change: str
    interval: str
    p: str
    verdict: Verdict
    words: str


@dataclass(frozen=True, slots=True)
class Differences:
    """All variants of one workload, best first, each against the next.

    Attributes:
        rows: one fewer than there are variants.
        marked: the best variant and those that can't be told apart from it; empty where that
            is not known, or where no variant can be told apart from any.
        how: how it was tested, a sentence or two.
        short: the same in short: who can't be told apart, a sentence each.
    """

    rows: tuple[DifferenceRow, ...]
    marked: frozenset[str]
    how: str
    short: tuple[Sentence, ...]

    @property
    def tested(self) -> bool:
        """Whether any two were compared; if not, `how` says why and the rows say no more."""
        return any(row.verdict != "untested" for row in self.rows)


def differences(
    windows: Mapping[str, tuple[WindowRecord, ...]], perplexities: Mapping[str, float]
) -> Differences | None:
    """Compare variants by pairs of windows.

    Args:
        windows: by variant, the same ones of each.
        perplexities: by variant.

    Returns:
        None where there are not two variants to compare.
    """
    known = [each for each in windows if each in perplexities]
    ranked = sorted(known, key=perplexities.__getitem__)
    if len(ranked) < _LEAST:
        return None
    best, *others = ranked
    steps = list(pairwise(ranked))
    rivals = [(best, other) for other in others]
    found = {(a, b): compared(windows[b], windows[a]) for a, b in {*steps, *rivals}}
    there_are, comparisons = len(windows[best]), len(steps)
    too_few = ""
    if there_are < (least := fewest_windows(comparisons)):
        too_few = _too_few(comparisons, least, there_are)
    # Two questions, of as many comparisons each. Which step down the list is one: Holm, over the
    # neighbours. Which variants may be the best is another. The best is chosen by the same
    # windows that it is then compared on, and Holm does not allow for that; times the number of
    # comparisons does: the one that is truly best goes unmarked only if it is beaten by that
    # much by any of the others, so in at most 5 % of cases.
    # Asking both at once, of 2 * comparisons - 1, would need more windows and tell no more.
    against_best = _tested(rivals, found, too_few)
    at_most = {pair: min(1.0, comparisons * p) for pair, p in against_best.items()}
    neighbours = holm(_tested(steps, found, too_few))
    # One pair is in both: the larger of its two p, so that table and mark agree.
    p = {pair: max(each, at_most.get(pair, 0.0)) for pair, each in neighbours.items()}
    rows = tuple(_row(pair, found[pair], p.get(pair), too_few) for pair in steps)
    return Differences(
        rows=rows,
        marked=_marked(best, others, at_most),
        how=_how(there_are, comparisons)
        if p
        else _("Not tested: {reason}.", reason=_untested(found[steps[0]], too_few)),
        short=tuple(_short(rows)),
    )


def fewest_windows(comparisons: int) -> int:
    """The fewest windows with which any of so many comparisons can be told apart.

    Of n windows, all of which point one way, turning signs gives p = 2 / 2**n: none is less.
    """
    return next(n for n in count(1) if comparisons * 2 / 2**n <= LEVEL)


def change_of(difference: Difference) -> Summary:
    """A difference as a ratio of perplexities, with its interval or the reason for none."""
    return Summary(
        median=difference.ratio if isfinite(difference.ratio) else None,
        ci_low=difference.low,
        ci_high=difference.high,
        n=difference.windows,
        unit="1",
        source="derived",
        reason=difference.reason,
    )


@lru_cache(maxsize=512)
def compared(one: tuple[WindowRecord, ...], other: tuple[WindowRecord, ...]) -> Difference:
    """`paired_difference`; a report asks for the same pair in several of its forms."""
    return paired_difference(one, other)


def _marked(best: str, others: Sequence[str], adjusted: Mapping[Pair, float]) -> frozenset[str]:
    if any((best, other) not in adjusted for other in others):
        return frozenset()
    alike = {other for other in others if adjusted[best, other] > LEVEL}
    # Where all are alike, marking every value says nothing.
    return frozenset({best, *alike}) if len(alike) < len(others) else frozenset()


def _tested(
    pairs: Sequence[Pair], found: Mapping[Pair, Difference], too_few: str
) -> dict[Pair, float]:
    if too_few:
        return {}
    return {pair: p for pair in pairs if (p := found[pair].p) is not None}


def _row(pair: Pair, difference: Difference, p: float | None, too_few: str) -> DifferenceRow:
    change = change_of(difference)
    text = shown(change, CHANGE)
    verdict: Verdict = "untested" if p is None else "better" if p <= LEVEL else "alike"
    words = {
        "better": _("{variant} is better", variant=one_line(pair[0])),
        "alike": _("can't be told apart"),
        "untested": _("not tested: {reason}", reason=_untested(difference, too_few)),
    }[verdict]
    return DifferenceRow(
        first=pair[0],
        second=pair[1],
        change=text.value if change.median is None else f"{text.value} %",
        interval=text.interval,
        p=_p(p),
        verdict=verdict,
        words=words,
    )


def _untested(difference: Difference, too_few: str) -> str:
    reason = recorded(difference.reason or "") or _("no test was made")
    return too_few or unstopped(one_line(reason))


def _too_few(comparisons: int, least: int, there_are: int) -> str:
    needs = plural(
        "{count} comparison needs at least {least} windows",
        "{count} comparisons need at least {least} windows",
        comparisons,
        least=least,
    )
    return plural("{needs}, there is {count}", "{needs}, there are {count}", there_are, needs=needs)


def _p(p: float | None) -> str:
    if p is None:
        return NOT_MEASURED
    return f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}" if p < 1 else "1"


def _how(windows: int, comparisons: int) -> str:
    if comparisons == 1:
        return _(
            "Perplexities of {windows} pairs of windows, in the order of the perplexity. The "
            "interval resamples pairs; p is of a two-sided test that turns the signs of pairs. Up "
            "to {level} the variant is better than the next; above, this text can't tell the two "
            "apart.",
            windows=windows,
            level=f"{LEVEL:g}",
        )
    return _(
        "Perplexities of {windows} pairs of windows, in the order of the perplexity. The interval "
        "resamples pairs; p is of a two-sided test that turns the signs of pairs, adjusted for "
        "{comparisons} comparisons (by Holm; the best, which is also compared with all others, "
        "times {comparisons}). Up to {level} the variant is better than the next; above, this text "
        "can't tell the two apart.",
        windows=windows,
        comparisons=comparisons,
        level=f"{LEVEL:g}",
    )


def _short(rows: Sequence[DifferenceRow]) -> Iterator[Sentence]:
    if all(row.verdict == "untested" for row in rows):
        yield fill("Differences {words}.", words=rows[0].words)
        return
    chains = list(_chains(rows))
    for chain in chains:
        if len(chain) == _LEAST:
            yield fill("{variants} can't be told apart.", variants=listed(chain))
        else:
            yield fill(
                "{variants} can't be told apart, each from the next.", variants=listed(chain)
            )
    if all(row.verdict == "better" for row in rows):
        yield fill("Each perplexity differs from the next higher one.")


def _chains(rows: Sequence[DifferenceRow]) -> Iterator[list[str]]:
    """Variants in a row that can't be told apart, each from the next."""
    chain: list[str] = []
    for row in rows:
        if row.verdict == "alike":
            chain = [*(chain or [row.first]), row.second]
        elif chain:
            yield chain
            chain = []
    if chain:
        yield chain
