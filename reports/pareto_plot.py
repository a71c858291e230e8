"""Pictures of quality against cost: numbered points, and the line of those that none dominates.

Perplexities are drawn as their change against that of the reference: on an axis of their values
one format that fell to pieces would press all others onto one line.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
    ScalarFormatter,
)

from edgebench.reports import svg
from edgebench.reports.format import shown
from edgebench.reports.languages import _
from edgebench.reports.languages.words import lowered, semicolons
from edgebench.reports.pareto import has_interval
from edgebench.reports.picture import (
    Plot,
    axis_names,
    chart,
    frameworks_legend,
    looks,
    with_unit,
)
from edgebench.reports.point_labels import MARKER, MOST_NUMBERS, write_numbers
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from edgebench.reports.pareto import Front, Fronts, Point
    from edgebench.reports.picture import Look

HEIGHT = 300
_LOG_FROM = 5.0
"""Values that differ more than so many times are drawn on a logarithmic axis."""

_LEVEL = 0.1
"""Changes up to so many percent are drawn in proportion, even where larger ones are not."""

_LEVEL_SHARE = 0.7
"""How high that part is, where a power of 10 is 1."""

_LONG = 1e5
"""Changes of so many percent and more are written by their power of 10."""

_MOST_TICKS = 8
"""Above 0."""

_ROOM = 0.06


def front_plot(found: Fronts, front: Front, *, name: str) -> Plot:
    """One plane.

    Args:
        found: all planes of the run.
        front: the one to draw.
        name: unique in the page.
    """
    costs = [_cost(front, point) for point in front.points]
    rated = [_rated(found, point) for point in front.points]
    seen = looks(found.variants)
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        axes.grid(visible=True, axis="x")
        _cost_axis(axes, [value for cost in costs for value in cost])
        _change_axis(axes, [value for each in rated for value in each])
        corners = _corners(axes, found, front)
        if corners:
            axes.plot(*zip(*corners, strict=True), color=svg.MUTED, linewidth=1.2, alpha=0.6)
        for point, cost, change in zip(front.points, costs, rated, strict=True):
            _point(axes, point, seen[point.variant], cost, change)
        places = [(cost[0], change[0]) for cost, change in zip(costs, rated, strict=True)]
        _numbers(axes, front, places, corners)
        cost_name = with_unit(lowered(front.label), front.scale.unit)
        axis_names(
            axes,
            x=_("{cost} (→ better)", cost=cost_name)
            if front.higher
            else _("{cost} (← better)", cost=cost_name),
            y=_("perplexity against {reference}, % (↓ better)", reference=_(found.against)),
        )
    return Plot(
        title=front.label,
        svg=svg.to_svg(
            figure,
            name=name,
            title=_("Perplexity against {cost}", cost=lowered(front.label)),
            description=_said(front),
        ),
        legend=frameworks_legend(found.variants, {point.variant for point in front.points}),
        remark=_("more to the right and further down is better")
        if front.higher
        else _("more to the left and further down is better"),
    )


def _cost(front: Front, point: Point) -> tuple[float, ...]:
    """The value, and the ends of its interval where there is one."""
    ends = (point.cost.ci_low, point.cost.ci_high) if has_interval(point.cost) else ()
    return tuple(front.scale.of(value) for value in (point.cost.median, *ends) if value is not None)


def _rated(found: Fronts, point: Point) -> tuple[float, ...]:
    """The change of the perplexity in percent, and the ends of its interval where there is one."""
    ends = (point.low, point.high) if point.has_bar else ()
    return tuple(
        100 * (value / found.whole - 1) for value in (point.perplexity, *ends) if value is not None
    )


def _cost_axis(axes: Axes, values: Sequence[float]) -> None:
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        room = (high / low) ** _ROOM
        axes.set_xlim(low / room, high * room)
        return
    # An offset beside the axis would hide what the ticks are.
    axes.xaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    room = (high - low) * _ROOM or abs(high) * _ROOM or 1.0
    axes.set_xlim(low - room, high + room)


def _change_axis(axes: Axes, values: Sequence[float]) -> None:
    """Changes in percent: as they are around 0, by their orders of magnitude beyond."""
    ends = min(values), max(values)
    if max(map(abs, ends)) > _LOG_FROM * _LEVEL:
        axes.set_yscale("symlog", linthresh=_LEVEL, linscale=_LEVEL_SHARE)
        axes.yaxis.set_major_locator(FixedLocator(_steps(*ends)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _change(value)))
    scale = axes.yaxis.get_transform()
    low, high = (float(scale.transform([end])[0]) for end in ends)
    room = (high - low) * _ROOM or 1.0
    bottom, top = (float(scale.inverted().transform([end])[0]) for end in (low - room, high + room))
    axes.set_ylim(bottom, top)


def _steps(low: float, high: float) -> list[float]:
    """Where the axis has a tick: at 0, and at powers of 10 (and 3 times those) as far as fit."""
    most = math.ceil(math.log10(max(abs(low), abs(high))))
    least = round(math.log10(_LEVEL))
    powers = range(least, most + 1, math.ceil((most + 1 - least) / _MOST_TICKS))
    factors = (1, 3) if 2 * len(powers) <= _MOST_TICKS else (1,)
    sizes = [factor * 10.0**power for power in powers for factor in factors]
    return [*(-size for size in reversed(sizes)), 0.0, *sizes]


def _change(percent: float) -> str:
    if abs(percent) >= _LONG:
        return f"{percent:+.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{percent:+.6g}" if percent else "0"


def _corners(axes: Axes, found: Fronts, front: Front) -> list[tuple[float, float]]:
    """The edge of what can be had, from one side of the picture to another; empty without a line.

    What costs more than one point and less than the next can be had no better than the first.
    """
    best = [
        (front.scale.of(point.cost.median or 0.0), _rated(found, point)[0]) for point in front.line
    ]
    if not best:
        return []
    (left, right), top = axes.get_xlim(), axes.get_ylim()[1]
    if front.higher:
        ends = [(left, best[0][1]), *best, (best[-1][0], top)]
        between = [(one[0], other[1]) for one, other in pairwise(ends)]
    else:
        ends = [(best[0][0], top), *best, (right, best[-1][1])]
        between = [(other[0], one[1]) for one, other in pairwise(ends)]
    return [ends[0], *(each for pair in zip(between, ends[1:], strict=True) for each in pair)]


def _point(
    axes: Axes, point: Point, look: Look, cost: tuple[float, ...], change: tuple[float, ...]
) -> None:
    bars: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    if len(cost) > 1:
        bars.append((cost[1:], (change[0],) * 2))
    if len(change) > 1:
        bars.append(((cost[0],) * 2, change[1:]))
    for x, y in bars:
        axes.plot(x, y, color=look.colour, linewidth=0.8, alpha=0.7)
    axes.plot(
        [cost[0]],
        [change[0]],
        marker=look.marker,
        markersize=2 * MARKER,
        markeredgewidth=1.2,
        markeredgecolor=look.colour,
        # Dominated is hollow, not pale: the colour is the framework's.
        markerfacecolor=svg.SURFACE if point.dominated_by else look.colour,
        zorder=3,
    )


def _numbers(
    axes: Axes,
    front: Front,
    values: Sequence[tuple[float, float]],
    corners: Sequence[tuple[float, float]],
) -> None:
    """All numbers where there is room; else those of the points that none dominates."""
    shown_ones = list(zip(front.points, values, strict=True))
    if len(shown_ones) > MOST_NUMBERS:
        shown_ones = [each for each in shown_ones if each[0] in front.line][:MOST_NUMBERS]
    numbers = [(point.number, value, not point.dominated_by) for point, value in shown_ones]
    write_numbers(axes, numbers, values, corners)


def _said(front: Front) -> str:
    return _("{text}.", text=semicolons(_lines(front)))


def _lines(front: Front) -> Iterator[str]:
    for point in front.points:
        fields = {
            "number": point.number,
            "variant": one_line(point.variant),
            "cost": f"{shown(point.cost, front.scale).value}{front.scale.suffix}",
            "perplexity": point.written,
        }
        if point.dominated_by:
            yield _("{number}, {variant}: {cost}, perplexity {perplexity}, dominated", **fields)
        else:
            yield _("{number}, {variant}: {cost}, perplexity {perplexity}", **fields)
