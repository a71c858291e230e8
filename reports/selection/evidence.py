"""What the measurements say for and against each framework, a sentence each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.reports.colours import framework_key
from edgebench.reports.framework_choice import framework_name, standings
from edgebench.reports.languages import N_
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.selection.abilities import capability_checks
from edgebench.reports.selection.analysis import TESTING_RUNNER, analyse
from edgebench.reports.selection.evidence_goals import Field, goal_findings
from edgebench.reports.selection.goals import is_higher_better
from edgebench.reports.selection.view import Evidence, Finding
from edgebench.reports.sentences import Name, fill
from edgebench.reports.table import flag_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis
    from edgebench.reports.selection.check import Check
    from edgebench.reports.selection.goals import Stands


def evidence(
    data: ReportData, requirements: Requirements, recommended: Sequence[str]
) -> tuple[Evidence, ...]:
    """For and against each framework of the report, and each that is recommended.

    Each framework is stood for by one variant: the one that the measurements recommend, else, of
    those that meet all limits, the one with the highest score, else one of which that is not known,
    else one that has any value. In each goal it is compared with the best of the other frameworks'
    variants.

    Args:
        data: of one run or several.
        requirements: the user's limits and weights.
        recommended: names of runners, whose frameworks stand first, also where they did not run.
    """
    analysis = analyse(data, requirements)
    groups: dict[tuple[str, str], list[VariantRecord]] = {}
    for variant in data.record.variants:
        groups.setdefault((variant.runner, framework_key(variant)), []).append(variant)
    if any(runner != TESTING_RUNNER for runner, _key in groups):
        groups = {each: own for each, own in groups.items() if each[0] != TESTING_RUNNER}
    field = _field(analysis, groups)
    found = [
        _of_framework(data, analysis, key, own, field, requirements) for key, own in groups.items()
    ]
    for runner in dict.fromkeys(recommended):
        if not any(each.runner == runner for each in found):
            found.append(_absent(runner, requirements))
    places = {runner: place for place, runner in enumerate(dict.fromkeys(recommended))}
    return tuple(sorted(found, key=lambda each: places.get(each.runner, len(places))))


def _field(analysis: Analysis, groups: Mapping[tuple[str, str], Sequence[VariantRecord]]) -> Field:
    """All that is compared: what came through all workloads, whether it meets limits or not."""
    frameworks = {
        each.id: key
        for key, own in groups.items()
        for each in own
        if each.id not in analysis.failed
    }
    meeting = (each for each in frameworks if analysis.meets_limits(each))
    return Field(frameworks, frozenset(meeting))


def _representative(data: ReportData, analysis: Analysis, own: Sequence[VariantRecord]) -> str:
    """The variant that stands for a framework; empty where none has a value of any workload."""
    ran = [each.id for each in own if any(each.n for each in _cells(data, each.id))]
    ranks = {True: 0, None: 1, False: 2}

    def rank(variant: str) -> tuple[bool, bool, int, bool, float]:
        # One that failed somewhere may meet all limits elsewhere: it is excluded all the same.
        return (
            variant != analysis.best,
            variant not in analysis.left,
            ranks[analysis.meets_limits(variant)],
            variant in analysis.failed,
            -_standing(analysis, variant),
        )

    return min(ran, key=rank, default="")


def _cells(data: ReportData, variant: str) -> list[Cell]:
    """All cells that a variant has in its own run, of prompts and of texts."""
    workloads = data.part_of(variant).record.workloads
    return [data.cell(each.name, variant) for each in workloads]


def _standing(analysis: Analysis, variant: str) -> float:
    """The logarithm of a score, up to what all variants have in common; of those out as well."""
    weights = analysis.weights or {"decode_rate": 1.0}
    total = 0.0
    for goal, weight in weights.items():
        stand = analysis.stands.by_goal[goal][variant]
        if not stand.known:
            return -math.inf
        total += (weight if is_higher_better(goal) else -weight) * math.log(stand.value)
    return total


def _of_framework(
    data: ReportData,
    analysis: Analysis,
    key: tuple[str, str],
    own: Sequence[VariantRecord],
    field: Field,
    requirements: Requirements,
) -> Evidence:
    runner, framework = key
    variant = _representative(data, analysis, own)
    if not variant:
        tried = any(one.failure for each in own for one in _cells(data, each.id))
        return Evidence(
            framework=framework_name(framework),
            runner=runner,
            ran=False,
            variant="",
            meets_limits=None,
            findings=(
                *_why_nothing(data, own),
                *(
                    _finding(each)
                    for each in capability_checks(runner, requirements, framework=framework)
                ),
            ),
            state="failed" if tried else "absent",
        )
    checks = analysis.checks[variant]
    findings = (
        *(_finding(each) for each in checks if each.fails),
        *_failures(data, analysis, variant),
        *goal_findings(data, analysis.stands, variant, field),
        *(_finding(each) for each in checks if not each.fails),
        *_flags(data, analysis.stands, variant),
        *_which(data, analysis, variant),
    )
    return Evidence(
        framework=framework_name(framework),
        runner=runner,
        ran=True,
        variant=variant,
        meets_limits=_meets(analysis, variant),
        findings=findings,
        state="partly" if variant in analysis.failed else "measured",
    )


def _meets(analysis: Analysis, variant: str) -> bool | None:
    """Whether all limits are met; of the machine's memory alone only that it is not."""
    meets = analysis.meets_limits(variant)
    if meets and variant in analysis.failed:
        # What it did not come through may have been what it does not meet.
        return None
    return meets if meets is False or analysis.limits_given else None


