"""The picture of a roofline: FLOP/s against FLOP for each byte, both in orders of magnitude."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from edgebench.reports import svg
from edgebench.reports.format import decimals_for, number, percent
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.words import commas, semicolons
from edgebench.reports.lines import left_out_text
from edgebench.reports.picture import (
    Plot,
    axis_names,
    best_first,
    chart,
    frameworks_legend,
    looks,
    short,
    some_of_each,
)
from edgebench.reports.point_labels import MARKER, MOST_NUMBERS, write_numbers
from edgebench.reports.roofline import rooflines
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from edgebench.reports.data import ReportData
    from edgebench.reports.picture import Look
    from edgebench.reports.roofline import Reached, Roofline

HEIGHT = 300
POINTS = 72
"""In an inch."""
GIGA = 1e9
MOST_VARIANTS = 40
MOST_NAMED = 5
FONT_SIZE = 9.5
LETTER = 0.62
"""Width of a letter or digit of the roofs' figures, of its height."""
GAP = 8
"""Between a roof and its figure, in pixels."""

_ROOM = 1.7
"""Around the points, times."""

_WIDER = (1, 1.5, 2, 3, 5, 8, 13, 21, 34)
"""Tried in turn: how many times more room there is on the left."""


def roofline_plots(data: ReportData, *, name: str) -> tuple[Plot, ...]:
    """One picture for each machine.

    Args:
        data: the report's data.
        name: a prefix, unique in the page.
    """
    return tuple(
        _plot(data, each, name=f"{name}-{place}") for place, each in enumerate(rooflines(data))
    )


def roofline_plot(data: ReportData, *, name: str) -> Plot | None:
    """The picture of the first machine; None where no variant has a point."""
    found = rooflines(data)
    return _plot(data, found[0], name=name) if found else None


def how_to_read(data: ReportData | None = None) -> str:
    """What the pictures show and what they leave out, a few sentences.

    Args:
        data: the report's data; of a machine whose memory was not measured where None.
    """
    if data is not None and any(each.memory for each in rooflines(data)):
        return _(
            "Filled points are the generation of tokens, hollow ones the prompt. A token takes 2 "
            "FLOP for each parameter; the weights are read once for each generated token, and "
            "once for the whole prompt (an engine that takes it in parts reads them more often, "
            "and its point belongs further left). The KV cache and the attention are left out. "
            "The solid line is the fastest reading of the machine's memory, measured; a generation "
            "above it can't be right, unless its weights stay in a cache. A line that says ≥ was "
            "not measured: it is the highest that any variant reached, so the true roof is at "
            "least that high."
        )
    return _(
        "Filled points are the generation of tokens, hollow ones the prompt. A token takes 2 FLOP "
        "for each parameter; the weights are read once for each generated token, and once for the "
        "whole prompt (an engine that takes it in parts reads them more often, and its point "
        "belongs further left). The KV cache and the attention are left out. The lines are no "
        "limits of the machine, which were not measured: they are the highest memory traffic and "
        "the highest arithmetic that any variant reached, so the true roofs are at least that "
        "high."
    )


def _plot(data: ReportData, found: Roofline, *, name: str) -> Plot:
    seen = looks(data.record.variants)
    known = {each.variant for each in found.points}
    fastest = [each for each in best_first(data, found.workload, "decode_rate") if each in known]
    ranked = list(dict.fromkeys([*fastest, *(each.variant for each in found.points)]))
    drawn = set(some_of_each(data, ranked, MOST_VARIANTS))
    points = [each for each in found.points if each.variant in drawn]
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        axes.grid(visible=True, axis="x")
        _axes(axes, found, points)
        _roofs(axes, found)
        for each in points:
            _point(axes, each, seen[each.variant])
        places = [(each.intensity, each.flop_rate / GIGA) for each in points]
        if len(points) <= MOST_NUMBERS:
            numbers = [
                (each.number, place, each.phase == "decode")
                for each, place in zip(points, places, strict=True)
            ]
            write_numbers(axes, numbers, places, _steps(axes, found))
        axis_names(axes, x=_("FLOP for each byte of weights read"), y=_("GFLOP/s (↑ better)"))
    return Plot(
        title=_("{machine}, {workload}", machine=found.machine, workload=one_line(found.workload)),
        svg=svg.to_svg(
            figure,
            name=name,
            title=_(
                "Arithmetic against memory traffic on {machine}", machine=one_line(found.machine)
            ),
            description=_said(found, points),
        ),
        legend=_legend(data, found, points, seen),
        remark=_remark(found, len(known) - len(drawn)),
    )


def _axes(axes: Axes, found: Roofline, points: Sequence[Reached]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    along = [each.intensity for each in points] + [found.ridge]
    up = [each.flop_rate / GIGA for each in points]
    axes.set_ylim(min(up) / _ROOM, found.flop_rate / GIGA * _ROOM)
    # Left of the slope and below the level roof there is never a point that can be right: the
    # figures of both stand there, and get the room that they need.
    for widened in _WIDER:
        axes.set_xlim(min(along) / (_ROOM * widened), max(along) * _ROOM)
        if _has_room(axes, found):
            break
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1,) if high / low > 1000 else (1, 2, 5)))  # noqa: PLR2004
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _roofs(axes: Axes, found: Roofline) -> None:
    (left, right), bottom = axes.get_xlim(), axes.get_ylim()[0]
    top, slope = found.flop_rate / GIGA, found.slope / GIGA
    begin = max(left, bottom / slope)
    line: dict[str, Any] = {"color": svg.MUTED, "linewidth": 1.2, "linestyle": (0, (6, 3))}
    if begin < found.ridge:
        measured = {"linestyle": "solid"} if found.memory else {}
        axes.plot([begin, found.ridge], [begin * slope, top], **line | measured)
    axes.plot([max(found.ridge, left), right], [top, top], **line)
    written: dict[str, Any] = {"color": svg.MUTED, "fontsize": FONT_SIZE, "ha": "right"}
    back = axes.transData.inverted()
    for (across, up), said, place in _labels(axes, found):
        x, y = back.transform((across, up))
        axes.text(x, y, said, va=place, **written)


