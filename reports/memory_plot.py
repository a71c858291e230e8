"""Memory over time: a model's loading, then one generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from edgebench.reports import svg
from edgebench.reports.bars import STRENGTHS
from edgebench.reports.format import quantity, scale_for
from edgebench.reports.languages import _
from edgebench.reports.lines import MOST_LINES
from edgebench.reports.picture import Plot, axis_names, best_first, chart, looks, some_of_each
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgebench.harness.results.trial import Timeline
    from edgebench.reports.data import ReportData

    Samples = tuple[NDArray[np.float64], NDArray[np.float64], tuple[NDArray[np.float64], ...]]

HEIGHT = 170


def memory_plots(data: ReportData, workload: str, *, name: str) -> tuple[Plot, ...]:
    """Memory over time of each variant: its first load, then its first measured generation.

    Of many variants the fastest of each framework are drawn.
    """
    known = [each for each in data.variant_ids if (workload, each) in data.series.generation_memory]
    fastest = [each for each in best_first(data, workload, "decode_rate") if each in set(known)]
    drawn = some_of_each(data, list(dict.fromkeys([*fastest, *known])), MOST_LINES)
    timelines = {
        variant: _joined(
            data.series.load_memory.get(variant),
            data.series.generation_memory[workload, variant],
        )
        for variant in drawn
    }
    peak = max((float(np.nanmax(each[1])) for each in timelines.values()), default=0.0)
    seen = looks(data.record.variants)
    return tuple(
        _over_time(timelines[variant], variant, peak, seen[variant].colour, name=f"{name}-{place}")
        for place, variant in enumerate(drawn)
    )


def _joined(load: Timeline | None, generation: Timeline) -> Samples:
    """Time (0 where the prompt is handed over), RSS and its parts; not a number where unread."""
    pieces = [_samples(generation, 0.0)]
    if load is not None and load.t_s:
        step = load.t_s[-1] / max(len(load.t_s) - 1, 1)
        pieces.insert(0, _samples(load, -(load.t_s[-1] + step)))
    time = np.concatenate([piece[0] for piece in pieces])
    rss = np.concatenate([piece[1] for piece in pieces])
    parts = tuple(
        np.concatenate([piece[2][place] for piece in pieces]) for place in range(len(STRENGTHS))
    )
    return time, rss, parts


def _samples(timeline: Timeline, shift: float) -> Samples:
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


def _over_time(samples: Samples, variant: str, peak: float, colour: str, *, name: str) -> Plot:
    time, rss, parts = samples
    scale = scale_for("byte", [peak])
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        bottom = np.zeros_like(time)
        for part, strength in zip(parts, STRENGTHS, strict=True):
            top = bottom + np.nan_to_num(part) / scale.size
            axes.fill_between(time, bottom, top, color=colour, alpha=strength, linewidth=0)
            bottom = top
        axes.plot(time, rss / scale.size, color=svg.INK, linewidth=1.2)
        if time[0] < 0:
            axes.axvline(0, color=svg.MUTED, linewidth=1, linestyle=(0, (3, 3)))
        axes.set_xlim(float(time[0]), float(time[-1]) if time[-1] > time[0] else time[0] + 1)
        axes.set_ylim(0, peak / scale.size * 1.08 or 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axis_names(axes, x=_("s after the prompt was handed over"), y=scale.unit)
    return Plot(
        title=one_line(variant),
        svg=svg.to_svg(
            figure,
            name=name,
            title=_("Memory over time of {variant}", variant=one_line(variant)),
            description=_(
                "Loading, then one generation. The highest sample is {highest}.",
                highest=quantity(float(np.nanmax(rss)), "byte"),
            ),
        ),
    )
