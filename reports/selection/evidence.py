"""What the measurements say for and against each framework, a sentence each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from edgebench.reports.colours import framework_key
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.selection.analysis import TESTING_RUNNER, analyse
from edgebench.reports.selection.evidence_goals import goal_findings
from edgebench.reports.selection.goals import is_higher_better
from edgebench.reports.selection.limits import capability_checks
from edgebench.reports.selection.view import Evidence, Finding
from edgebench.reports.sentences import Name, fill
from edgebench.reports.table import flag_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis
    from edgebench.reports.selection.goals import Stands
    from edgebench.reports.selection.limits import Check
    from edgebench.reports.sentences import Sentence

NAMED_AT_MOST: Final = 3


def evidence(
    data: ReportData, requirements: Requirements, recommended: Sequence[str]
) -> tuple[Evidence, ...]:
    """For and against each framework of the report, and each that is recommended.

    Each framework is stood for by one variant: of those that meet all limits the one with the
    highest score, else one of which that is not known, else the first that has values. It is
    compared with the best of the other frameworks' in each goal.

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
    chosen = {key: _representative(analysis, own) for key, own in groups.items()}
    found = [
        _of_framework(data, analysis, key, groups[key], chosen, requirements) for key in groups
    ]
    for runner in dict.fromkeys(recommended):
        if not any(each.runner == runner for each in found):
            found.append(_absent(runner, requirements))
    places = {runner: place for place, runner in enumerate(dict.fromkeys(recommended))}
    return tuple(sorted(found, key=lambda each: places.get(each.runner, len(places))))


def _representative(analysis: Analysis, own: Sequence[VariantRecord]) -> str:
    """The variant that stands for a framework; empty where none has a value."""
    measured = [
        each.id
        for each in own
        if any(by_variant[each.id].known for by_variant in analysis.stands.by_goal.values())
    ]
    ranks = {True: 0, None: 1, False: 2}
    front = frozenset(analysis.front)

    def rank(variant: str) -> tuple[bool, int, bool, float]:
        # One that failed somewhere may meet all limits elsewhere: it is excluded all the same.
        left = variant in analysis.left
        meets = ranks[analysis.meets_limits(variant)]
        return (not left, meets, variant not in front, -_standing(analysis, variant))

    return min(measured, key=rank, default="")


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
    chosen: Mapping[tuple[str, str], str],
    requirements: Requirements,
) -> Evidence:
    runner, framework = key
    variant = chosen[key]
    if not variant:
        return Evidence(
            framework=framework_name(framework),
            runner=runner,
            ran=False,
            variant="",
            meets_limits=None,
            findings=(
                *_why_nothing(data, own),
                *(_finding(each) for each in capability_checks(runner, requirements)),
            ),
        )
    rivals = [each for other, each in chosen.items() if other != key and each]
    checks = analysis.checks[variant]
    findings = (
        *(_finding(each) for each in checks if each.fails),
        *_failures(data, analysis, variant),
        *goal_findings(analysis.stands, variant, rivals, weighed=tuple(requirements.weights)),
        *(_finding(each) for each in checks if not each.fails),
        *_flags(data, analysis.stands, variant),
    )
    return Evidence(
        framework=framework_name(framework),
        runner=runner,
        ran=True,
        variant=variant,
        meets_limits=analysis.meets_limits(variant),
        findings=findings,
    )


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
        cells = [data.cell(each.name, variant.id) for each in data.record.workloads]
        failure = next((each.failure for each in cells if each.failure), None)
        if failure is not None:
            why = unstopped(recorded(failure.message))
            said = fill("{variant} failed: {why}.", variant=Name(variant.id), why=why)
            yield Finding("fails", said)
        else:
            said = fill("{variant} was not run to its end.", variant=Name(variant.id))
            yield Finding("unknown", said)


def _finding(check: Check) -> Finding:
    if check.fails:
        return Finding("lacks" if check.quoted else "fails", check.sentence, check.quoted)
    if check.state in ("unknown", "limited"):
        return Finding("unknown", check.sentence, quoted=check.state == "limited")
    return Finding("supports", check.sentence, check.quoted)


