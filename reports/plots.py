"""The report's pictures, each an inline SVG about as wide as a phone.

They are drawn with matplotlib's figures directly, without pyplot and its global state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgebench.reports import svg
from edgebench.reports.data import MEMORY_PARTS
from edgebench.reports.format import quantity, scale_for
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from edgebench.harness.results.model import Summary, Timeline
    from edgebench.reports.data import ReportData
    from edgebench.reports.series import TokenGaps
    from edgebench.reports.table import ComparisonTable

WIDTH = 350
ROW = 36
BAR_TOP, BAR_HEIGHT = 17, 10
LABEL_BASELINE = 12
LONGEST_LABEL = 44
MOST_LINES = 6
LINE_STYLES = ("-", "--", "-.", ":")
PARTS = tuple(zip(MEMORY_PARTS, ("anonymous", "file-backed", "shared"), strict=True))


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture.

    Attributes:
        title: a heading.
        svg: the picture.
        unit: the unit of what is drawn, where the picture has no axis that says it.
        legend: (name, class of its colour, dashes or empty) of each line or part.
        remark: what a reader needs to read it.
    """

    title: str
    svg: str
    unit: str = ""
    legend: tuple[tuple[str, str, str], ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    text: str
    parts: tuple[float, ...]
    mark: float | None
    low: float | None
    high: float | None
    strong: bool


def bar_plots(data: ReportData, table: ComparisonTable, *, name: str) -> tuple[Plot, ...]:
    """Bars with their intervals for the main metrics of one workload, memory in its parts.

    Args:
        data: the report's data.
        table: the comparison of the workload.
        name: a prefix, unique in the page.
    """
    plots = [
        _metric_bars(data, table, key, name=f"{name}-{key.replace('_', '-')}")
        for key in ("decode_rate", "ttft_s", "prefill_rate")
    ]
    plots.append(_memory_bars(data, table, name=f"{name}-memory"))
    return tuple(plots)


def gap_plot(data: ReportData, workload: str, *, name: str) -> Plot | None:
    """The gap before each token, median and spread; None where no variant has time stamps."""
    gaps = {
        variant: data.series.gaps[workload, variant]
        for variant in data.variant_ids
        if (workload, variant) in data.series.gaps
    }
    if not gaps:
        return None
    drawn = dict(list(gaps.items())[:MOST_LINES])
    scale = scale_for("s", [float(np.median(each.median_s)) for each in drawn.values()])
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=240)
        for variant, each in drawn.items():
            _gap_line(axes, each, data.variant_ids.index(variant), scale.size)
        axes.set_ylim(0, _gap_ceiling(drawn) / scale.size)
        _limits(axes, [each.token for each in drawn.values()])
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis_names(axes, x="token", y=f"{scale.unit} since the token before")
    said = "; ".join(
        f"{one_line(variant)}: median {quantity(float(np.median(each.median_s)), 's')}"
        for variant, each in drawn.items()
    )
    left_out = len(gaps) - len(drawn)
    return Plot(
        title=f"{one_line(workload)}: gap before each token",
        svg=svg.to_svg(
            figure,
            name=name,
            title=f"Gap before each token on {one_line(workload)}",
            description=f"In {scale.unit} against the token's number. {said}.",
        ),
        legend=tuple(_legend(data, variant) for variant in drawn),
        remark=f"{left_out} more variants are not drawn." if left_out else "",
    )


def memory_plots(data: ReportData, workload: str, *, name: str) -> tuple[Plot, ...]:
    """Memory over time of each variant: its first load, then its first measured generation."""
    places = [
        (place, variant)
        for place, variant in enumerate(data.variant_ids)
        if (workload, variant) in data.series.generation_memory
    ][:MOST_LINES]
    timelines = {
        variant: _joined(
            data.series.load_memory.get(variant),
            data.series.generation_memory[workload, variant],
        )
        for _, variant in places
    }
    peak = max((float(np.nanmax(each[1])) for each in timelines.values()), default=0.0)
    return tuple(
        _memory_over_time(timelines[variant], variant, peak, name=f"{name}-{place}")
        for place, variant in places
    )


def colour_class(place: int) -> str:
    """The style sheet's class of the colour that a variant has in every plot."""
    return f"s{place % len(svg.SERIES) + 1}"


