"""The trend of one metric over runs: medians with their intervals, and where they changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.ticker import FixedLocator

from edgebench.harness.metrics.definitions import metric
from edgebench.reports import svg
from edgebench.reports.format import scale_of
from edgebench.reports.history_words import change_share, level, run_date
from edgebench.reports.languages import _
from edgebench.reports.languages.words import lowered, semicolons
from edgebench.reports.metric_names import by_source, metric_label
from edgebench.reports.picture import Plot, axis_names, chart
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from edgebench.harness.history.findings import Findings
    from edgebench.harness.history.model import RunFacts, Series
    from edgebench.reports.format import Scale
    from edgebench.reports.picture import Look

HEIGHT = 230
MOST_DATES = 3
"""On the axis: three are what a phone's width holds."""


@dataclass(frozen=True, slots=True)
class Trend:
    """One series to draw, with what was found in it and how it looks."""

    series: Series
    found: Findings
    look: Look


def trend_plot(
    trends: Sequence[Trend], *, title: str, name: str, this_run: str = "", remark: str = ""
) -> Plot:
    """Draw series of one metric over their runs, each run as far from the next as any other.

    Args:
        trends: at least one; all of one metric and unit.
        title: of the picture.
        name: unique in the page.
        this_run: the id of a run to set off.
        remark: what else is said below.
    """
    first = trends[0].series
    key, unit = first.subject.metric, first.subject.unit
    values = [point.median for each in trends for point in each.series.points]
    scale = scale_of(key, unit, values)
    runs = _runs(trends)
    places = {run.path: place for place, run in enumerate(runs)}
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        for each in trends:
            _draw(axes, each, places, scale, this_run)
        axes.set_xlim(-0.6, len(runs) - 0.4)
        _dates(axes, trends, runs)
        better = {"higher": _("higher is better"), "lower": _("lower is better")}.get(
            metric(key).better or "", ""
        )
        axis_names(axes, x="", y=semicolons(filter(None, (scale.unit, better))))
    return Plot(
        title=title,
        svg=svg.to_svg(
            figure,
            name=name,
            title=_("{metric} over runs: {title}", metric=metric_label(key), title=title),
            description=_description(trends),
        ),
        legend=tuple((_legend(each.series), each.look.style, each.look.dashes) for each in trends),
        remark=remark,
    )


def _legend(series: Series) -> str:
    subject = series.subject
    return by_source(one_line(series.name), subject.source, subject.meter)


def plot_title(workload: str, key: str) -> str:
    """What a picture of one workload is called."""
    return _(
        "{workload}: {metric} over runs",
        workload=one_line(workload),
        metric=lowered(metric_label(key)),
    )


def _runs(trends: Sequence[Trend]) -> list[RunFacts]:
    found = {point.run.path: point.run for each in trends for point in each.series.points}
    return sorted(found.values(), key=lambda run: (run.moment, run.created_at))


def _draw(axes: Axes, trend: Trend, places: dict[str, int], scale: Scale, this_run: str) -> None:
    points, look = trend.series.points, trend.look
    along = [places[each.run.path] for each in points]
    values = [scale.of(each.median) for each in points]
    for at, value, point in zip(along, values, points, strict=True):
        if point.low is not None and point.high is not None:
            axes.plot(
                [at, at],
                [scale.of(point.low), scale.of(point.high)],
                color=look.colour,
                linewidth=1.6,
                alpha=0.45,
            )
        if this_run and point.run.id == this_run:
            axes.plot(
                [at],
                [value],
                marker="o",
                markersize=9,
                markerfacecolor="none",
                markeredgecolor=svg.INK,
                markeredgewidth=1.4,
                zorder=4,
                clip_on=False,
            )
    axes.plot(
        along,
        values,
        color=look.colour,
        linewidth=1.3,
        linestyle=look.line,
        marker=look.marker,
        markersize=3.5 if len(points) < 60 else 2,  # noqa: PLR2004 - points that would touch
        markeredgewidth=0,
    )
    for change in trend.found.changes:
        between = (along[change.at - 1] + along[change.at]) / 2
        axes.axvline(between, color=svg.MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        axes.plot(
            [between],
            [scale.of((change.before + change.after) / 2)],
            marker="D",
            markersize=6,
            markerfacecolor=svg.SURFACE,
            markeredgecolor=look.colour,
            markeredgewidth=1.5,
            zorder=5,
        )
    for drift in trend.found.drifts:
        axes.plot(
            [along[drift.start], along[drift.last]],
            [scale.of(drift.before), scale.of(drift.after)],
            color=svg.INK,
            linewidth=1.2,
            linestyle=(0, (6, 3)),
            zorder=4,
        )


def _dates(axes: Axes, trends: Sequence[Trend], runs: Sequence[RunFacts]) -> None:
    longest = max((each.series for each in trends), key=lambda each: len(each.points))
    said = {point.run.path: run_date(longest, point)[:10] for point in longest.points}
    last = len(runs) - 1
    at = sorted({round(last * part / (MOST_DATES - 1)) for part in range(MOST_DATES)})
    axes.xaxis.set_major_locator(FixedLocator(at))
    names = [said.get(runs[place].path) or one_line(runs[place].created_at[:10]) for place in at]
    for label, place in zip(axes.set_xticklabels(names), at, strict=True):
        # A date at the edge would be cut off.
        label.set_horizontalalignment(
            "left" if place == 0 and last else "right" if place == last and last else "center"
        )


def _description(trends: Sequence[Trend]) -> str:
    texts = []
    for each in trends:
        series, found = each.series, each.found
        texts.append(
            _(
                "{variant}: {first} in the first of {count} runs, {last} in the last",
                variant=one_line(series.name),
                first=level(series, series.points[0].median),
                count=len(series.points),
                last=level(series, series.points[-1].median),
            )
        )
        texts += [
            _(
                "{change} since {date}",
                change=change_share(change),
                date=run_date(series, series.points[change.at]),
            )
            for change in found.changes
        ]
    return semicolons(texts)
