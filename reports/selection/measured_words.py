"""How the measurements came to their answer, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.metrics.statistics import MIN_BLOCKS, RESAMPLES
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.reports.colours import framework_key
from edgebench.reports.format import percent
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.selection.goals import GOAL_NAMES
from edgebench.reports.selection.limits import limit_texts
from edgebench.reports.selection.score import contenders, score_words
from edgebench.reports.sentences import Name, fill, listed
from edgebench.reports.tool_method import told_by_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis
    from edgebench.reports.sentences import Sentence

NAMED_AT_MOST: Final = 3


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


def sentences(
    data: ReportData, requirements: Requirements, analysis: Analysis
) -> Iterator[Sentence]:
    """Limits, who is left, the front, the weights, and what comes of it."""
    if len(analysis.failed) == len(data.variant_ids):
        yield fill("Every variant failed, so there is nothing to choose from.")
        return
    yield from _limits(data, requirements, analysis)
    if not analysis.best:
        yield from _nothing(analysis)
        return
    if len(data.parts) > 1:
        yield fill(
            "The variants are of several runs: what differs between them is also the machines' or "
            "the days'."
        )
    if tools := told_by_tools(data):
        yield fill(
            "Edgebench did not time {variants}: their own tools told how fast they are, each as it "
            "counts; the notes of the run say more.",
            variants=names(tools),
        )
    if len(analysis.left) > 1:
        yield from _front(analysis)
        yield from _weights(analysis)
    elif analysis.not_weighed:
        yield _not_weighed(analysis)
    yield from _result(analysis)
    yield from _same_framework(data, analysis)
    if analysis.only_testing:
        yield fill(
            "Only the testing runner ran, which makes its figures up: nothing is recommended."
        )


def _nothing(analysis: Analysis) -> Iterator[Sentence]:
    """Why nothing is recommended."""
    if not analysis.unknown:
        yield fill("Nothing is left to choose from, so the measurements recommend nothing.")
        return
    unknown = tuple(analysis.unknown)
    yield fill(
        "No variant is known to meet all that is asked for, so nothing is recommended. Of these it "
        "is merely not known: {variants}. Of the first: {why}",
        variants=names(unknown),
        why=analysis.unknown[unknown[0]][0],
    )


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
    if aside and analysis.left:
        yield fill(
            "Set aside, since not all that is asked for is known of them: {variants}. Of the "
            "first: {why}",
            variants=names(aside),
            why=analysis.unknown[aside[0]][0],
        )
    left = len(analysis.left)
    if left < total and left:
        yield (
            plural(
                "{count} of {total} variants is left to choose from.",
                "{count} of {total} variants are left to choose from.",
                left,
                total=total,
            ),
        )


def _front(analysis: Analysis) -> Iterator[Sentence]:
    goals = _goals(analysis.goals)
    few = analysis.scores.wins is None
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
    elif few:
        yield fill(
            "Judged by {goals}, no variant is beyond doubt behind another one: that takes "
            "intervals, and not all of them have some.",
            goals=goals,
        )
    else:
        yield fill("Judged by {goals}, no variant is dominated by another one.", goals=goals)
    apart = analysis.stands.apart
    for goal, (variant, reason) in analysis.absent.items():
        if goal in analysis.not_weighed and goal not in apart:
            continue
        message = (
            N_("Left out is {goal}, whose values do not compare: {reason}.")
            if goal in apart
            else N_("Left out is {goal}, which was not measured: {reason}.")
            if goal in analysis.nowhere
            else N_("Left out is {goal}, which not all of them have; {variant}: {reason}.")
        )
        yield fill(
            message,
            goal=_(GOAL_NAMES[goal]),
            variant=Name(variant),
            reason=unstopped(reason),
        )


def _weights(analysis: Analysis) -> Iterator[Sentence]:
    shares = commas(
        f"{_(GOAL_NAMES[goal])} {percent(weight)}" for goal, weight in analysis.weights.items()
    )
    if analysis.not_weighed and analysis.weights_given:
        yield _not_weighed(analysis)
    if analysis.weights_given:
        yield fill("Weighed as asked: {shares}.", shares=shares)
    elif analysis.not_weighed:
        message = (
            N_(
                "Nothing of what should be weighed can be compared ({goals}), so that this is "
                "ignored, and all else is weighed alike: {shares}."
            )
            if _none_compares(analysis)
            else N_(
                "Nothing of what should be weighed was measured ({goals}), so that this is "
                "ignored, and all else is weighed alike: {shares}."
            )
        )
        yield fill(
            message,
            goals=_goals(analysis.not_weighed),
            shares=shares,
        )
    else:
        yield fill("Weighed alike, since no weights were given: {shares}.", shares=shares)


def _not_weighed(analysis: Analysis) -> Sentence:
    message = (
        N_("The weight that was asked for is ignored, since the values do not compare: {goals}.")
        if _none_compares(analysis)
        else N_("The weight that was asked for is ignored, since it was not measured: {goals}.")
    )
    return fill(message, goals=_goals(analysis.not_weighed))


def _none_compares(analysis: Analysis) -> bool:
    """Whether all that was to be weighed and is not was measured, by different meters."""
    return all(each in analysis.stands.apart for each in analysis.not_weighed)


def _goals(goals: Sequence[str]) -> str:
    return commas(_(GOAL_NAMES[each]) for each in goals)


def _result(analysis: Analysis) -> Iterator[Sentence]:
    best = Name(analysis.best)
    if analysis.certainty == "alone":
        yield _alone(analysis)
        return
    score = score_words(analysis.scores.by_variant[analysis.best])
    wins = analysis.scores.wins
    if wins is None:
        yield fill(
            "{variant} has the highest score, {score}, by the medians alone. That is a hint only: "
            "fewer than {blocks} blocks, or {windows} windows of a text, tell nothing of how sure "
            "it is.",
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


def _alone(analysis: Analysis) -> Sentence:
    """That only one is left: since the others fail, or since too little is known of them."""
    best = Name(analysis.best)
    if not analysis.unknown and not analysis.excluded:
        return fill("{variant} is the only one.", variant=best)
    if not analysis.unknown:
        return fill("{variant} is the only one left: all others are out.", variant=best)
    if not analysis.excluded:
        return fill(
            "{variant} is the only one that is known to meet all that is asked for; of all others "
            "that is not known.",
            variant=best,
        )
    return fill(
        "{variant} is the only one that is known to meet all that is asked for; some others are "
        "out, and of some that is not known.",
        variant=best,
    )


def _same_framework(data: ReportData, analysis: Analysis) -> Iterator[Sentence]:
    """That a tie leaves no doubt of the framework, where it is between variants of one."""
    if analysis.certainty != "tie":
        return
    tied = frozenset(contenders(analysis.best, analysis.scores))
    keys = {framework_key(each) for each in data.record.variants if each.id in tied}
    if len(keys) == 1:
        yield fill("All of these are {framework}.", framework=framework_name(keys.pop()))
