"""Which meters a report's energies are of, and whether they can be held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.results.meters import METERED, meter_of
from edgebench.reports.facts import Banner
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas
from edgebench.reports.metric_names import by_source
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import RunRecord
    from edgebench.reports.data import Part, ReportData


def why_apart(data: ReportData, key: str) -> str:
    """Why values of a metric are not compared with each other; empty where they are.

    Energies are compared where they are of one meter; where a run does not say which it was, where
    all are measured, or all are estimates.
    """
    if key not in METERED or len(data.parts) == 1:
        return ""
    found = dict.fromkeys(
        each for part in data.parts if (each := _meter(data, part, key)) is not None
    )
    kinds = {estimated for estimated, _name in found}
    named = {name for _estimated, name in found if name}
    if len(kinds) <= 1 and len(named) <= 1:
        return ""
    return _("they are of different meters: {meters}", meters=commas(map(_written, found)))


def meter_facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """The meters of a run, the one that its energies are of first, as (fact, value)."""
    if not record.meters:
        return ()
    first, *others = (one_line(by_source(each.name, each.source)) for each in record.meters)
    facts = ((_("Energy meter"), first),)
    return (*facts, (_("Meters read beside it"), commas(others))) if others else facts


def meter_method(data: ReportData) -> tuple[tuple[str, str], ...]:
    """What a report says of its energies beside how else it was measured, as (subject, text)."""
    meters = dict.fromkeys(
        one_line(by_source(first.name, first.source))
        for part in data.parts
        for first in part.record.meters[:1]
    )
    if not meters:
        return ()
    text = _(
        "Of {meters}, between two of the runner's own time stamps. All that this covers is in it, "
        "other work and idle power too. Energies of different meters do not compare.",
        meters=commas(meters),
    )
    return ((_("Energy"), text),)


def meter_banners(data: ReportData) -> Iterator[Banner]:
    """That energies of several runs are of different meters, and what follows from it."""
    why = next(filter(None, (why_apart(data, key) for key in sorted(METERED))), "")
    if why:
        yield Banner(
            _("Energies of these runs do not compare."),
            _(
                "Of power and energy: {why}. Nothing is called the best in them, and nothing is "
                "chosen by them.",
                why=why,
            ),
        )


def _meter(data: ReportData, part: Part, key: str) -> tuple[bool, str] | None:
    """Whether a run's values of a metric are estimates, and its meter; None where it has none."""
    sources = {
        summary.source
        for workload in data.record.workloads
        for variant in part.variants
        if (summary := data.summary(workload.name, variant, key)) and summary.median is not None
    }
    if not sources:
        return None
    return "estimated" in sources, meter_of(part.record, key) or ""


def _written(meter: tuple[bool, str]) -> str:
    estimated, name = meter
    return by_source(one_line(name) or _("one that is not named"), "estimated" if estimated else "")
