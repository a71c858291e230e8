"""The third sentence of a report: what failed, and which figures are not to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.facts import TESTING_RUNNER
from edgebench.reports.languages import _
from edgebench.reports.opening_words import in_a_row, named, places
from edgebench.reports.sentences import Name, Sentence, fill
from edgebench.reports.table import flag_text
from edgebench.reports.tool_method import told_by_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgebench.harness.results.cell import Flag
    from edgebench.reports.data import ReportData

Groups = dict[tuple[str, ...], list[str]]
"""Variants with the workloads of each, those with the same ones together."""


def not_trusted(data: ReportData) -> Sentence:
    """What limits the whole report, then failures, then each flag with whom it is about."""
    if all(cell.status == "failed" for cell in data.cells.values()) and data.cells:
        return (_("There is nothing to trust: every variant failed, see Failures."),)
    found = [*_whole_run(data), *_failed(data), *_flagged(data)]
    if tools := told_by_tools(data):
        found.append(
            fill(
                "the speed of {names}, which edgebench did not time: their tools told it",
                names=named(tools),
            )
        )
    powers = [data.summaries(each, "mean_power_w") for each in data.workload_names]
    if powers and not any(powers):
        found.append((_("power, which was not measured"),))
    if any(each.source == "estimated" for power in powers for each in power.values()):
        found.append((_("power and energy, which are estimated, not measured"),))
    if not found:
        return (_("Nothing failed and no value is flagged; what was not measured has its reason."),)
    return fill("Not to be trusted, or missing: {items}.", items=in_a_row(found, _("; ")))


def _whole_run(data: ReportData) -> Iterable[Sentence]:
    record = data.record
    if any(each.runner == TESTING_RUNNER for each in record.variants):
        yield fill(
            "all figures of the runner {name}, which makes them up", name=Name(TESTING_RUNNER)
        )
    if any(part.record.quick for part in data.parts):
        yield (_("all figures, for this was a quick look"),)
    if record.status != "finished":
        yield (_("what is missing, for the run did not finish"),)
    prints = {each.record.machine.fingerprint for each in data.parts}
    if len(prints) > 1:
        yield (
            _("any comparison across the {count} machines as one of frameworks", count=len(prints)),
        )
    if data.sameness and data.sameness.bad:
        yield fill(
            "the figures of {names}, which could not be shown to compute the same model",
            names=named(tuple(dict.fromkeys(each.variant for each in data.sameness.bad))),
        )


def _failed(data: ReportData) -> Iterable[Sentence]:
    """Failures, with where: those that left nothing, then those that left something."""
    whole: dict[str, list[str]] = {}
    partly: dict[str, list[str]] = {}
    for (workload, variant), cell in data.cells.items():
        if cell.status == "failed":
            whole.setdefault(variant, []).append(workload)
        elif cell.n_failed:
            partly.setdefault(variant, []).append(workload)
    for workloads, variants in _alike(whole).items():
        yield fill("{names}, which failed on {where}", names=named(variants),
                   where=places(data, workloads))  # fmt: skip
    for workloads, variants in _alike(partly).items():
        yield fill("{names}, which failed in part on {where}", names=named(variants),
                   where=places(data, workloads))  # fmt: skip


def _flagged(data: ReportData) -> Iterable[Sentence]:
    """Each flag once, with the variants and workloads that have it."""
    # What a failed cell is flagged with says no more than that it failed.
    cells = {place: cell for place, cell in data.cells.items() if cell.n}
    flags: dict[Flag, dict[str, list[str]]] = {}
    for (workload, variant), cell in cells.items():
        for flag in cell.flags:
            if flag != "quick":
                flags.setdefault(flag, {}).setdefault(workload, []).append(variant)
    for flag, by_workload in flags.items():
        clauses = [
            fill("{who} on {where}", who=_who(data, variants), where=places(data, workloads))
            for variants, workloads in _alike(by_workload).items()
        ]
        yield fill("{flag} ({who})", flag=flag_text(flag), who=in_a_row(clauses, _(", ")))


def _who(data: ReportData, variants: tuple[str, ...]) -> Sentence:
    if len(variants) == len(data.variant_ids) > 1:
        return (_("all variants"),)
    return named(variants)


def _alike(lists: Mapping[str, list[str]]) -> Groups:
    """By list, the keys that have it."""
    found: Groups = {}
    for key, values in lists.items():
        found.setdefault(tuple(values), []).append(key)
    return found
