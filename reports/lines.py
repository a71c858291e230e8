"""The latency of each token, over the tokens and over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from edgebench.reports import svg
from edgebench.reports.format import quantity, scale_for
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.words import semicolons
from edgebench.reports.picture import Plot, axis_names, best_first, chart, looks, some_of_each
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from edgebench.reports.data import ReportData
    from edgebench.reports.format import Scale
    from edgebench.reports.picture import Look
    from edgebench.reports.series import TokenGaps

MOST_LINES = 6
"""More lines than this cross each other too often to be followed."""

HEIGHT = 240
SHADE = 0.18
MOST_SPREAD = 90
"""Percentile of the spread's upper edge up to which it must fit the picture."""


def token_plots(data: ReportData) -> tuple[Plot, ...]:
    """For each workload with time stamps: the gaps over the tokens, then over time."""
    made = (
        draw(data, workload, name=f"{name}-{number}")
        for number, workload in enumerate(data.workload_names)
        for draw, name in ((gap_plot, "gaps"), (time_plot, "time"))
    )
    return tuple(plot for plot in made if plot is not None)


def gap_plot(data: ReportData, workload: str, *, name: str) -> Plot | None:
    """The gap before each token, median and spread; None where no variant has time stamps."""
    drawn, remark = _chosen(data, workload)
    if not drawn:
        return None
    seen = looks(data.record.variants)
    scale = _scale(drawn)
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        for variant, each in drawn.items():
            _line(axes, each.token, each, seen[variant], scale)
        axes.set_ylim(0, _ceiling(drawn) / scale.size)
        _limits(axes, [each.token for each in drawn.values()])
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis_names(axes, x=_("token"), y=_("{unit} since the token before", unit=scale.unit))
    return Plot(
        title=_("{workload}: gap before each token", workload=one_line(workload)),
        svg=svg.to_svg(
            figure,
            name=name,
            title=_("Gap before each token on {workload}", workload=one_line(workload)),
            description=_(
                "In {unit} against the token's number. {medians}.",
                unit=scale.unit,
                medians=_medians(drawn),
            ),
        ),
        legend=_legend(drawn, seen),
        remark=remark,
    )


def time_plot(data: ReportData, workload: str, *, name: str) -> Plot | None:
    """The gap before each token against the time; None where no variant has time stamps.

    A line begins with the second token; the mark at its foot is where the first one came.
    """
    drawn, remark = _chosen(data, workload)
    if not drawn:
        return None
    seen = looks(data.record.variants)
    scale = _scale(drawn)
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        for variant, each in drawn.items():
            look = seen[variant]
            _line(axes, each.at_s, each, look, scale)
            axes.plot(
                [each.first_s],
                [0],
                marker=look.marker,
                markersize=7,
                markeredgewidth=0,
                color=look.colour,
                clip_on=False,
                zorder=3,
            )
        axes.set_ylim(0, _ceiling(drawn) / scale.size)
        axes.set_xlim(0, max(float(each.at_s[-1]) for each in drawn.values()) * 1.02 or 1.0)
        axis_names(
            axes,
            x=_("s after the prompt was handed over"),
            y=_("{unit} since the token before", unit=scale.unit),
        )
    marks = _("the mark at the foot of a line is its first token")
    firsts = semicolons(
        _("{variant}: {value}", variant=one_line(variant), value=quantity(each.first_s, "s"))
        for variant, each in drawn.items()
    )
    return Plot(
        title=_("{workload}: latency of each token over time", workload=one_line(workload)),
        svg=svg.to_svg(
            figure,
            name=name,
            title=_("Latency of each token over time on {workload}", workload=one_line(workload)),
            description=_(
                "In {unit} against the time. The first token came after: {firsts}.",
                unit=scale.unit,
                firsts=firsts,
            ),
        ),
        legend=_legend(drawn, seen),
        remark=semicolons(filter(None, (marks, remark))),
    )


def left_out_text(count: int) -> str:
    """That so many variants are not drawn; empty for none."""
    if not count:
        return ""
    return plural(
        "{count} more variant is not drawn: the fastest of each framework go first",
        "{count} more variants are not drawn: the fastest of each framework go first",
        count,
    )


def _chosen(data: ReportData, workload: str) -> tuple[dict[str, TokenGaps], str]:
    """What is drawn, in the order of the run, and what is said of the rest."""
    gaps = data.series.gaps
    known = [each for each in data.variant_ids if (workload, each) in gaps]
    fastest = [each for each in best_first(data, workload, "decode_rate") if each in set(known)]
    ranked = list(dict.fromkeys([*fastest, *known]))
    drawn = some_of_each(data, ranked, MOST_LINES)
    return {each: gaps[workload, each] for each in drawn}, left_out_text(len(known) - len(drawn))


def _scale(drawn: Mapping[str, TokenGaps]) -> Scale:
    return scale_for("s", [float(np.median(each.median_s)) for each in drawn.values()])


def _medians(drawn: Mapping[str, TokenGaps]) -> str:
    return semicolons(
        _(
            "{variant}: median {value}",
            variant=one_line(variant),
            value=quantity(float(np.median(each.median_s)), "s"),
        )
        for variant, each in drawn.items()
    )


def _legend(
    drawn: Mapping[str, TokenGaps], seen: Mapping[str, Look]
) -> tuple[tuple[str, str, str], ...]:
    return tuple((variant, seen[variant].style, seen[variant].dashes) for variant in drawn)


def _line(
    axes: Axes, along: NDArray[np.float64], gaps: TokenGaps, look: Look, scale: Scale
) -> None:
    axes.fill_between(
        along,
        gaps.low_s / scale.size,
        gaps.high_s / scale.size,
        color=look.colour,
        alpha=SHADE,
        linewidth=0,
    )
    axes.plot(
        along,
        gaps.median_s / scale.size,
        color=look.colour,
        linewidth=1.5,
        linestyle=look.line,
        marker=look.marker if len(along) == 1 else None,
    )


def _limits(axes: Axes, tokens: Sequence[NDArray[np.float64]]) -> None:
    first = min(float(each[0]) for each in tokens)
    last = max(float(each[-1]) for each in tokens)
    axes.set_xlim(first, last if last > first else first + 1)


def _ceiling(gaps: Mapping[str, TokenGaps]) -> float:
    """High enough for every median line and all but the wildest of the spread."""
    highest_median = max(float(each.median_s.max()) for each in gaps.values())
    spread = max(float(np.percentile(each.high_s, MOST_SPREAD)) for each in gaps.values())
    return max(highest_median, spread) * 1.08 or 1.0