def _labels(axes: Axes, found: Roofline) -> Iterator[tuple[tuple[float, float], str, str]]:
    """The right ends of the roofs' figures in pixels, what they say, and how they stand on it."""
    left, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    top, slope = found.flop_rate / GIGA, found.slope / GIGA
    to_pixels = axes.transData
    x, y = to_pixels.transform((found.ridge, top))
    yield (x - GAP, y), f"≥ {_figure(top)} GFLOP/s", "center"
    begin = max(left, bottom / slope)
    if begin < found.ridge:
        middle = math.sqrt(begin * found.ridge)
        x, y = to_pixels.transform((middle, middle * slope))
        said = f"{_figure(slope)} GB/s" if found.memory else f"≥ {_figure(slope)} GB/s"
        yield (x - GAP, y + GAP), said, "bottom"


def _has_room(axes: Axes, found: Roofline) -> bool:
    """Whether the roofs' figures stand within the picture, and not on the figures of its axis."""
    edge = axes.transData.transform((axes.get_xlim()[0], axes.get_ylim()[0]))[0]
    letter = LETTER * FONT_SIZE * axes.figure.dpi / POINTS
    return all(
        right - len(said) * letter > edge + GAP
        for (right, _up), said, _place in _labels(axes, found)
    )


def _steps(axes: Axes, found: Roofline) -> list[tuple[float, float]]:
    """The level roof, on which no number is to stand."""
    right, top = axes.get_xlim()[1], found.flop_rate / GIGA
    return [(found.ridge, top), (right, top)]


def _point(axes: Axes, each: Reached, look: Look) -> None:
    axes.plot(
        [each.intensity],
        [each.flop_rate / GIGA],
        marker=look.marker,
        markersize=2 * MARKER,
        markeredgewidth=1.2,
        markeredgecolor=look.colour,
        markerfacecolor=look.colour if each.phase == "decode" else svg.SURFACE,
        zorder=3,
    )


def _legend(
    data: ReportData, found: Roofline, points: Sequence[Reached], seen: dict[str, Look]
) -> tuple[tuple[str, str, str], ...]:
    numbers = {each.variant: each.number for each in points}
    if len(points) > MOST_NUMBERS:
        return frameworks_legend(data.record.variants, numbers)
    shares = {
        each.variant: share
        for each in points
        if each.phase == "decode" and (share := found.memory_share(each)) is not None
    }
    return tuple(
        (_entry(place, variant, shares.get(variant)), seen[variant].style, "")
        for variant, place in numbers.items()
    )


def _entry(place: int, variant: str, share: float | None) -> str:
    named = f"{place}: {one_line(variant)}"
    if share is None:
        return named
    return _("{variant}, {share} of the memory's roof", variant=named, share=percent(share))


def _remark(found: Roofline, left_out: int) -> str:
    said = [left_out_text(left_out)]
    if found.memory is not None:
        said.append(
            _(
                "memory measured: {bytes} GB/s with {threads} at its fastest",
                bytes=_figure(found.slope / GIGA),
                threads=plural("{count} thread", "{count} threads", found.memory.threads),
            )
        )
    for why in dict.fromkeys(why for _variant, why in found.absent):
        names = [short(variant) for variant, each in found.absent if each == why]
        more = len(names) - MOST_NAMED
        listed = commas(names[:MOST_NAMED])
        if more > 0:
            rest = plural("{count} more variant", "{count} more variants", more)
            listed = commas((listed, rest))
        said.append(_("not drawn: {variants} ({why})", variants=listed, why=why))
    return semicolons(filter(None, said))


def _said(found: Roofline, points: Sequence[Reached]) -> str:
    phases = {"decode": _("generation"), "prefill": _("prompt")}
    each_said = semicolons(
        _(
            "{variant}, {phase}: {flop} GFLOP/s at {intensity} FLOP/byte",
            variant=one_line(each.variant),
            phase=phases[each.phase],
            flop=_figure(each.flop_rate / GIGA),
            intensity=_figure(each.intensity),
        )
        for each in points
    )
    if found.memory is not None:
        return _(
            "The highest that was reached: {flop} GFLOP/s. Memory, measured: {bytes} GB/s. "
            "{points}.",
            flop=_figure(found.flop_rate / GIGA),
            bytes=_figure(found.slope / GIGA),
            points=each_said,
        )
    return _(
        "The highest that was reached: {flop} GFLOP/s and {bytes} GB/s. {points}.",
        flop=_figure(found.flop_rate / GIGA),
        bytes=_figure(found.byte_rate / GIGA),
        points=each_said,
    )


def _figure(value: float) -> str:
    return number(value, decimals_for(value))
