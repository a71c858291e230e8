"""What is said of a series of runs: its steps and its drift, and between which commits they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.history.findings import Drift
from edgebench.harness.metrics.definitions import metric
from edgebench.reports.format import scale_of
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.words import paragraph, semicolons
from edgebench.reports.metric_names import label_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.history.findings import Change, Findings
    from edgebench.harness.history.model import Point, RunFacts, Series

MOST_DIFFERENCES = 4
_CERTAIN = 0.001


def sentences(series: Series, found: Findings) -> Iterator[str]:
    """A paragraph for each step and each drift of a series, oldest first."""
    events: list[tuple[int, Change | Drift]] = [
        *((each.at, each) for each in found.changes),
        *((each.start, each) for each in found.drifts),
    ]
    for _at, event in sorted(events, key=lambda each: each[0]):
        if isinstance(event, Drift):
            yield drift_text(series, event)
        else:
            yield change_text(series, event)


def change_text(series: Series, change: Change) -> str:
    """A step: by how much, since when, between which commits, and what else changed there."""
    points = series.points
    head = _(
        "{what}: {change}, from {before} to {after}, since the run of {date}; {judged}.",
        what=_what(series),
        change=change_share(change),
        before=level(series, change.before),
        after=level(series, change.after),
        date=run_date(series, points[change.at]),
        judged=judged(series, change),
    )
    texts = [head, _between(series, points[change.earliest - 1], points[change.latest])]
    texts.append(_chance(change.p))
    differences = tuple(_differences(points[change.at - 1], points[change.at]))
    if differences:
        texts.append(
            _("What else differs from the run before: {facts}.", facts=semicolons(differences))
        )
    return paragraph(texts)


def drift_text(series: Series, drift: Drift) -> str:
    """A drift: how much it adds up to, and over which runs."""
    first, last = series.points[drift.start], series.points[drift.last]
    count = drift.last - drift.start + 1
    head = _(
        "{what}: {change} little by little, from {before} to {after} over {count} runs; {judged}.",
        what=_what(series),
        change=change_share(drift),
        before=level(series, drift.before),
        after=level(series, drift.after),
        count=count,
        judged=judged(series, drift),
    )
    return paragraph(
        (
            head,
            _("No single step of it stands out."),
            _between(series, first, last),
            _chance(drift.p),
        )
    )


def change_share(change: Change | Drift) -> str:
    """By how much a value changed, such as ``−5.1 % [−5.9, −4.3]``."""
    if change.ratio is None or change.low is None or change.high is None:
        return _("a change")
    return f"{signed(change.ratio)} % [{signed(change.low)}, {signed(change.high)}]"


def signed(ratio: float) -> str:
    """A ratio as a change in percent, with its sign and one decimal."""
    percent = 100 * (ratio - 1)
    size = abs(percent)
    text = f"{size:.0f}" if size >= 100 else f"{size:.1f}"  # noqa: PLR2004 - percent
    sign = "−" if percent < 0 else "+"
    return f"{sign}{text}" if text.strip("0.") else text


def judged(series: Series, change: Change | Drift) -> str:
    """Better or worse; neither where the metric has no direction."""
    better = metric(series.subject.metric).better
    if better is None:
        return _("neither better nor worse")
    rose = change.after > change.before
    return _("better") if rose == (better == "higher") else _("worse")


def worse(series: Series, change: Change | Drift) -> bool:
    """Whether it went the bad way."""
    better = metric(series.subject.metric).better
    return better is not None and (change.after > change.before) != (better == "higher")


def level(series: Series, value: float) -> str:
    """A value of a series with its unit, in the unit that fits all of it."""
    scale = scale_of(series.subject.metric, series.subject.unit, series.medians)
    shown = scale.of(value)
    return scale.write(shown, scale.decimals(shown)) + scale.suffix


def run_date(series: Series, point: Point) -> str:
    """The day of a run; with the time where a day has several."""
    return _date(point.run, by_day=_one_a_day(series))


def run_dates(series: Series) -> list[str]:
    """The same of every run."""
    by_day = _one_a_day(series)
    return [_date(run, by_day=by_day) for run in series.points.runs]


def _one_a_day(series: Series) -> bool:
    runs = series.points.runs
    return len({each.created_at[:10] for each in runs}) == len(runs)


def _date(run: RunFacts, *, by_day: bool) -> str:
    text = run.created_at
    return one_line(text[:10] if by_day else text[:16].replace("T", " "))


def _what(series: Series) -> str:
    subject = series.subject
    return _(
        "{metric} of {variant} on {workload}",
        metric=label_of(subject.metric, subject.source, subject.meter),
        variant=one_line(series.name),
        workload=one_line(subject.workload),
    )


def _between(series: Series, last: Point, first: Point) -> str:
    """Where to look: after the last commit before it, up to the first commit after it."""
    if last.run.commit and first.run.commit:
        if last.run.commit == first.run.commit:
            return _(
                "Both sides are of commit {commit}: what changed is not in the code.",
                commit=one_line(first.run.commit),
            )
        return _(
            "It came after commit {last}, and by commit {first}.",
            last=one_line(last.run.commit),
            first=one_line(first.run.commit),
        )
    return _(
        "It came between the runs of {last} and {first}, which do not both name a commit.",
        last=run_date(series, last),
        first=run_date(series, first),
    )


def _chance(p: float) -> str:
    return (
        _("By chance: less often than in 1 of 1000 histories.")
        if p < _CERTAIN
        else _("By chance: in {share} of histories.", share=f"{100 * p:.1g} %")
    )


def _differences(before: Point, after: Point) -> Iterator[str]:
    """What was not the same in two runs, besides the figures."""
    mine, theirs = before.setup, after.setup
    if mine.engine != theirs.engine and mine.engine and theirs.engine:
        yield f"{one_line(mine.engine)} → {one_line(theirs.engine)}"
    if before.run.version != after.run.version:
        yield f"edgebench {one_line(before.run.version)} → {one_line(after.run.version)}"
    if mine.artifact != theirs.artifact:
        yield _("the file that was loaded")
    gone = sorted(set(mine.effective) - set(theirs.effective))
    new = sorted(set(theirs.effective) - set(mine.effective))
    if mine.effective and theirs.effective:
        named = [one_line(each) for each in (*(f"−{x}" for x in gone), *(f"+{x}" for x in new))]
        yield from named[:MOST_DIFFERENCES]
        if len(named) > MOST_DIFFERENCES:
            rest = len(named) - MOST_DIFFERENCES
            yield plural("{count} more option", "{count} more options", rest)
