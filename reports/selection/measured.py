"""The answer of the measurements alone: limits, then the front, then the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.metrics.statistics import MIN_BLOCKS, RESAMPLES
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.reports.colours import framework_key
from edgebench.reports.format import Scale, percent, shown
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.selection.analysis import analyse
from edgebench.reports.selection.goals import GOAL_NAMES
from edgebench.reports.selection.limits import limit_texts
from edgebench.reports.selection.measured_table import measured_table
from edgebench.reports.selection.score import contenders
from edgebench.reports.selection.view import Measured
from edgebench.reports.sentences import Name, fill, listed, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis
    from edgebench.reports.sentences import Sentence

NAMED_AT_MOST: Final = 3
SCORE: Final = Scale("")


def measured_answer(data: ReportData, requirements: Requirements) -> Measured:
    """What to take by the measurements, whatever a document's tree says.

    Args:
        data: of one run or several.
        requirements: the user's limits and weights.

    Returns:
        The answer; its `recommendation` is empty where nothing is left to choose from.
    """
    return answer_of(data, requirements, analyse(data, requirements))


def answer_of(data: ReportData, requirements: Requirements, analysis: Analysis) -> Measured:
    """The same, of an analysis that was made."""
    best = next((each for each in data.record.variants if each.id == analysis.best), None)
    nothing = all(
        not stand.known for goal in analysis.stands.by_goal.values() for stand in goal.values()
    )
    reasons = {**analysis.excluded, **analysis.unknown}
    return Measured(
        recommendation=best.runner if best else "",
        framework=framework_name(framework_key(best)) if best else "",
        variant=best.id if best else "",
        certainty=analysis.certainty,
        sentences=tuple(_sentences(data, requirements, analysis)),
        table=None if nothing else measured_table(data, analysis),
        weights=dict(analysis.weights),
        weights_given=analysis.weights_given,
        front=analysis.front,
        excluded=tuple(
            (each, tuple(plain(why) for why in reasons[each]))
            for each in data.variant_ids
            if each in reasons
        ),
    )


def names(variants: Sequence[str]) -> Sentence:
    """Variants by their names; of many the first few, and how many more."""
    named = variants[:NAMED_AT_MOST]
    more = len(variants) - len(named)
    if not more:
        return listed(named)
    parts: list[str | Name] = []
    for variant in named:
        parts += [_(", "), Name(variant)] if parts else [Name(variant)]
    return fill("{names} and {count} more", names=tuple(parts), count=more)


def _sentences(
    data: ReportData, requirements: Requirements, analysis: Analysis
) -> Iterator[Sentence]:
    yield from _limits(data, requirements, analysis)
    if not analysis.best:
        yield fill("Nothing is left to choose from, so the measurements recommend nothing.")
        return
    if len(data.parts) > 1:
        yield fill(
            "The variants are of several runs: what differs between them is also the machines' or "
            "the days'."
        )
    if len(analysis.left) > 1:
        yield from _front(analysis)
        yield from _weights(requirements, analysis)
    yield from _result(analysis)
    yield from _same_framework(data, analysis)


def _limits(data: ReportData, requirements: Requirements, analysis: Analysis) -> Iterator[Sentence]:
    given = limit_texts(requirements)
    total = len(data.variant_ids)
    if given:
        yield fill("Limits: {limits}.", limits=commas(given))
    else:
        yield fill("No limits were given but the memory of the machine.")
    out = [each for each in data.variant_ids if each in analysis.excluded]
    for one in out[:NAMED_AT_MOST]:
        why = analysis.excluded[one][0]
        yield fill("{variant} is out. {why}", variant=Name(one), why=why)
    if len(out) > NAMED_AT_MOST:
        yield (
            plural(
                "So is {count} more variant, for the reasons in the table.",
                "So are {count} more variants, for the reasons in the table.",
                len(out) - NAMED_AT_MOST,
            ),
        )
    aside = [each for each in data.variant_ids if each in analysis.unknown]
    if aside:
        yield fill(
            "Set aside, since not all that is asked for is known of them: {variants}. Of the "
            "first: {why}",
            variants=names(aside),
            why=analysis.unknown[aside[0]][0],
        )
    if analysis.best and not analysis.limits_known:
        yield fill("Of no variant it is known whether it meets all limits.")
    left = len(analysis.left)
    if left < total and left:
        yield fill("{left} of {total} variants are left to choose from.", left=left, total=total)


def _front(analysis: Analysis) -> Iterator[Sentence]:
    goals = commas(_(GOAL_NAMES[each]) for each in analysis.goals)
    beaten = len(analysis.left) - len(analysis.front)
    if beaten:
        yield (
            *fill(
                "Judged by {goals}, {beaten} of {left} fall behind: another variant dominates "
                "them, better beyond doubt in one of these and worse beyond doubt in none.",
                goals=goals,
                beaten=beaten,
                left=len(analysis.left),
            ),
        )
    else:
        yield fill("Judged by {goals}, no variant is dominated by another one.", goals=goals)
    for goal, (variant, reason) in analysis.absent.items():
        if goal in analysis.not_weighed:
            continue
        message = (
            N_("Left out is {goal}, which was not measured: {reason}.")
            if goal in analysis.nowhere
            else N_("Left out is {goal}, which not all of them have; {variant}: {reason}.")
        )
        yield fill(
            message,
            goal=_(GOAL_NAMES[goal]),
            variant=Name(variant),
            reason=unstopped(reason),
        )


def _weights(requirements: Requirements, analysis: Analysis) -> Iterator[Sentence]:
    shares = commas(
        f"{_(GOAL_NAMES[goal])} {percent(weight)}" for goal, weight in analysis.weights.items()
    )
    if analysis.not_weighed:
        yield fill(
            "Not weighed, though asked for, since it was not measured: {goals}.",
            goals=commas(_(GOAL_NAMES[each]) for each in analysis.not_weighed),
        )
    if analysis.weights_given:
        yield fill("Weighed as asked: {shares}.", shares=shares)
    elif requirements.weights:
        yield fill(
            "Nothing of what should be weighed was measured, so all else is weighed alike: "
            "{shares}.",
            shares=shares,
        )
    else:
        yield fill("Weighed alike, since no weights were given: {shares}.", shares=shares)


def _result(analysis: Analysis) -> Iterator[Sentence]:
    best = Name(analysis.best)
    if analysis.certainty == "alone":
        yield fill("{variant} is the only one left.", variant=best)
        return
    score = str(shown(analysis.scores.by_variant[analysis.best], SCORE))
    wins = analysis.scores.wins
    if wins is None:
        yield fill(
            "{variant} has the highest score, {score}; that is a hint only: fewer than {blocks} "
            "blocks, or {windows} windows of a text, tell nothing of how sure it is.",
            variant=best,
            score=score,
            blocks=MIN_BLOCKS,
            windows=MIN_WINDOWS,
        )
        return
    share = percent(wins[analysis.best])
    if analysis.certainty == "sure":
        yield fill(
            "{variant} has the highest score, {score}, in {share} of {count} resamples.",
            variant=best,
            score=score,
            share=share,
            count=RESAMPLES,
        )
        return
    yield fill(
        "{variant} has the highest score, {score}, but only in {share} of {count} resamples: it "
        "can't be told apart from {others}.",
        variant=best,
        score=score,
        share=share,
        count=RESAMPLES,
        others=names(contenders(analysis.best, analysis.scores)[1:]),
    )


def _same_framework(data: ReportData, analysis: Analysis) -> Iterator[Sentence]:
    """That a tie leaves no doubt of the framework, where it is between variants of one."""
    if analysis.certainty != "tie":
        return
    tied = frozenset(contenders(analysis.best, analysis.scores))
    keys = {framework_key(each) for each in data.record.variants if each.id in tied}
    if len(keys) == 1:
        yield fill("All of these are {framework}.", framework=framework_name(keys.pop()))
