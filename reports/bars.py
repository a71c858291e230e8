"""Bars with their intervals: rates, times, and memory in its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

from edgebench.reports import svg
from edgebench.reports.data import MEMORY_PARTS
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.words import semicolons
from edgebench.reports.picture import (
    FONT_SIZE,
    WIDTH,
    Plot,
    frameworks_legend,
    looks,
    short,
    text_width,
    with_unit,
)
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.reports.data import ReportData
    from edgebench.reports.table_model import Column, Row, Table

ROW = 36
BAR_TOP, BAR_HEIGHT = 17, 10
LABEL_BASELINE = 12
LABEL_GAP = 10
CHARACTER = 5.6
"""Width of a usual one, in pixels."""

MOST_BARS = 40
"""More bars than this nobody reads, and the table has them all."""

METRICS = ("decode_rate", "ttft_s", "prefill_rate")

MEMORY = "peak_rss_bytes"
PARTS = tuple(zip(MEMORY_PARTS, (N_("anonymous"), N_("file-backed"), N_("shared")), strict=True))
STRENGTHS = (1.0, 0.55, 0.25)
"""Of a framework's colour in the parts of its memory: what must stay is the strongest."""

_LONGER = N_("longer is better")
_SHORTER = N_("shorter is better")
_MARK = N_("shorter is better; the mark is what the system counted at the peak")


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    text: str
    colour: str
    parts: tuple[float, ...]
    mark: float | None
    low: float | None
    high: float | None
    strong: bool


def bar_plots(data: ReportData, table: Table, *, name: str) -> tuple[Plot, ...]:
    """Bars with their intervals for the main metrics of one workload, memory in its parts.

    The best is the first; of more than `MOST_BARS` variants only the best are drawn. A metric that
    no variant has a value of has no picture: the table says why.

    Args:
        data: the report's data.
        table: the comparison of the workload.
        name: a prefix, unique in the page.
    """
    places = {column.key: place for place, column in enumerate(table.columns)}
    return tuple(
        _plot(data, table, places[key], name=f"{name}-{key.replace('_', '-')}")
        for key in (*METRICS, MEMORY)
        if key in places and any(row.values[places[key]].sort is not None for row in table.rows)
    )


def _plot(data: ReportData, table: Table, at: int, *, name: str) -> Plot:
    column = table.columns[at]
    rows = _ranked(table, at)
    drawn = rows[:MOST_BARS]
    split = column.key == MEMORY
    keys = tuple(key for key, _label in PARTS) if split else ()
    seen = looks(data.record.variants)
    bars = [
        _bar_of(data, table, row, at, colour=seen[row.variant].colour, keys=keys) for row in drawn
    ]
    title = _(
        "{metric} on {workload}",
        metric=with_unit(column.label, column.scale.unit),
        workload=one_line(table.workload),
    )
    legend = frameworks_legend(data.record.variants, {row.variant for row in drawn})
    if split:
        parts = enumerate(PARTS, start=1)
        legend += tuple((_(label), f"m{number}", "") for number, (_key, label) in parts)
    return Plot(
        title=column.label,
        unit=column.scale.unit,
        svg=_drawn(bars, name=name, title=title, split=split),
        legend=legend,
        remark=_remark(column, len(rows) - len(drawn)),
    )


def _ranked(table: Table, at: int) -> list[Row]:
    """The rows from the best value on, those without a value last."""
    sign = 1 if table.columns[at].better == "lower" else -1

    def place(row: Row) -> tuple[bool, float]:
        value = row.values[at].sort
        return value is None, 0.0 if value is None else sign * value

    return sorted(table.rows, key=place)


def _remark(column: Column, left_out: int) -> str:
    if column.key == MEMORY:
        how = _(_MARK)
    else:
        known = {"higher": _LONGER, "lower": _SHORTER}.get(column.better or "")
        how = _(known) if known else ""
    if not left_out:
        return how
    rest = plural(
        "the best {most} are drawn; {count} more variant is in the table",
        "the best {most} are drawn; {count} more variants are in the table",
        left_out,
        most=MOST_BARS,
    )
    return semicolons(filter(None, (how, rest)))


