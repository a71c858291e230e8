"""The first three sentences of a report: what was measured, what won where, what not to trust."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.reports.colours import framework_key
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.words import commas, day_text
from edgebench.reports.opening_trust import not_trusted
from edgebench.reports.opening_won import won
from edgebench.reports.opening_words import NAMED_AT_MOST, named
from edgebench.reports.run_labels import machine_name
from edgebench.reports.sentences import Name, Sentence, fill, listed

if TYPE_CHECKING:
    from datetime import date

    from edgebench.reports.data import ReportData


def opening(data: ReportData) -> tuple[Sentence, Sentence, Sentence]:
    """What was measured; what won where, by how much and how surely; what is not to be trusted."""
    return _measured(data), won(data), not_trusted(data)


def _measured(data: ReportData) -> Sentence:
    model = data.record.scenario.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    parts: dict[str, object] = {
        "model": Name(str(name)) if name else _("A model"),
        "frameworks": listed(framework_names(data)),
        "variants": plural("{count} variant", "{count} variants", len(data.variant_ids)),
        "workloads": _workloads(data),
        "machine": _machines(data),
        "date": _dates(data),
        "measured": _amount(data),
    }
    return fill(
        "{model} ran in {frameworks}, as {variants} on {workloads}, on {machine}, {date}: "
        "{measured}.",
        **parts,
    )


def framework_names(data: ReportData) -> tuple[str, ...]:
    """The frameworks that the run is about, in words, each once."""
    from edgebench.reports.frameworks_table import framework_name  # noqa: PLC0415 - it needs us

    keys = dict.fromkeys(framework_key(each) for each in data.record.variants)
    return tuple(dict.fromkeys(framework_name(key) for key in keys))


def _workloads(data: ReportData) -> Sentence:
    names = [each.name for each in data.record.workloads]
    if len(names) <= NAMED_AT_MOST:
        return listed(names)
    return (plural("{count} workload", "{count} workloads", len(names)),)


def _machines(data: ReportData) -> Sentence:
    models = tuple(dict.fromkeys(machine_name(each.record.machine) for each in data.parts))
    prints = {each.record.machine.fingerprint for each in data.parts}
    if len(prints) > 1:
        return fill("{count} machines ({names})", count=len(prints), names=named(models))
    return (Name(models[0]),)


def _dates(data: ReportData) -> str:
    days = sorted(each for part in data.parts if (each := _day(part.record.created_at)) is not None)
    if not days:
        return _("at an unknown time")
    first, last = day_text(days[0]), day_text(days[-1])
    if days[0] == days[-1]:
        return _("on {date}", date=first)
    return _("between {first} and {last}", first=first, last=last)


def _amount(data: ReportData) -> str:
    timed = sum(cell.n for (name, _v), cell in data.cells.items() if name not in data.quality_names)
    rated = sum(
        1 for (name, _v), cell in data.cells.items() if name in data.quality_names and cell.n
    )
    found = []
    if timed:
        found.append(plural("{count} measured repetition", "{count} measured repetitions", timed))
    if rated:
        found.append(plural("{count} rating of a text", "{count} ratings of a text", rated))
    return commas(found) or _("nothing was measured")


def _day(moment: str) -> date | None:
    try:
        when = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (when.astimezone(UTC) if when.tzinfo is not None else when).date()
