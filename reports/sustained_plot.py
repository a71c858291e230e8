"""Rate, clock, temperature and power of sustained work, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

from edgebench.reports import svg
from edgebench.reports.format import quantity, scale_for
from edgebench.reports.languages import _
from edgebench.reports.languages.words import semicolons
from edgebench.reports.lines import MOST_LINES
from edgebench.reports.metric_names import metric_label
from edgebench.reports.picture import (
    Plot,
    axis_names,
    best_first,
    chart,
    looks,
    some_of_each,
    with_unit,
)
from edgebench.reports.sustained import POWER_KEY, RATE_KEY, series_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.sustained import SustainedRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.sustained import SustainedView

HEIGHT = 190


def sustained_plots(data: ReportData, view: SustainedView, *, name: str) -> tuple[Plot, ...]:
    """A picture for each quantity that was read, with a line for each variant.

    Of many variants those that keep up the highest rate are drawn.
    """
    ranked = [
        each for each in best_first(data, view.workload, "sustained_rate") if each in view.stretches
    ]
    # A rate that can't be right would press all others to the axis.
    right = [each for each in view.stretches if not data.is_broken(view.workload, each)]
    ranked += [each for each in right if each not in ranked]
    chosen = some_of_each(data, ranked, MOST_LINES)
    drawn = {each: view.stretches[each] for each in chosen}
    if not drawn:
        return ()
    keys = [(key, unit) for key, unit, _values in series_of(next(iter(drawn.values())))]
    made = (
        _plot(data, view.workload, drawn, key, unit, name=f"{name}-{number}")
        for number, (key, unit) in enumerate(keys)
    )
    return tuple(plot for plot in made if plot is not None)


def _plot(
    data: ReportData,
    workload: str,
    drawn: Mapping[str, SustainedRecord],
    key: str,
    unit: str,
    *,
    name: str,
) -> Plot | None:
    found = {variant: _values(stretch, key) for variant, stretch in drawn.items()}
    lines = {
        variant: values
        for variant, values in found.items()
        if any(each is not None for each in values)
    }
    if not lines:
        return None
    seen = looks(data.record.variants)
    scale = scale_for(unit, [_mean(values) for values in lines.values()])
    with mpl.rc_context(svg.DRAWING):
        figure, axes = chart(height=HEIGHT)
        for variant, values in lines.items():
            stretch, look = drawn[variant], seen[variant]
            heights = np.array(values, dtype=np.float64) / scale.size
            axes.plot(
                np.array(stretch.t_s),
                heights,
                color=look.colour,
                linewidth=1.5,
                linestyle=look.line,
                marker=look.marker if len(heights) == 1 else None,
            )
            if key == RATE_KEY and stretch.throttled_at_s is not None:
                axes.axvline(
                    stretch.throttled_at_s, color=look.colour, linewidth=1, linestyle=(0, (1, 3))
                )
        axes.set_xlim(0, max(each.lasted_s for each in drawn.values()))
        if key != "cpu_temperature_celsius":
            axes.set_ylim(bottom=0)
        axis_names(axes, x=_("s after the first prompt was handed over"), y=scale.unit)
    label = metric_label(key)
    titled = _("{workload}: {metric} over time", workload=one_line(workload), metric=label)
    return Plot(
        title=titled,
        svg=svg.to_svg(
            figure,
            name=name,
            title=titled,
            description=_(
                "{quantity} against time. {lines}.",
                quantity=with_unit(label, scale.unit),
                lines=semicolons(
                    _(
                        "{variant}: from {first} to {last}",
                        variant=one_line(variant),
                        first=quantity(_first(values), unit),
                        last=quantity(_first(values[::-1]), unit),
                    )
                    for variant, values in lines.items()
                ),
            ),
        ),
        legend=tuple((each, seen[each].style, seen[each].dashes) for each in lines),
        remark=_remark(key, [drawn[each] for each in lines]),
    )


def _remark(key: str, stretches: Sequence[SustainedRecord]) -> str:
    if key == POWER_KEY and any(each.power_source == "estimated" for each in stretches):
        return _("Estimated, not measured.")
    if key == RATE_KEY and any(each.throttled_at_s is not None for each in stretches):
        return _("A dotted line is where the rate fell.")
    return ""


def _values(stretch: SustainedRecord, key: str) -> Sequence[float | None]:
    return next(values for each, _unit, values in series_of(stretch) if each == key)


def _mean(values: Sequence[float | None]) -> float:
    known = [each for each in values if each is not None]
    return sum(known) / len(known)


def _first(values: Sequence[float | None]) -> float | None:
    return next((each for each in values if each is not None), None)
