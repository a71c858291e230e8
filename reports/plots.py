"""The report's pictures, each an inline SVG about as wide as a phone.

What they share is in `edgebench.reports.picture`; here is who draws which.
"""

from __future__ import annotations

from edgebench.reports.bars import bar_plots
from edgebench.reports.lines import gap_plot, time_plot, token_plots
from edgebench.reports.memory_plot import memory_plots
from edgebench.reports.pareto_plot import front_plot
from edgebench.reports.picture import LONGEST_LABEL, Look, Plot, looks, short
from edgebench.reports.roofline_plot import how_to_read, roofline_plot, roofline_plots
from edgebench.reports.sustained_plot import sustained_plots

__all__ = [
    "LONGEST_LABEL",
    "Look",
    "Plot",
    "bar_plots",
    "front_plot",
    "gap_plot",
    "how_to_read",
    "looks",
    "memory_plots",
    "roofline_plot",
    "roofline_plots",
    "short",
    "sustained_plots",
    "time_plot",
    "token_plots",
]
