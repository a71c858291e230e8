"""From a summary to what stands in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import shown
from edgebench.reports.languages import N_, _
from edgebench.reports.table_model import Value

if TYPE_CHECKING:
    from edgebench.harness.results.cell import Summary
    from edgebench.reports.format import Scale

ESTIMATED = N_("estimated")
ENGINE = N_("engine")


def value_of(summary: Summary, scale: Scale) -> Value:
    """A measured value with all that its summary says of it.

    Args:
        summary: one with a median.
        scale: the unit of its column.
    """
    text = shown(summary, scale)
    return Value(
        text=text.value,
        interval=text.interval,
        sort=summary.median,
        low=summary.ci_low,
        high=summary.ci_high,
        unit=summary.unit,
        n=summary.n,
        source=summary.source,
        # Wherever one of these stands, it says so, whatever else stands in its column.
        chip=_(summary.source) if summary.source in {ESTIMATED, ENGINE} else "",
    )
