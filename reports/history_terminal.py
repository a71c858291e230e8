"""The history for the terminal, readable at 80 columns. English only."""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.results.record import SYNTHETIC_WEIGHTS
from edgebench.reports.format import scale_of
from edgebench.reports.history_words import run_dates, sentences, signed, worse
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.history.findings import Change, Drift, Findings
    from edgebench.harness.history.index import Contents
    from edgebench.harness.history.model import Series

WIDTH = 80
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 16
MOST_SKIPPED = 5
FLATTEST = 0.04
"""Share of the value that the whole height of a trend is, at least."""


def head(contents: Contents) -> Iterator[str]:
    """What the index holds, and what is not in it, with the reason."""
    yield from map(one_line, contents.notes)
    left = ", ".join(f"{count} {_plural(why, count)}" for why, count in contents.left_out.items())
    yield _count(contents.runs, "run") + (f"; left out: {left}" if left else "")
    if contents.skipped:
        count = len(contents.skipped)
        yield f"{_count(count, 'record')} could not be read:"
        for each in contents.skipped[:MOST_SKIPPED]:
            yield from _wrapped(one_line(each.reason), "  ")
        if count > MOST_SKIPPED:
            yield f"  and {count - MOST_SKIPPED} more"


def overview(found: Sequence[tuple[Series, Findings]]) -> Iterator[str]:
    """One line for each series, below its cell; then what changed, in sentences.

    Series of one run have no trend, and are only counted.
    """
    told = [text for series, findings in found for text in sentences(series, findings)]
    if all(findings.reason for _series, findings in found):
        # Before a long list of what has no news in it.
        yield ""
        yield _nothing(found)
    yield from _listed([each for each in found if len(each[0].points) > 1])
    single = sum(len(series.points) == 1 for series, _found in found)
    if single:
        yield ""
        yield f"{single} series of one run {'is' if single == 1 else 'are'} not listed."
    if any(findings.reason is None for _series, findings in found):
        yield ""
        if not told:
            yield _nothing(found)
        for text in told:
            yield from _wrapped(text, "* ", "  ")


def _listed(found: Sequence[tuple[Series, Findings]]) -> Iterator[str]:
    """By machine and scenario, then by cell; a blank line before each machine and scenario."""
    for (machine, scenario), group in groupby(
        found, key=lambda each: (each[0].subject.machine, each[0].subject.scenario)
    ):
        listed = list(group)
        runs = {run.path for series, _found in listed for run in series.points.runs}
        cpu = one_line(listed[0][0].cpu_model)
        yield ""
        title = f"{one_line(scenario)} · {cpu} ({one_line(machine)}) · {_count(len(runs), 'run')}"
        yield from _wrapped(title, "")
        for _cell, cells in groupby(listed, key=lambda each: each[0].subject.cell):
            of_cell = list(cells)
            yield from _heading(of_cell[0][0], indent="  ")
            twice = Counter(each.subject.metric for each, _findings in of_cell)
            for series, findings in of_cell:
                yield _line(series, findings)
                meter = series.subject.meter
                if meter and twice[series.subject.metric] > 1:
                    yield f"      of {one_line(meter)}"


def _heading(series: Series, what: str = "", indent: str = "") -> list[str]:
    """Variant and workload; what tells it from others of these names; and whether it is made up."""
    subject = series.subject
    said = (
        series.apart,
        SYNTHETIC_WEIGHTS if subject.synthetic else "",
        "made up by the testing runner" if subject.testing else "",
    )
    names = f"{what}{one_line(subject.variant)} / {one_line(subject.workload)}"
    parts = [names, *(f"({one_line(each)})" for each in said if each)]
    whole = indent + " ".join(parts)
    if len(whole) <= WIDTH:
        return [whole]
    return [
        line
        for place, each in enumerate(parts)
        for line in _wrapped(each, indent + "  " * (place > 0), indent + "  ")
    ]