def _which(data: ReportData, analysis: Analysis, variant: str) -> Iterator[Finding]:
    """That another variant stands for the framework in the table of frameworks."""
    other = next(
        (
            each.chosen
            for each in standings(data)
            if each.chosen is not None
            and each.part is data.part_of(variant)
            and any(one.id == variant for one in each.variants)
        ),
        None,
    )
    if other is None or other.id == variant:
        return
    if variant == analysis.best:
        message = N_(
            "All this is of {variant}, which the measurements put first. The table of frameworks "
            "shows {other}, the framework's fastest in decoding."
        )
    elif variant in analysis.left:
        message = N_(
            "All this is of {variant}, which of the framework's variants that are left has the "
            "highest score. The table of frameworks shows {other}, its fastest in decoding."
        )
    else:
        message = N_(
            "All this is of {variant}, which of the framework's variants comes nearest to what is "
            "asked for. The table of frameworks shows {other}, its fastest in decoding."
        )
    yield Finding("note", fill(message, variant=Name(variant), other=Name(other.id)))


def _absent(runner: str, requirements: Requirements) -> Evidence:
    name = framework_name(runner)
    said = fill("{framework} was not part of this run: nothing of it was measured.", framework=name)
    return Evidence(
        framework=name,
        runner=runner,
        ran=False,
        variant="",
        meets_limits=None,
        findings=(
            Finding("unknown", said),
            *(_finding(each) for each in capability_checks(runner, requirements)),
        ),
    )


def _why_nothing(data: ReportData, own: Sequence[VariantRecord]) -> Iterator[Finding]:
    """Why no variant of a framework has a value."""
    for variant in own:
        failure = next((each.failure for each in _cells(data, variant.id) if each.failure), None)
        if failure is not None:
            why = unstopped(recorded(failure.message))
            said = fill("{variant} failed: {why}.", variant=Name(variant.id), why=why)
            yield Finding("failed", said)
        else:
            said = fill("{variant} was not run to its end.", variant=Name(variant.id))
            yield Finding("unknown", said)


def _finding(check: Check) -> Finding:
    if check.fails:
        kind = "lacks" if check.quoted else "fails"
        return Finding(kind, check.sentence, check.quoted, check.figures)
    if check.state == "limited":
        return Finding("note", check.sentence, check.quoted)
    if check.state == "unknown":
        return Finding("unknown", check.sentence, figures=check.figures)
    return Finding("supports", check.sentence, check.quoted, check.figures)


def _failures(data: ReportData, analysis: Analysis, variant: str) -> Iterator[Finding]:
    """Where a variant failed or was not run, also where other repetitions of it are fine."""
    for workload in analysis.stands.workloads:
        cell = data.cell(workload, variant)
        if cell.failure is not None:
            why = unstopped(recorded(cell.failure.message))
            message = (
                N_("Some repetitions on {workload} failed: {why}.")
                if cell.n
                else N_("It failed on {workload}: {why}.")
            )
            yield Finding("failed", fill(message, workload=Name(workload), why=why))
        elif not cell.n:
            said = fill("It was not run on {workload}.", workload=Name(workload))
            yield Finding("unknown", said)


def _flags(data: ReportData, stands: Stands, variant: str) -> Iterator[Finding]:
    for workload in stands.workloads:
        flags = data.cell(workload, variant).flags
        if flags:
            said = fill(
                "Its figures on {workload} are to be read with care: {flags}.",
                workload=Name(workload),
                flags=commas(flag_text(each) for each in flags),
            )
            yield Finding("note", said)