def _metric_bars(data: ReportData, table: ComparisonTable, key: str, *, name: str) -> Plot:
    at = next(place for place, column in enumerate(table.columns) if column.key == key)
    column = table.columns[at]
    any_best = any(row.values[at].best for row in table.rows)
    bars = []
    for row in table.rows:
        value = row.values[at]
        summary = data.summary(table.workload, row.variant, key)
        median, low, high = _scaled(summary, column.scale.size)
        bars.append(
            _Bar(
                label=row.variant,
                text=f"{value.text} {value.interval}".strip()
                if value.sort is not None
                else "not measured",
                parts=(median,) if median is not None else (),
                mark=None,
                low=low,
                high=high,
                strong=value.best or not any_best,
            )
        )
    return Plot(
        title=column.label,
        unit=column.scale.unit,
        svg=_bars(bars, name=name, title=f"{column.label}, {column.scale.unit}"),
        remark={"higher": "longer is better", "lower": "shorter is better"}.get(
            column.better or "", ""
        ),
    )


def _memory_bars(data: ReportData, table: ComparisonTable, *, name: str) -> Plot:
    at = next(i for i, column in enumerate(table.columns) if column.key == "peak_rss_bytes")
    scale = table.columns[at].scale
    bars = []
    for row in table.rows:
        value = row.values[at]
        median, low, high = _scaled(
            data.summary(table.workload, row.variant, "peak_rss_bytes"), scale.size
        )
        parts = [
            _scaled(data.summary(table.workload, row.variant, key), scale.size)[0]
            for key, _ in PARTS
        ]
        known = tuple(part or 0.0 for part in parts) if any(parts) else ()
        bars.append(
            _Bar(
                label=row.variant,
                text=f"{value.text} {value.interval}".strip()
                if value.sort is not None
                else "not measured",
                parts=known or ((median,) if median is not None else ()),
                mark=median,
                low=low,
                high=high,
                strong=True,
            )
        )
    return Plot(
        title="Peak memory",
        unit=scale.unit,
        svg=_bars(bars, name=name, title=f"Peak memory, {scale.unit}", split=True),
        legend=tuple((label, f"m{number}", "") for number, (_, label) in enumerate(PARTS, start=1)),
        remark="shorter is better; the mark is what the system counted at the peak",
    )


def _scaled(
    summary: Summary | None, size: float
) -> tuple[float | None, float | None, float | None]:
    if summary is None or summary.median is None:
        return None, None, None
    low = None if summary.ci_low is None else summary.ci_low / size
    high = None if summary.ci_high is None else summary.ci_high / size
    return summary.median / size, low, high


def _bars(bars: Sequence[_Bar], *, name: str, title: str, split: bool = False) -> str:
    longest = max(
        (max(sum(bar.parts), bar.high or 0.0, bar.mark or 0.0) for bar in bars), default=0.0
    )
    height = ROW * len(bars)
    with mpl.rc_context(svg.DRAWING):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(0, (longest or 1.0) * 1.02)
        axes.set_ylim(height, 0)
        for place, bar in enumerate(bars):
            _bar(axes, bar, ROW * place, split=split)
    said = "; ".join(f"{one_line(bar.label)}: {bar.text}" for bar in bars)
    return svg.to_svg(figure, name=name, title=title, description=f"{said}.")


def _bar(axes: Axes, bar: _Bar, top: float, *, split: bool) -> None:
    right = axes.get_xlim()[1]
    middle = top + BAR_TOP + BAR_HEIGHT / 2
    axes.text(0, top + LABEL_BASELINE, _short(bar.label), va="baseline", ha="left")
    axes.text(right, top + LABEL_BASELINE, bar.text, va="baseline", ha="right", color=svg.MUTED)
    axes.barh(middle, right, height=BAR_HEIGHT, color=svg.GRID, alpha=0.5)
    left = 0.0
    for part, colour in zip(bar.parts, svg.PARTS, strict=False):
        fill = colour if split else svg.ACCENT if bar.strong else svg.BAR
        axes.barh(middle, part, left=left, height=BAR_HEIGHT, color=fill)
        left += part
    if bar.mark is not None:
        axes.plot([bar.mark] * 2, [middle - 7, middle + 7], color=svg.INK, linewidth=1.6)
    if bar.low is not None and bar.high is not None:
        axes.plot([bar.low, bar.high], [middle] * 2, color=svg.INK, linewidth=1.2)
        for end in (bar.low, bar.high):
            axes.plot([end] * 2, [middle - 3, middle + 3], color=svg.INK, linewidth=1.2)


def _short(label: str, room: int = LONGEST_LABEL) -> str:
    """A label cut in its middle: its begin names the framework, its end what tells it apart."""
    line = one_line(label)
    if len(line) <= room:
        return line
    begin = room * 2 // 3
    return f"{line[:begin].rstrip()}…{line[begin + 1 - room :]}"