def _failures(data: ReportData, analysis: Analysis, variant: str) -> Iterator[Finding]:
    """Where the variant failed or was not run, though it has values elsewhere."""
    for workload in analysis.stands.workloads:
        cell = data.cell(workload, variant)
        if cell.failure is not None:
            why = unstopped(recorded(cell.failure.message))
            kind = "unknown" if cell.n else "fails"
            message = (
                N_("Some repetitions on {workload} failed: {why}.")
                if cell.n
                else N_("It failed on {workload}: {why}.")
            )
            yield Finding(kind, fill(message, workload=Name(workload), why=why))
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
            yield Finding("unknown", said)


def warnings(data: ReportData, recommended: Sequence[str]) -> tuple[Sentence, ...]:
    """What must be read before any recommendation.

    Args:
        data: of one run or several.
        recommended: names of the runners that a tree or the measurements recommend.
    """
    return (
        *(one for runner in dict.fromkeys(recommended) for one in _of_runner(data, runner)),
        *_of_runs(data),
    )


def _of_runner(data: ReportData, runner: str) -> Iterator[Sentence]:
    name = framework_name(runner)
    own = [each for each in data.record.variants if each.runner == runner]
    if not own:
        yield fill(
            "{framework} was not part of this run: nothing of it was measured.", framework=name
        )
        return
    for key in dict.fromkeys(each.framework for each in own if each.framework):
        yield fill(
            "What ran here in place of {framework} is {other}: its figures are not those of "
            "{framework}.",
            framework=name,
            other=framework_name(key),
        )
    yield from _failed(data, name, own)
    bad = {row.variant for row in data.sameness.bad} if data.sameness else set()
    wrong = [each.id for each in (*own, *data.record.proofs) if each.id in bad]
    wrong = [each for each in wrong if _runner_of(data, each) == runner]
    for variant in dict.fromkeys(wrong):
        yield fill(
            "{variant} differs from the reference, or could not be compared with it: it may not "
            "compute the same model.",
            variant=Name(variant),
        )


def _runner_of(data: ReportData, variant: str) -> str:
    every = (*data.record.variants, *data.record.proofs)
    return next(each.runner for each in every if each.id == variant)


def _failed(data: ReportData, name: str, own: Sequence[VariantRecord]) -> Iterator[Sentence]:
    """Where a framework failed: everywhere, or in some variants."""
    cells = {
        each.id: [data.cell(workload.name, each.id) for workload in data.record.workloads]
        for each in own
    }
    failed = [each for each, found in cells.items() if any(one.failure for one in found)]
    if not any(one.n for found in cells.values() for one in found):
        if not failed:
            yield fill(
                "{framework} was not run to its end: nothing of it was measured.", framework=name
            )
            return
        failure = next(one.failure for one in cells[failed[0]] if one.failure)
        why = unstopped(recorded(failure.message))
        yield fill("{framework} failed to run here: {why}.", framework=name, why=why)
        return
    for variant in failed[:NAMED_AT_MOST]:
        cell = next(one for one in cells[variant] if one.failure)
        assert cell.failure is not None
        yield fill(
            "{variant} failed on {workload}: {why}.",
            variant=Name(variant),
            workload=Name(cell.workload),
            why=unstopped(recorded(cell.failure.message)),
        )
    if len(failed) > NAMED_AT_MOST:
        more = len(failed) - NAMED_AT_MOST
        yield (
            plural(
                "So did {count} more variant of the same framework.",
                "So did {count} more variants of the same framework.",
                more,
            ),
        )


def _of_runs(data: ReportData) -> Iterator[Sentence]:
    if all(each.runner == TESTING_RUNNER for each in data.record.variants):
        yield fill("Only the testing runner ran: it makes its figures up and is no framework.")
    records = [each.record for each in data.parts] or [data.record]
    if any(each.quick for each in records):
        yield fill("This was a quick look, with fewer and shorter repetitions: not a measurement.")
    if any(each.status == "interrupted" for each in records):
        yield fill("The run was interrupted: what came before that is in it.")
    elif any(each.status == "running" for each in records):
        yield fill("The run has not finished: what it has so far is in it.")