def one_series(series: Series, found: Findings) -> Iterator[str]:
    """Every run of a series, newest last, with marks where it changed."""
    subject = series.subject
    yield ""
    scale = scale_of(subject.metric, subject.unit, series.medians)
    unit = f", {scale.unit}" if scale.unit else ""
    by = "estimated" if subject.source == "estimated" else one_line(subject.meter)
    label = metric(subject.metric).label + (f" ({by})" if by else "")
    yield from _heading(series, f"{label}{unit}: ")
    yield from _wrapped(
        f"{one_line(subject.scenario)} · {one_line(series.cpu_model)} "
        f"({one_line(subject.machine)})",
        "",
    )
    yield ""
    marks = _marks(found)
    for place, (date, point) in enumerate(zip(run_dates(series), series.points, strict=True)):
        value = scale.of(point.median)
        interval = ""
        if point.low is not None and point.high is not None:
            low, high = scale.of(point.low), scale.of(point.high)
            decimals = scale.decimals(value, low, high)
            interval = f"[{scale.write(low, decimals)}, {scale.write(high, decimals)}]"
        else:
            decimals = scale.decimals(value)
        commit = one_line(point.run.commit) or "-"
        text = (
            f"{date:<16} {commit:<11} {scale.write(value, decimals):>9} {interval:<18}"
            f" {marks.get(place, '')}"
        )
        yield text.rstrip()
    yield ""
    if found.reason is not None:
        yield f"{found.reason}: nothing can be said of changes yet"
        return
    texts = list(sentences(series, found))
    if found.spread is not None:
        texts.append(f"From run to run it varies by {100 * found.spread:.2g} %.")
    for text in texts or [_nothing([(series, found)])]:
        yield from _wrapped(text, "* ", "  ")


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """A trend in so many characters at most: each is the median of as many values."""
    if len(values) > width:
        edges = [round(place * len(values) / width) for place in range(width + 1)]
        values = [_middle(values[a:b]) for a, b in pairwise(edges)]
    middle = (min(values) + max(values)) / 2
    # What varies by less than this is drawn flat: noise at full height looks like news.
    reach = max((max(values) - min(values)) / 2, FLATTEST * abs(middle) / 2)
    if reach == 0:
        return SPARKS[3] * len(values)
    step = 2 * reach / (len(SPARKS) - 1)
    return "".join(SPARKS[round((value - middle + reach) / step)] for value in values)


def _line(series: Series, found: Findings) -> str:
    subject = series.subject
    first, last = series.points[0], series.points[-1]
    scale = scale_of(subject.metric, subject.unit, series.medians)
    decimals = scale.decimals(scale.of(last.median))
    ends = (scale.write(scale.of(each.median), decimals) for each in (first, last))
    values = " → ".join(ends) + scale.suffix
    spark = sparkline(series.medians)
    text = f"    {metric(subject.metric).short:<11} {values:<24} {spark:<{SPARK_WIDTH}}"
    estimated = "estimated " if subject.source == "estimated" else ""
    return f"{text}  {estimated}{_events(series, found)}".rstrip()


def _events(series: Series, found: Findings) -> str:
    events: list[Change | Drift] = [*found.changes, *found.drifts]
    if not events:
        return _count(len(series.points), "run") if found.reason else ""
    newest = max(events, key=lambda each: getattr(each, "at", getattr(each, "last", 0)))
    share = f"{signed(newest.ratio)} %" if newest.ratio is not None else "changed"
    where = (
        f"at {series.points[newest.at].run.created_at[5:10]}" if hasattr(newest, "at") else "drift"
    )
    more = f" +{len(events) - 1}" if len(events) > 1 else ""
    return f"{'!' if worse(series, newest) else ' '}{share} {where}{more}"


def _marks(found: Findings) -> Mapping[int, str]:
    marks = {
        each.at: f"<- {signed(each.ratio) + ' %' if each.ratio is not None else 'changed'}"
        for each in found.changes
    }
    for each in found.drifts:
        marks.setdefault(each.start, "drift begins")
        marks.setdefault(each.last, "drift so far")
    return marks


def _nothing(found: Sequence[tuple[Series, Findings]]) -> str:
    if all(findings.reason for _series, findings in found):
        return f"Nothing can be said of changes yet: {found[0][1].reason} in a series."
    return "No change and no drift can be told from noise."


def _middle(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _plural(why: str, count: int) -> str:
    return (
        why
        if count == 1
        else {"quick look": "quick looks"}.get(why, why).replace(
            "baseline of an interleaved run", "baselines of interleaved runs"
        )
    )


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
    )