def chart(*, height: int) -> tuple[Figure, Axes]:
    """An empty picture of so many pixels with two axes, as all of the page's are."""
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    left, right, top, bottom = 40, 8, 24, 32
    axes = figure.add_axes(
        (
            left / WIDTH,
            bottom / height,
            (WIDTH - left - right) / WIDTH,
            (height - top - bottom) / height,
        )
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.grid(visible=True, axis="y")
    axes.set_axisbelow(True)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure, axes


def axis_names(axes: Axes, *, x: str, y: str) -> None:
    """Write the names of the axes beside them."""
    axes.set_xlabel(x, labelpad=3)
    # Above the axis and level: a turned label is hard to read and takes width on a phone.
    axes.set_title(y, loc="left", x=-0.125, pad=9, fontsize=10, color=svg.MUTED)


def _limits(axes: Axes, tokens: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> None:
    first = min(float(each[0]) for each in tokens)
    last = max(float(each[-1]) for each in tokens)
    axes.set_xlim(first, last if last > first else first + 1)


def _gap_line(axes: Axes, gaps: TokenGaps, place: int, size: float) -> None:
    colour = svg.SERIES[place % len(svg.SERIES)]
    axes.fill_between(
        gaps.token, gaps.low_s / size, gaps.high_s / size, color=colour, alpha=0.18, linewidth=0
    )
    axes.plot(
        gaps.token,
        gaps.median_s / size,
        color=colour,
        linewidth=1.5,
        linestyle=LINE_STYLES[place % len(LINE_STYLES)],
        marker="o" if len(gaps.token) == 1 else None,
    )


def _gap_ceiling(gaps: Mapping[str, TokenGaps]) -> float:
    """High enough for every median line and all but the wildest of the spread."""
    highest_median = max(float(each.median_s.max()) for each in gaps.values())
    spread = max(float(np.percentile(each.high_s, 98)) for each in gaps.values())
    return max(highest_median, spread) * 1.08 or 1.0


def _legend(data: ReportData, variant: str) -> tuple[str, str, str]:
    place = data.variant_ids.index(variant)
    dashes = {"-": "", "--": "6 3", "-.": "7 2 2 2", ":": "2 2"}
    return variant, colour_class(place), dashes[LINE_STYLES[place % len(LINE_STYLES)]]


_Samples = tuple[
    np.ndarray[tuple[int], np.dtype[np.float64]],
    np.ndarray[tuple[int], np.dtype[np.float64]],
    tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...],
]


def _joined(load: Timeline | None, generation: Timeline) -> _Samples:
    """Time (0 where the prompt is handed over), RSS and its parts; not a number where unread."""
    pieces = [_samples(generation, 0.0)]
    if load is not None and load.t_s:
        step = load.t_s[-1] / max(len(load.t_s) - 1, 1)
        pieces.insert(0, _samples(load, -(load.t_s[-1] + step)))
    time = np.concatenate([piece[0] for piece in pieces])
    rss = np.concatenate([piece[1] for piece in pieces])
    parts = tuple(
        np.concatenate([piece[2][place] for piece in pieces]) for place in range(len(PARTS))
    )
    return time, rss, parts


def _samples(timeline: Timeline, shift: float) -> _Samples:
    columns = [
        np.array(each, dtype=np.float64)
        for each in (
            timeline.rss_bytes,
            timeline.anon_bytes,
            timeline.file_bytes,
            timeline.shared_bytes,
        )
    ]
    return np.array(timeline.t_s) + shift, columns[0], tuple(columns[1:])


def _memory_over_time(samples: _Samples, variant: str, peak: float, *, name: str) -> Plot:
    time, rss, parts = samples
    scale = scale_for("byte", [peak])
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=170)
        bottom = np.zeros_like(time)
        for part, colour in zip(parts, svg.PARTS, strict=True):
            top = bottom + np.nan_to_num(part) / scale.size
            axes.fill_between(time, bottom, top, color=colour, linewidth=0)
            bottom = top
        axes.plot(time, rss / scale.size, color=svg.INK, linewidth=1.2)
        if time[0] < 0:
            axes.axvline(0, color=svg.MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlim(float(time[0]), float(time[-1]) if time[-1] > time[0] else time[0] + 1)
        axes.set_ylim(0, peak / scale.size * 1.08 or 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axis_names(axes, x="s after the prompt was handed over", y=scale.unit)
    highest = quantity(float(np.nanmax(rss)), "byte")
    return Plot(
        title=one_line(variant),
        svg=svg.to_svg(
            figure,
            name=name,
            title=f"Memory over time of {one_line(variant)}",
            description=f"Loading, then one generation. The highest sample is {highest}.",
        ),
    )