def _bar_of(
    data: ReportData, table: Table, row: Row, at: int, *, colour: str, keys: Sequence[str]
) -> _Bar:
    """One row's bar: whole, or in the parts that some metrics are where they were measured."""
    column, value = table.columns[at], row.values[at]

    def scaled(key: str) -> tuple[float | None, float | None, float | None]:
        return _scaled(data.summary(table.workload, row.variant, key), column.scale.size)

    median, low, high = scaled(column.key)
    parts = [scaled(key)[0] for key in keys]
    known = tuple(part or 0.0 for part in parts) if any(parts) else ()
    absent = _("failed") if row.failed else _("not measured")
    return _Bar(
        label=row.variant,
        text=f"{value.text} {value.interval}".strip() if value.sort is not None else absent,
        colour=colour,
        parts=known or ((median,) if median is not None else ()),
        mark=median if keys else None,
        low=low,
        high=high,
        strong=value.best,
    )


def _scaled(
    summary: Summary | None, size: float
) -> tuple[float | None, float | None, float | None]:
    if summary is None or summary.median is None:
        return None, None, None
    low = None if summary.ci_low is None else summary.ci_low / size
    high = None if summary.ci_high is None else summary.ci_high / size
    return summary.median / size, low, high


def _drawn(bars: Sequence[_Bar], *, name: str, title: str, split: bool) -> str:
    longest = max(
        (max(sum(bar.parts), bar.high or 0.0, bar.mark or 0.0) for bar in bars), default=0.0
    )
    with mpl.rc_context(svg.DRAWING):
        # Straight onto the figure, in pixels: axes would cost more time than all that is in them.
        figure = Figure(figsize=(WIDTH / 72, ROW * len(bars) / 72), dpi=72)
        for place, bar in enumerate(bars):
            top = ROW * (len(bars) - place)
            _draw(figure, bar, top, WIDTH / 1.02 / (longest or 1.0), split=split)
    said = semicolons(
        _("{variant}: {value}", variant=one_line(bar.label), value=bar.text) for bar in bars
    )
    return svg.to_svg(figure, name=name, title=title, description=_("{text}.", text=said))


def _draw(figure: Figure, bar: _Bar, top: float, scale: float, *, split: bool) -> None:
    """One row: its texts and below them its bar.

    Args:
        figure: what to draw on.
        bar: what to draw.
        top: of the row, in pixels from the bottom of the figure.
        scale: pixels for each unit.
        split: whether its parts are told apart.
    """
    bottom, middle = top - BAR_TOP - BAR_HEIGHT, top - BAR_TOP - BAR_HEIGHT / 2
    room = WIDTH / CHARACTER - text_width(bar.text) - LABEL_GAP / CHARACTER
    _text(figure, 0, top - LABEL_BASELINE, short(bar.label, room), svg.INK)
    colour = svg.INK if bar.strong else svg.MUTED
    _text(figure, WIDTH, top - LABEL_BASELINE, bar.text, colour, right=True, bold=bar.strong)
    _box(figure, 0, bottom, WIDTH, svg.GRID, 0.5)
    left = 0.0
    for part, strength in zip(bar.parts, STRENGTHS, strict=False):
        if part:
            alpha = strength if split and len(bar.parts) > 1 else 1.0
            _box(figure, left * scale, bottom, part * scale, bar.colour, alpha)
            left += part
    if bar.mark is not None:
        _line(figure, (bar.mark * scale,) * 2, (middle - 7, middle + 7), 1.6)
    if bar.low is not None and bar.high is not None:
        ends = bar.low * scale, bar.high * scale
        _line(figure, ends, (middle, middle), 1.2)
        for end in ends:
            _line(figure, (end, end), (middle - 3, middle + 3), 1.2)


def _text(
    figure: Figure,
    x: float,
    y: float,
    text: str,
    colour: str,
    *,
    right: bool = False,
    bold: bool = False,
) -> None:
    figure.add_artist(
        Text(
            x,
            y,
            text,
            color=colour,
            fontsize=FONT_SIZE,
            fontweight="bold" if bold else "normal",
            horizontalalignment="right" if right else "left",
            verticalalignment="baseline",
            parse_math=False,
            transform=IdentityTransform(),
        )
    )


def _box(figure: Figure, x: float, y: float, width: float, colour: str, alpha: float) -> None:
    figure.add_artist(
        Rectangle(
            (x, y),
            width,
            BAR_HEIGHT,
            facecolor=colour,
            edgecolor="none",
            alpha=alpha,
            transform=IdentityTransform(),
        )
    )


def _line(figure: Figure, x: tuple[float, float], y: tuple[float, float], width: float) -> None:
    figure.add_artist(Line2D(x, y, color=svg.INK, linewidth=width, transform=IdentityTransform()))
