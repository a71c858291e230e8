"""What must be read before any recommendation of a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import unstopped
from edgebench.reports.selection.analysis import TESTING_RUNNER
from edgebench.reports.selection.machines import elsewhere
from edgebench.reports.sentences import Name, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.sentences import Sentence

NAMED_AT_MOST: Final = 3


def warnings(
    data: ReportData, recommended: Sequence[str], requirements: Requirements | None = None
) -> tuple[Sentence, ...]:
    """What must be read before any recommendation.

    Args:
        data: of one run or several.
        recommended: names of the runners that a tree or the measurements recommend.
        requirements: the user's; what it is to run on is held against where it was measured.
    """
    target = requirements.target if requirements else None
    return (
        *_synthetic(data),
        *(elsewhere(data, target) if target else ()),
        *(one for runner in dict.fromkeys(recommended) for one in _of_runner(data, runner)),
        *_of_runs(data),
    )


def _synthetic(data: ReportData) -> Iterator[Sentence]:
    if any(each.record.synthetic is not None for each in data.parts):
        yield fill(
            "Synthetic weights: the figures are those of random numbers in the shape of a model, "
            "so nothing is known of the quality of any variant."
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
    """Where a framework failed: everywhere, or in some variants on some workloads."""
    cells = {
        each.id: [
            data.cell(workload.name, each.id) for workload in data.part_of(each.id).record.workloads
        ]
        for each in own
    }
    failed = {each: [one for one in found if one.failure] for each, found in cells.items()}
    failed = {each: found for each, found in failed.items() if found}
    if not any(one.n for found in cells.values() for one in found):
        first = next((found[0].failure for found in failed.values()), None)
        if first is None:
            yield fill(
                "{framework} was not run to its end: nothing of it was measured.", framework=name
            )
            return
        why = unstopped(recorded(first.message))
        yield fill("{framework} failed to run here: {why}.", framework=name, why=why)
        return
    for variant, found in list(failed.items())[:NAMED_AT_MOST]:
        (cell, *_more) = found
        assert cell.failure is not None
        message = (
            N_("Some repetitions of {variant} on {workload} failed: {why}.")
            if cell.n
            else N_("{variant} failed on {workload}: {why}.")
        )
        yield fill(
            message,
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
