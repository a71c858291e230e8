"""The answer of the measurements: limits, then the front, then the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.colours import framework_key
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.selection.analysis import analyse
from edgebench.reports.selection.measured_table import measured_table
from edgebench.reports.selection.measured_words import sentences
from edgebench.reports.selection.view import Candidate, Excluded, Measured
from edgebench.reports.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis


def measured_answer(data: ReportData, requirements: Requirements) -> Measured:
    """What to take by the measurements, whatever a document's tree says.

    What documents say of abilities counts where one is asked for: nothing of that is measured.

    Args:
        data: of one run or several.
        requirements: the user's limits and weights.

    Returns:
        The answer; its `recommendation` is empty where nothing is left to choose from.
    """
    return answer_of(data, requirements, analyse(data, requirements))


def answer_of(data: ReportData, requirements: Requirements, analysis: Analysis) -> Measured:
    """The same, of an analysis that was made."""
    # Figures that are made up recommend nothing.
    chosen = "" if analysis.only_testing else analysis.best
    best = next((each for each in data.record.variants if each.id == chosen), None)
    nothing = all(
        not stand.known for goal in analysis.stands.by_goal.values() for stand in goal.values()
    )
    return Measured(
        recommendation=best.runner if best else "",
        framework=framework_name(framework_key(best)) if best else "",
        variant=best.id if best else "",
        certainty=analysis.certainty if best else "none",
        sentences=tuple(sentences(data, requirements, analysis)),
        table=None if nothing else measured_table(data, analysis),
        weights=dict(analysis.weights),
        weights_given=analysis.weights_given,
        front=analysis.front,
        excluded=tuple(_excluded(data, analysis)),
        candidates=tuple(_candidates(data, analysis)),
        by_documents=analysis.by_documents,
        limits_given=analysis.limits_given,
    )


def _excluded(data: ReportData, analysis: Analysis) -> Iterator[Excluded]:
    reasons = {**analysis.excluded, **analysis.unknown}
    broken = data.broken(analysis.stands.workloads)
    for each in data.variant_ids:
        if each not in reasons:
            continue
        state = (
            "failed"
            if each in analysis.failed
            else "broken"
            if each in broken
            else "fails"
            if each in analysis.excluded
            else "unknown"
        )
        yield Excluded(each, state, tuple(plain(why) for why in reasons[each]))


def _candidates(data: ReportData, analysis: Analysis) -> Iterator[Candidate]:
    records = {each.id: each for each in data.record.variants}
    wins = analysis.scores.wins
    front = analysis.front
    kept = frozenset(front)
    beaten = sorted(
        (each for each in analysis.left if each not in kept),
        key=lambda each: -analysis.scores.of(each),
    )
    for each in (*front, *beaten):
        score = analysis.scores.by_variant[each]
        summaries = {
            goal: by_variant[each].summary for goal, by_variant in analysis.stands.by_goal.items()
        }
        yield Candidate(
            variant=each,
            framework=framework_name(framework_key(records[each])),
            runner=records[each].runner,
            score=score.median,
            score_low=score.ci_low,
            score_high=score.ci_high,
            score_source=score.source,
            # What is dominated can't win, however the blocks are drawn.
            wins=None if wins is None else wins.get(each, 0.0),
            dominated_by=analysis.dominated_by[each],
            on_front=each in kept,
            values={
                goal: (one.median, one.ci_low, one.ci_high, one.unit)
                for goal, one in summaries.items()
            },
        )
