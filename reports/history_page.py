"""A page of the trends of all series, complete in itself. English only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from edgebench.reports.history_plot import Trend, plot_title, trend_plot
from edgebench.reports.history_words import sentences
from edgebench.reports.html import render_alone
from edgebench.reports.lines import MOST_LINES
from edgebench.reports.picture import DASHES, MARKERS, Look
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.history.findings import Findings
    from edgebench.harness.history.model import Series
    from edgebench.reports.picture import Plot

INTRO = (
    "Medians of runs with their 95 % intervals. A diamond on a dashed line is a step, a dashed "
    "line across runs a drift."
)


@dataclass(frozen=True, slots=True)
class Group:
    """The series of one scenario on one machine.

    Attributes:
        key: unique in the page.
        title: in words.
        sentences: its steps and drifts; or that there is none.
        plots: one for each workload and metric, and more where there are many variants.
    """

    key: str
    title: str
    sentences: tuple[str, ...]
    plots: tuple[Plot, ...]


def history_page(found: Sequence[tuple[Series, Findings]]) -> str:
    """The page, as HTML.

    Args:
        found: series with what was found in them, ordered by machine and scenario; at least one.
    """
    groups = []
    by_place = groupby(found, key=lambda each: (each[0].subject.machine, each[0].subject.scenario))
    for number, ((machine, scenario), members) in enumerate(by_place):
        listed = list(members)
        cpu = one_line(listed[0][0].cpu_model)
        told = tuple(text for series, findings in listed for text in sentences(series, findings))
        testing = any(series.subject.testing for series, _found in listed)
        synthetic = any(series.subject.synthetic for series, _found in listed)
        made_up = (
            *(("The figures are of synthetic weights.",) if synthetic else ()),
            *(("The testing runner makes its figures up.",) if testing else ()),
        )
        groups.append(
            Group(
                key=f"group-{number}",
                title=f"{one_line(scenario)} on {cpu} ({one_line(machine)})",
                sentences=(*made_up, *(told or ("No step and no drift can be told from noise.",))),
                plots=tuple(_plots(listed, f"group-{number}")),
            )
        )
    return render_alone(
        "history.html.j2", {"title": "History of results", "intro": INTRO, "groups": groups}
    )


def _plots(listed: Sequence[tuple[Series, Findings]], key: str) -> Iterator[Plot]:
    looks = _looks(listed)
    ordered = sorted(listed, key=lambda each: (each[0].subject.workload, each[0].subject.metric))
    number = 0
    for (workload, metric, _unit), members in groupby(
        ordered,
        key=lambda each: (
            each[0].subject.workload,
            each[0].subject.metric,
            each[0].subject.unit,
        ),
    ):
        trends = [Trend(series, findings, looks[_line(series)]) for series, findings in members]
        for first in range(0, len(trends), MOST_LINES):
            title = plot_title(workload, metric)
            yield trend_plot(
                trends[first : first + MOST_LINES], title=title, name=f"{key}-{number}"
            )
            number += 1


def _line(series: Series) -> str:
    """A name for each line of a picture: estimates, and each meter, are a line of their own."""
    subject = series.subject
    return f"{series.name} {'(estimated)' * (subject.source == 'estimated')}{subject.meter}"


def _looks(listed: Sequence[tuple[Series, Findings]]) -> dict[str, Look]:
    """A look for each variant: no two in a picture have the same."""
    variants = dict.fromkeys(_line(series) for series, _found in listed)
    return {
        variant: Look(
            f"s{place % len(MARKERS) + 1}",
            DASHES[place // len(MARKERS) % len(DASHES)],
            MARKERS[place % len(MARKERS)],
        )
        for place, variant in enumerate(variants)
    }
