"""Which variant rates a text better than which: perplexities compared window by window."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from edgebench.harness.quality.figures import paired_difference
from edgebench.reports.format import CHANGE, NOT_MEASURED
from edgebench.reports.sentences import Sentence, listed
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.quality.figures import Difference
    from edgebench.harness.results.model import Trial
    from edgebench.harness.results.quality import QualityRecord, WindowRecord

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
        change: by how much it is higher, in percent.
        interval: the 95 % interval of that, or empty.
        p: adjusted, or a dash.
        verdict: whether the first is better, or can't be told apart from the second.
        words: the verdict in words.
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


def windows_by_variant(
    trials: Sequence[Trial], workload: str, quality: QualityRecord
) -> dict[str, tuple[WindowRecord, ...]]:
    """The windows of every variant that was rated on as many of them as the workload says.

    A run that was interrupted has not said it yet: then most windows of a variant count.
    """
    # What a variant rated beyond what all of them did does not count.
    found = {
        trial.variant: tuple(trial.windows[: quality.windows or None])
        for trial in trials
        if trial.workload == workload
        and trial.kind == "quality"
        and trial.phase == "measured"
        and trial.status == "ok"
        and trial.windows
    }
    wanted = quality.windows or max(map(len, found.values()), default=0)
    sizes = {variant: tuple(each.tokens for each in windows) for variant, windows in found.items()}
    alike = Counter(each for each in sizes.values() if len(each) == wanted)
    if not alike:
        return {}
    ((usual, _),) = alike.most_common(1)
    return {variant: windows for variant, windows in found.items() if sizes[variant] == usual}


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
    pairs = dict.fromkeys([*steps, *((best, other) for other in others)])
    found = {(a, b): compared(windows[b], windows[a]) for a, b in pairs}
    tested = {pair: each.p for pair, each in found.items() if each.p is not None}
    adjusted = holm(tested)
    rows = tuple(_row(pair, found[pair], adjusted.get(pair)) for pair in steps)
    return Differences(
        rows=rows,
        marked=_marked(best, others, adjusted),
        how=_how(len(windows[best]), len(tested), next(iter(found.values())).reason),
        short=tuple(_short(rows)),
    )


@lru_cache(maxsize=512)
def compared(one: tuple[WindowRecord, ...], other: tuple[WindowRecord, ...]) -> Difference:
    """`paired_difference`; a report asks for the same pair in several of its forms."""
    return paired_difference(one, other)


def holm(values: Mapping[Pair, float]) -> dict[Pair, float]:
    """p-values adjusted so that all of them may be looked at (Holm, 1979)."""
    adjusted: dict[Pair, float] = {}
    highest = 0.0
    for place, pair in enumerate(sorted(values, key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - place) * values[pair]))
        adjusted[pair] = highest
    return adjusted


def _marked(best: str, others: Sequence[str], adjusted: Mapping[Pair, float]) -> frozenset[str]:
    if any((best, other) not in adjusted for other in others):
        return frozenset()
    alike = {other for other in others if adjusted[best, other] > LEVEL}
    # Where all are alike, marking every value says nothing.
    return frozenset({best, *alike}) if len(alike) < len(others) else frozenset()


def _row(pair: Pair, difference: Difference, p: float | None) -> DifferenceRow:
    ratio, low, high = difference.ratio, difference.low, difference.high
    decimals = CHANGE.decimals(
        CHANGE.of(ratio),
        None if low is None else CHANGE.of(low),
        None if high is None else CHANGE.of(high),
    )
    written = [
        "" if value is None else CHANGE.write(CHANGE.of(value), decimals)
        for value in (ratio, low, high)
    ]
    verdict: Verdict = "untested" if p is None else "better" if p <= LEVEL else "alike"
    words = {
        "better": "the first is better",
        "alike": "can't be told apart",
        "untested": f"not tested: {one_line(difference.reason or 'no test was made')}",
    }[verdict]
    return DifferenceRow(
        first=pair[0],
        second=pair[1],
        change=f"{written[0]} %",
        interval=f"[{written[1]}, {written[2]}]" if written[1] and written[2] else "",
        p=_p(p),
        verdict=verdict,
        words=words,
    )


def _p(p: float | None) -> str:
    if p is None:
        return NOT_MEASURED
    return f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}" if p < 1 else "1"


def _how(windows: int, tested: int, reason: str | None) -> str:
    if not tested:
        return f"Not tested: {one_line(reason or 'no test was made')}."
    return (
        f"Perplexities of {windows} pairs of windows, in the order of the perplexity. The interval "
        "resamples pairs; p is of a two-sided test that turns the signs of pairs, adjusted by Holm "
        f"for {tested} comparisons (each with the next one, and the best with all). Up to "
        f"{LEVEL:g} the first is better; above, this text can't tell the two apart."
    )


def _short(rows: Sequence[DifferenceRow]) -> Iterator[Sentence]:
    if all(row.verdict == "untested" for row in rows):
        yield (f"Differences {rows[0].words}.",)
        return
    chains = list(_chains(rows))
    for chain in chains:
        if len(chain) == _LEAST:
            yield (*listed(chain), " can't be told apart.")
        else:
            yield (*listed(chain), " can't be told apart, each from the next.")
    if not chains:
        yield ("Each perplexity differs from the next higher one.",)


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
